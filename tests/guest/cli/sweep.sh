#!/bin/sh
# SPDX-License-Identifier: MIT
#
# kxfer sweep: a grid is measured and verified, continues after an interruption, and is
# reported in JSON, CSV and HTML. No figure is expected to be small or large.

# shellcheck disable=SC2086,SC2317 # words of options; functions that run_tests calls
# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

skip_all_where_the_kernel_checks_itself

# blocks end at their count
fast="--rounds 2 --count 20 --block 1000"
# two works, six ways
grid="--size 64,4K --depth 1 --op read --context polled,softirq --memory lkey,mr --signal each"
small="$fast $grid"

nothing_is_left() {
	kxfer --json export list | jq -e "all(.name == \"@ping\")" && kxfer --json listen list | jq -e "length == 0"
}

# The result of the jq filter on all rows is exactly this text.
expect_rows() { # FILE FILTER TEXT
	got=$(jq -rs ".[1:] | $2" "$1" 2>&1) || fail "$1 is not the JSON expected: $2: $got"
	[ "$got" = "$3" ] || fail "$2 is '$got' instead of '$3'"
}

nr_rows() { grep -c '^{"operation"' "$1"; }
has_a_row() { [ "$(nr_rows "$1")" -ge 1 ]; }

test_each_cell_of_a_quick_grid_is_measured_and_verified() {
	expect 0 kxfer --json sweep --quick $fast --output out --csv csv --html html
	expect_json '"\(.works) \(.cells_measured) \(.cells_refused)"' "8 56 0"
	expect_rows out 'map(.cells[] | .verified and .operations >= 8 and .median_ns > 0) | "\(length) \(all)"' \
		"56 true"
	expect_rows out 'map(.cells[] | [.engine, .context, .memory, .poll] | join(" ")) | unique | join(",")' \
		"job polled  adaptive,job softirq  ,kverbs polled lkey ,kverbs polled mr ,kverbs softirq lkey ,kverbs softirq mr ,verbs   "
	expect_rows out 'map(.cells[] | .blocks_ns | length) | unique | join(" ")' 4
	expect_rows out 'map(.cells[] | .cpu_per_operation_ns > 0 and .switches_per_operation >= 0) | all' true
	expect_rows out 'map(select(.depth == 1) | .cells[] | .latency_samples == ([.histogram_ns[][1]] | add)) | all' true
	expect_rows out 'map(select(.depth == 8) | .cells[] | has("latency_samples")) | any' false
	[ "$(wc -l <csv)" -eq 57 ] || fail "$(wc -l <csv) lines of CSV"
	grep -q '^</html>' html || fail "the report has no end"
	for words in "Latency by size" "Bandwidth by size" "Completion context and registration" "Distribution"; do
		expect_in html "$words"
	done
	wait_for 10 nothing_is_left
}

test_a_result_says_where_and_how_it_was_measured() {
	expect 0 kxfer sweep $fast --size 64,4K --depth 1 --op read --signal each --engine verbs --output out
	head -n 1 out >"$work/stdout"
	expect_json '"\(.result) \(.format)"' "kxfer sweep 1"
	expect_json .facts.kernel "$(uname -r) $(uname -m)"
	expect_json '.facts | "\(.driver) \(.device) \(.peer)"' "$KXFER_PROVIDER $KXFER_DEVICE this node"
	expect_json '.plan | "\(.rounds) \(.operations_per_block) \(.block_ns)"' "2 20 1000000000"
	expect_json '.grid.size_bytes | join(" ")' "64 4096"
}

