#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What the services run: kxfer config, and kxfer serve under a service manager.

# run_tests calls the tests by their names:
# shellcheck disable=SC2317

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

# A folder with the secret of a key, and what it says of the node.
make_config() { # LINE...
	mkdir -p conf
	head -c 32 /dev/urandom >conf/secret
	change_config "$@"
}

# Other lines, with the same secret.
change_config() { # LINE...
	printf '%s\n' "key kt-service $work/conf/secret" "$@" >conf/node.conf
}

nr_listeners() {
	expect 0 kxfer --json listen list
	jq length "$work/stdout"
}

# A listener that was deleted and added again has another id.
id_of() { # ADDRESS
	expect 0 kxfer --json listen list
	jq -r '.[] | select(.address == "'"$1"'").id' "$work/stdout"
}

is_listening() { kxfer --json listen list | jq -e 'map(.address) | index("'"$1"'") != null'; }
is_not_listening() { ! is_listening "$1"; }

expect_listeners() { # NUMBER
	[ "$(nr_listeners)" = "$1" ] || fail "$(nr_listeners) listeners instead of $1"
}

test_keys_and_listeners_come_and_go() {
	make_config "listen $peer --key kt-service" "listen $peer:7700 --key kt-service --silence 5"
	expect 0 kxfer --json config check conf
	expect_json '"\(.keys) \(.listeners)"' "1 2"
	expect_listeners 0
	expect 0 kxfer config apply conf
	expect_listeners 2
	expect 0 kxfer ping -c 1 "$peer:7700" --key kt-service
	expect 0 kxfer config undo
	expect_listeners 0
	expect 0 kxfer --json key list
	expect_json 'map(.name) | index("kt-service")' null
	# Nothing is left to do.
	expect 0 kxfer config undo
}

test_what_is_no_longer_configured_goes_and_the_rest_of_the_node_stays() {
	make_config "listen $peer:7700 --key kt-service" "listen $peer:7701 --key kt-service"
	expect 0 kxfer listen add "$peer:7702"
	expect 0 kxfer config apply conf
	expect_listeners 3
	make_config "listen $peer:7701 --key kt-service"
	expect 0 kxfer config apply conf
	expect 0 kxfer --json listen list
	expect_json 'map(.address) | sort | join(" ")' "$peer:7701 $peer:7702"
	# The secret is another one now, and the listener has that.
	expect 0 kxfer ping -c 1 "$peer:7701" --key kt-service
	expect 0 kxfer config undo
	expect_listeners 1
	expect 0 kxfer listen del "$peer:7702"
}

test_a_wrong_line_changes_nothing_and_is_named() {
	make_config "listen $peer:7700 --key kt-service"
	expect 0 kxfer config apply conf
	make_config "listen $peer:7701 --key kt-service" "listne $peer" "listen $peer:99999"
	expect 1 kxfer config check conf
	expect 1 kxfer config apply conf
	expect_stderr "conf/node.conf:3: 'listne' is neither key nor listen"
	expect_stderr "conf/node.conf:4: "
	expect 0 kxfer --json listen list
	expect_json 'map(.address) | join(" ")' "$peer:7700"
	expect 0 kxfer config undo
}

test_an_address_of_another_node_does_not_keep_the_others_back() {
	make_config "listen 192.0.2.7:7700 --key kt-service" "listen $peer:7701 --key kt-service"
	expect 1 kxfer config apply conf
	expect_stderr "conf/node.conf:2: "
	expect 0 kxfer --json listen list
	expect_json 'map(.address) | index("'"$peer"':7701") != null' true
	expect 0 kxfer config undo
	expect_listeners 0
}

