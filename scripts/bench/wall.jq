# SPDX-License-Identifier: MIT
#
# For scripts/bench/wall: makes rows with intervals and verdicts from the figures of the guest.
#
# Input: {parameters, figures: [{row, figure, round, value}]}. A round is one sample:
# the mean of its blocks. Figures and ratios of figures are taken as log-normal: the
# geometric mean of the rounds, and Student's t over their logarithms.

# 97.5 % quantiles, by degrees of freedom from 1.
def t_quantile: [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201,
	2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086][. - 1] // 2.086;

def mean: add / length;

# {value, low, high} of samples; low and high are null if there is only one.
def estimate:
	map(log) as $l | ($l | length) as $n | ($l | mean) as $m |
	if $n < 2 then {value: ($m | exp), low: null, high: null} else
		(($n - 1 | t_quantile) * (($l | map((. - $m) * (. - $m)) | add) / ($n - 1) / $n | sqrt)) as $half |
		{value: ($m | exp), low: ($m - $half | exp), high: ($m + $half | exp)}
	end;

# One figure, grouped by round.
def series($figures; $row; $figure):
	[$figures[] | select(.row == $row and .figure == $figure)] |
	group_by(.round) | map(map(.value) | mean) |
	if ($figure | test("^(rate|bulk)")) and any(. == 0)
	then error("\($row): \($figure) is 0 in a round: make blocks longer (--ms)") else . end;

def verdict($got; $want):
	if $want == null then null else
		(if $want.at == "least" then $got.value >= $want.value else $got.value <= $want.value end) as $met |
		($got.low != null and $got.low < $want.value and $got.high > $want.value) as $open |
		{met: $met, certain: ($open | not),
		 missed_percent: (if $met then 0 else ($got.value / $want.value - 1) * 100 | fabs end)}
	end;

def at_least($x): {at: "least", value: $x};
def at_most($x): {at: "most", value: $x};

# The ratio of two figures, computed by round; nothing if either was not measured.
def beside($name; $unit; $base; $now; $want):
	if ($base | length) == 0 or ($now | length) != ($base | length) then empty else
		([$now, $base] | transpose | map(.[0] / .[1]) | estimate) as $ratio |
		{name: $name, unit: $unit, base: ($base | estimate), now: ($now | estimate), ratio: $ratio,
		 significant: ($ratio.low != null and ($ratio.low > 1 or $ratio.high < 1)),
		 want: $want, verdict: verdict($ratio; $want)}
	end;

# A single figure.
def alone($name; $unit; $now; $want):
	if ($now | length) == 0 then empty else
		($now | estimate) as $e |
		{name: $name, unit: $unit, base: null, now: $e, ratio: null, significant: null,
		 want: $want, verdict: verdict($e; $want)}
	end;

def sum_of($lists): $lists | transpose | map(add);

def rates($f; $row; $n; $what; $want):
	beside($what; "/s"; series($f; $row; "rate.1"); series($f; $row; "rate.\($n)"); $want);

def qps($f):
	series($f; "many.1"; "qps.1") as $one |
	beside("QPs, 256 processes beside 1"; ""; $one; series($f; "many.1"; "qps.256"); at_most(1));

def lanes($f):
	if series($f; "lanes.1", "lanes.32"; "lanes.2") | any(. != 2)
	then error("two sessions did not post on two lanes") else empty end;

def small_beside_bulk($f):
	series($f; "beside"; "p99.alone") as $alone | series($f; "beside"; "bulk.alone") as $bulk |
	([$alone, $bulk] | transpose | map(.[0] + 2e9 / .[1])) as $bound |
	beside("p99 of READ 64 B, bulk beside it and not"; "ns"; $alone; series($f; "beside"; "p99.beside"); null),
	beside("the same beside p99 alone + 2 bulk pieces"; "ns"; $bound; series($f; "beside"; "p99.beside"); at_most(1)),
	beside("bulk (WRITE 1 MiB), READs beside it and not"; "/s"; $bulk; series($f; "beside"; "bulk.beside");
		at_least(0.9));

# No other process may lose by a caller that polls.
def busy($f):
	def of($figure): series($f; "busy"; "rate.\($figure)");
	beside("a process that computes: beside READs that poll on its CPU and alone"; "/s";
		of("busy.alone"); of("busy.poll"); null),
	beside("the same: beside READs that poll and that sleep"; "/s"; of("busy.sleep"); of("busy.poll"); at_least(0.9)),
	beside("those READs: that poll beside that sleep"; "/s"; of("reads.sleep"); of("reads.poll"); null);

def opens($f):
	def open($figure): series($f; "open"; $figure);
	beside("PEER_OPEN on a warm link beside rdma_cm"; "ns"; open("rdma_cm"); open("open_peer"); null),
	beside("TARGET_OPEN beside an exchange"; "ns"; open("exchange"); open("open_target"); at_most(4));

def registration($f; $kind; $what):
	def figure($figure): series($f; "register"; "\($kind).\($figure)");
	beside("256 MiB, \($what): publish, grant beside ibv_reg_mr"; "ns"; figure("add.verbs"); figure("add.kxfer");
		at_most(1.15)),
	beside("256 MiB, \($what): withdraw beside ibv_dereg_mr"; "ns"; figure("remove.verbs"); figure("remove.kxfer");
		at_most(1.15));

def footprint($f):
	def step($figure): series($f; "footprint"; $figure);
	[step("open"), step("region"), step("peer"), step("target"), step("jobs.1"), step("jobs.16")] as $to_16 |
	alone("kernel memory of a session without a ring that had 16 jobs in flight"; "B";
		sum_of($to_16); at_most(8192)),
	alone("the same that had 32"; "B"; sum_of($to_16 + [step("jobs.32")]); at_most(13 * 1024)),
	alone("what its first export adds"; "B"; step("export"); null);

.figures as $f | . + {rows: [
	lanes($f),
	rates($f; "lanes.1"; 2; "READ 64 B, one at a time: 2 sessions on 2 lanes beside 1"; at_least(1.6)),
	rates($f; "lanes.32"; 2; "READ 64 B, 32 deep: 2 sessions on 2 lanes beside 1"; at_least(1.6)),
	rates($f; "sessions.1"; 4; "READ 64 B, one at a time: 4 sessions beside 1"; at_least(1.6)),
	rates($f; "sessions.32"; 4; "READ 64 B, 32 deep: 4 sessions beside 1"; at_least(1.6)),
	rates($f; "threads.1"; 4; "READ 64 B, one at a time: 4 threads of a session beside 1"; null),
	rates($f; "threads.32"; 4; "READ 64 B, 32 deep: 4 threads of a session beside 1"; null),
	rates($f; "many.1"; 256; "READ 64 B, one at a time: 256 processes beside 1"; at_least(0.9)),
	rates($f; "many.16"; 256; "READ 64 B, 16 deep: 256 processes beside 1"; at_least(0.9)),
	qps($f),
	footprint($f),
	small_beside_bulk($f),
	busy($f),
	opens($f),
	registration($f; "scattered"; "4 KiB pages"),
	registration($f; "thp"; "huge pages")]}