test_each_way_tells_what_its_engine_does() {
	expect 0 kxfer sweep $small --op write --output out --csv csv
	expect_rows out 'map(.cells[] | [.local_registration, .remote_registration, .write_success] |
		map(length > 5) | all) | all' true
	expect_rows out 'map(select(.size_bytes == 4096) | .cells[] | select(.memory == "mr") | .local_registration) |
		map(test("registered once")) | "\(length) \(all)"' "4 true"
	expect_rows out 'map(.cells[] | has("latency_p99_99_ns") and .latency_p99_99_ns == null) | all' true
	head -n 1 csv | grep -q 'latency_p99_9_ns,latency_p99_99_ns,.*local_registration,remote_registration,write_success' ||
		fail "no such columns of CSV"
	expect_in csv "registered once"
}

test_it_goes_on_where_it_was_interrupted() {
	background kxfer sweep $grid --rounds 2 --block 100 --count 100000 --output out
	wait_for 60 has_a_row out
	kill -INT "$pid"
	collect
	[ "$status" -eq 130 ] || fail "status $status"
	expect_stderr "the same command goes on"
	done=$(nr_rows out)
	[ "$done" -eq 1 ] || fail "$done rows"
	expect 0 kxfer sweep $grid --rounds 2 --block 100 --count 100000 --output out
	expect_stderr "has 1 of 2 works"
	expect_rows out 'map("\(.operation) \(.size_bytes)") | join(",")' "read 64,read 4096"
	cp out whole
	expect 0 kxfer sweep $grid --rounds 2 --block 100 --count 100000 --output out
	expect_stderr "out is complete; nothing is measured"
	expect_equal_files out whole
	wait_for 30 nothing_is_left
}

# rdma_rw has no completion for a batch; its row shows the signalling that was requested.
test_it_goes_on_with_the_signalling_that_is_missing() {
	works="--op read --size 64 --depth 8 --context polled --memory lkey,rw --signal each,batch"
	expect 0 kxfer sweep $fast $works --output out
	cp out before
	sed -i '$d' out
	expect 0 kxfer sweep $fast $works --output out
	expect_stderr "has 1 of 2 works"
	for file in before out; do
		expect_rows $file 'map("\(.signal) \(.batch)\(.refused | map(" no " + .memory) | join(""))") | join(",")' \
			"each 2,batch 2 no rw"
	done
}

test_it_goes_on_behind_a_line_that_was_torn() {
	expect 0 kxfer sweep $small --engine kverbs --output out
	lines=$(wc -l <out)
	truncate -s -100 out
	expect 0 kxfer sweep $small --engine kverbs --output out
	[ "$(wc -l <out)" -eq "$lines" ] || fail "$(wc -l <out) lines instead of $lines"
	expect_rows out 'map(.size_bytes) | join(" ")' "64 4096"
	# With nothing left to do the file does not change.
	cp out before
	expect 0 kxfer sweep $small --engine kverbs --output out
	expect_equal_files out before
}

test_another_grid_is_not_mixed_into_a_result() {
	expect 0 kxfer sweep $small --engine kverbs --output out
	cp out before
	expect 1 kxfer --json sweep $small --engine kverbs --output out --depth 2
	expect_error_json '.why | test("grid depth: \\[1\\] in the file, \\[1,2\\] now")' true
	sed -i '1s/"module_srcversion":"[^"]*"/"module_srcversion":"OTHER"/' out
	expect 1 kxfer --json sweep $small --engine kverbs --output out
	expect_error_json '.why | test("module_srcversion: OTHER in the file")' true
	echo "something else" >other
	expect 1 kxfer --json sweep $small --engine kverbs --output other
	expect_error_json .errno EINVAL
	[ "$(cat other)" = "something else" ] || fail "the file was changed"
}

test_reports_are_made_without_measuring() {
	expect 0 kxfer sweep $small --output out --csv one.csv --html one.html
	wait_for 10 remove_module
	try kxfer --json sweep --from out --csv two.csv --html two.html
	load_module
	[ "$status" -eq 0 ] || fail "status $status"
	# Works that the machine spoiled appear in no sentence, and the notes report that.
	expect_json '([.summary[].answers[]] | length > 0) or (.notes | join(" ") | test("2 works are in no sentence, because the machine spoiled them"))' true
	expect_equal_files one.csv two.csv
	expect_equal_files one.html two.html
}