test_what_is_as_before_is_left_alone() {
	make_config "listen $peer:7700 --key kt-service" "listen 192.0.2.7:7700" "listen $peer:7701"
	expect 1 kxfer config apply conf
	one=$(id_of "$peer:7700") two=$(id_of "$peer:7701")
	expect 1 kxfer config apply conf
	expect_stderr "conf/node.conf:3: "
	change_config "listen $peer:7701" "listen $peer:7700 --key kt-service" "listen $peer:7702"
	expect 0 kxfer config apply conf
	[ "$(id_of "$peer:7700") $(id_of "$peer:7701")" = "$one $two" ] || fail "listeners were made again"
	expect_listeners 3
	# Only the line that has changed, and only what has the secret that has changed.
	change_config "listen $peer:7700 --key kt-service" "listen $peer:7701 --silence 5" "listen $peer:7702"
	expect 0 kxfer config apply conf
	[ "$(id_of "$peer:7700")" = "$one" ] || fail "a listener was made again"
	expect 0 kxfer --json listen list
	expect_json '.[] | select(.address == "'"$peer"':7701").silence_ns' 5000000000
	three=$(id_of "$peer:7702")
	make_config "listen $peer:7700 --key kt-service" "listen $peer:7701 --silence 5" "listen $peer:7702"
	expect 0 kxfer config apply conf
	[ "$(id_of "$peer:7700")" != "$one" ] || fail "a listener has the old secret"
	[ "$(id_of "$peer:7702")" = "$three" ] || fail "a listener was made again"
	expect 0 kxfer ping -c 1 "$peer:7700" --key kt-service
	# What an administrator has deleted comes back.
	expect 0 kxfer listen del "$peer:7702"
	expect 0 kxfer config apply conf
	expect_listeners 3
	expect 0 kxfer config undo
	expect_listeners 0
}

test_a_listener_of_an_administrator_is_not_taken_over() {
	make_config "listen $peer:7700 --key kt-service"
	expect 0 kxfer listen add "$peer:7700"
	expect 1 kxfer config apply conf
	expect_stderr "conf/node.conf:2: cannot listen on $peer:7700: something listens there"
	expect 0 kxfer config undo
	expect_listeners 1
	expect 0 kxfer listen del "$peer:7700"
}

test_the_service_waits_for_an_address_and_leaves_the_others_alone() {
	make_config "listen 10.77.0.9:7700 --key kt-service" "listen $peer:7701 --key kt-service"
	# Nothing listens on that socket: it must not mind.
	NOTIFY_SOCKET=@kxfer-test kxfer config run conf >run.out 2>&1 </dev/null &
	run_pid=$!
	echo "$run_pid" >>pids
	wait_for 30 is_listening "$peer:7701"
	expect_not_in run.out "conf/node.conf:3: "
	one=$(id_of "$peer:7701")
	ip addr add 10.77.0.9/24 dev dummy0
	wait_for 30 is_listening 10.77.0.9:7700
	[ "$(id_of "$peer:7701")" = "$one" ] || fail "a listener was made again"
	# However often it was tried.
	[ "$(grep -c 'conf/node.conf:2: ' run.out)" -eq 1 ] || fail "not one report of the line"
	two=$(id_of 10.77.0.9:7700)
	# A wrong file changes nothing, one that is right only what has changed.
	change_config "listne x"
	kill -HUP "$run_pid"
	wait_for 30 grep -q "'listne' is neither" run.out
	expect_listeners 2
	change_config "listen 10.77.0.9:7700 --key kt-service" "listen $peer:7702"
	kill -HUP "$run_pid"
	wait_for 30 is_listening "$peer:7702"
	is_not_listening "$peer:7701" >/dev/null || fail "a listener that is no longer configured"
	[ "$(id_of 10.77.0.9:7700)" = "$two" ] || fail "a listener was made again"
	kill -TERM "$run_pid"
	wait_for 30 is_over "$run_pid"
	wait "$run_pid" || fail "status $?"
	ip addr del 10.77.0.9/24 dev dummy0
	expect_listeners 0
}

