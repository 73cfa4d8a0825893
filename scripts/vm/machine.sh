# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Watches and ends a running machine, for scripts/vm/run and scripts/vm/arch/run. These provide
# say(), $dir (output of the machine), $timeout and $quiet_timeout (seconds).

# Process id of the machine; empty before it starts, or when it has the terminal.
machine_pid=''
# Process group of the readers of its serial lines, if there is one.
readers=()

# Shows the output as it comes and ends a machine that is out of time.
watch_machine() {
	local started=$SECONDS last=$SECONDS looked=$SECONDS size=0 now tail_pid nap
	# Waits on this without a process for each.
	exec {nap}<> <(:)
	# shellcheck disable=SC2154 # the runner's
	tail -c +1 -f -s 0.2 --pid="${readers[0]:-$machine_pid}" "$dir/out" 8>&- &
	tail_pid=$!
	while kill -0 "$machine_pid" 2>/dev/null; do
		read -rt 0.2 -u "$nap" || true
		[ $((SECONDS - looked)) -ge 5 ] || continue
		looked=$SECONDS
		now=$(stat -c %s "$dir/out")
		if [ "$now" -ne "$size" ]; then
			size=$now
			last=$SECONDS
		fi
		# shellcheck disable=SC2154
		if [ $((SECONDS - started)) -ge "$timeout" ]; then
			stop_machine "was still running after $timeout s"
		elif [ $((SECONDS - last)) -ge "$quiet_timeout" ]; then
			stop_machine "printed nothing for $quiet_timeout s"
		fi
	done
	exec {nap}>&-
	end_machine
}

# Ends what is left of the machine, and waits for all its output.
end_machine() {
	kill_machine
	wait "$machine_pid" ${readers[@]+"${readers[@]}"} 2>/dev/null || true
	wait "$tail_pid" || true
}

kill_machine() {
	[ -n "$machine_pid" ] || return 0
	[ ${#readers[@]} -eq 0 ] || kill -KILL -- "-$machine_pid" 2>/dev/null || true
	kill -KILL "$machine_pid" 2>/dev/null || true
}

stop_machine() { # REASON
	end_machine
	say "the guest $1 and was stopped"
	show_console
	exit 124
}

show_console() {
	say "last 50 lines of $dir/console.log:"
	tail -n 50 "$dir/console.log" | tr -d '\r' | sed 's/^/    /' >&2
}

# The status of the command; a guest that ended without one has died.
end_with_status() {
	local status
	status=$(cat "$dir/status")
	if [ -z "$status" ]; then
		say "the guest died before the command ended"
		[ ! -s "$dir/machine.log" ] || sed 's/^/    /' "$dir/machine.log" >&2
		show_console
		exit 125
	fi
	[ "$status" -ne 126 ] || show_console
	exit "$status"
}