# More depth than a lane has, and an operation that the device does not have.
test_what_cannot_be_done_is_kept_with_its_reason() {
	expect 0 kxfer --json sweep $fast --op read,fetch-add --size 64 --depth 1,2048 --context polled \
		--memory lkey --signal each --output out
	expect_rows out 'map(.refused[].reason | length > 10) | all' true
	expect_rows out 'map((.cells | length) + (.refused | length)) | unique | join(" ")' 3
	expect_rows out 'map(select(.depth == 2048) | .cells[] | select(.engine == "kverbs")) | length' 0
	[ "$KXFER_PROVIDER" != siw ] ||
		expect_rows out 'map(select(.operation == "fetch-add" and .depth == 1) | .refused[] | .engine) | sort | join(" ")' "job kverbs verbs"
}

test_the_plan_is_told_and_nothing_is_measured() {
	expect 0 kxfer --json sweep --plan --quick
	expect_json '"\(.cells) \(.works | length) \(.ways | length) \(.time_ns > 0)"' "56 8 7 true"
	expect 0 kxfer --json sweep --plan
	expect_json '"\(.cells) \(.ways | length) \(.time_ns < 1800e9)"' "900 30 true"
	expect 0 kxfer --json sweep --plan --full
	expect_json '.ways | length' 32
}

test_against_a_node_that_serves() {
	serve sweep=mem:1M --writable --verbs
	expect 0 kxfer --json sweep $small --op write "$peer" --output out
	expect_rows out 'map(.cells[].verified) | "\(length) \(all)"' "28 true"
	head -n 1 out >"$work/stdout"
	expect_json .facts.peer "$peer:7625"
}

test_the_floor_alone_takes_the_right_to_measure_it() {
	unprivileged="setpriv --reuid 1000 --regid 1000 --groups 104 --inh-caps -all --bounding-set -all"
	chmod 666 /dev/kxfer
	try sh -c "ulimit -l 65536; exec $unprivileged kxfer --json sweep --quick --engine kverbs --csv /dev/null"
	chmod 600 /dev/kxfer
	[ "$status" -eq 1 ] || fail "status $status"
	expect_error_json '"\(.errno) \(.why)"' "EPERM it needs CAP_NET_ADMIN"
}

test_wrong_options_name_what_is_allowed() {
	expect 2 kxfer sweep --quick
	expect_stderr "--output FILE"
	expect 2 kxfer sweep --quick --full --output out
	expect 2 kxfer sweep --quick --rounds 1 --output out
	expect_stderr "an interval needs two rounds"
	expect 2 kxfer sweep --from out --size 64
	expect_stderr "--from makes reports"
	for ignored in "$peer" "--rounds 3" "--count 5" "--block 10" "--device $KXFER_DEVICE" "--export other"; do
		expect 2 kxfer sweep --from out --csv csv $ignored
		expect_stderr "--from makes reports"
	done
	for file in output csv html; do
		expect 2 kxfer sweep --plan --$file file
		expect_stderr "--plan measures nothing"
	done
	expect 2 kxfer sweep --quick --output out --export other
	expect_stderr "--export with PEER"
	expect 2 kxfer sweep --plan --size 1M --depth 4096
	expect_stderr "256 MiB"
	for axis in "verbs --context softirq" "job --context direct" "verbs,job --memory mr" "kverbs --poll never" \
		"verbs --export other $peer" "verbs --key secret"; do
		expect 2 kxfer sweep --plan --engine $axis
		expect_stderr "with --engine"
	done
	expect 2 kxfer sweep --plan --op fetch-add --size 64
	expect_stderr "--size 8"
	expect 2 kxfer sweep --plan --context hardirq
	expect_stderr "softirq"
	expect 1 kxfer sweep --from nowhere
	expect_stderr nowhere
	[ ! -e out ] || fail "a file was made"
}

run_tests