test_a_service_that_was_killed_goes_on_where_it_was() {
	make_config "listen $peer:7701 --key kt-service"
	kxfer config run conf >run.out 2>&1 </dev/null &
	run_pid=$!
	echo "$run_pid" >>pids
	wait_for 30 is_listening "$peer:7701"
	one=$(id_of "$peer:7701")
	kill -KILL "$run_pid"
	wait_for 30 is_over "$run_pid"
	expect 0 kxfer config apply conf
	[ "$(id_of "$peer:7701")" = "$one" ] || fail "the listener was made again"
	expect 0 kxfer config undo
	expect_listeners 0
}

test_after_the_module_was_away_all_is_applied_again() {
	make_config "listen $peer:7700 --key kt-service"
	expect 0 kxfer config apply conf
	reload_module
	expect_listeners 0
	expect 0 kxfer config apply conf
	expect_listeners 1
	remove_module
	expect 0 kxfer config undo
	load_module
}

test_the_log_of_serve_has_the_time_of_each_line() {
	random_file file 1000
	serve file --listen "$peer"
	grep -qE '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}[+-][0-9]{4} serving file, ' "$work/serve.out" ||
		fail "no time"
	! grep -vqE '^[0-9]{4}-' "$work/serve.out" || fail "a line without its time"
	stop_serve
	kxfer --json serve file --no-key --listen "$peer" >serve.out 2>&1 </dev/null &
	serve_pid=$!
	echo "$serve_pid" >>pids
	wait_for 30 grep -q listen serve.out
	stop_serve
	cp serve.out stdout
	[ "$(jq -r 'select(.time == null)' stdout)" = "" ] || fail "an event without its time"
}

# Nothing listens on that socket: serve must not mind.
serve_as_service() {
	export NOTIFY_SOCKET=@kxfer-test
	serve "$@"
	unset NOTIFY_SOCKET
}

test_a_reload_publishes_the_files_that_have_changed() {
	random_file one 5000
	random_file two 5000
	serve_as_service one two --listen "$peer"
	random_file one 4000
	kill -HUP "$serve_pid"
	wait_for 30 grep -q "one was read again" serve.out
	expect_not_in serve.out "two was read again"
	expect 0 kxfer --json ls "$peer"
	expect_json '.[] | select(.name == "one") | "\(.content_length_bytes) \(.generation) \(.sha256)"' \
		"4000 2 $(sha256_of one)"
	expect_json '.[] | select(.name == "two") | .generation' 1
	expect 0 kxfer get "$peer/one" got
	cmp one got || fail "another content"
	stop_serve
	[ "$status" -eq 0 ] || fail "status $status"
}

test_a_file_that_no_longer_fits_stays_as_it_was() {
	random_file one 5000
	cp one before
	serve_as_service one --listen "$peer"
	random_file one 5001
	kill -HUP "$serve_pid"
	wait_for 30 grep -q "cannot take the new content of" serve.out
	rm one
	kill -HUP "$serve_pid"
	wait_for 30 grep -q "cannot read again" serve.out
	expect 0 kxfer get "$peer/one" got
	cmp before got || fail "another content"
	stop_serve
	[ "$status" -eq 0 ] || fail "status $status"
}

test_without_a_service_manager_a_hangup_ends_it() {
	serve a=mem:4K --listen "$peer"
	kill -HUP "$serve_pid"
	wait_for 30 is_over "$serve_pid"
	wait "$serve_pid"
	[ $? -eq 129 ] || fail "it did not end by the signal"
}

test_completion_has_devices_exports_and_links() {
	serve inbox=mem:4K --listen "$peer"
	expect 0 kxfer __complete device show ''
	expect_stdout "$KXFER_DEVICE"
	expect 0 kxfer __complete get "$peer/"
	expect_stdout "$peer/inbox"
	expect 0 kxfer __complete get ''
	expect_stdout "$peer/"
	expect 0 kxfer __complete link show ''
	[ "$(wc -l <"$work/stdout")" -ge 1 ] || fail "no link"
	# A peer that is not there has no words, and does not hold the shell up.
	expect 0 timeout 10 kxfer __complete get 192.0.2.1:1/
	[ ! -s "$work/stdout" ] || fail "words of nobody"
	stop_serve
}

run_tests
