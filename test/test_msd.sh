#!/bin/bash
#
# test_msd.sh
#		The daemon as a program: flags, configuration file, errors, log, signals, restart over its memory.
#
# Usage: test_msd.sh [path of msd]; without it, msd beside this script, where make -C test puts both.

set -u
MSD=${1:-$(dirname "$0")/msd}
if [ -w /dev/shm ]; then BASE=/dev/shm; else BASE=${TMPDIR:-/tmp}; fi
DIRECTORY=$(mktemp -d "$BASE/sherman-msd-XXXXXX") || exit 1
PID=
failures=0

cleanup()
{
	[ -n "$PID" ] && kill -KILL "$PID" 2>/dev/null
	rm -rf "$DIRECTORY"
}
trap cleanup EXIT

fail()
{
	echo "FAILED: $*"
	failures=$((failures + 1))
}

# expect STATUS PATTERN command...: the command's exit status, and what its output matches.
expect()
{
	local wanted=$1 pattern=$2 output status
	shift 2
	output=$(timeout 60 "$@" 2>&1)
	status=$?
	[ "$status" = "$wanted" ] || fail "$* ended with $status, not $wanted: $output"
	grep -qE -- "$pattern" <<<"$output" || fail "$* said \"$output\", nothing like \"$pattern\""
}

# start [flags]: msd in the background; waits until it serves.
start()
{
	"$MSD" --memory "$DIRECTORY/memory" --socket "$DIRECTORY/socket" --log "$DIRECTORY/log" "$@" &
	PID=$!
	for _ in $(seq 1200); do
		[ -S "$DIRECTORY/socket" ] && tail -n 1 "$DIRECTORY/log" 2>/dev/null | grep -qE 'serving|warning' && return 0
		kill -0 "$PID" 2>/dev/null || break
		sleep 0.05
	done
	fail "msd did not start: $(cat "$DIRECTORY/log" 2>/dev/null)"
	return 1
}

# stop SIGNAL STATUS: ends it, and checks the exit status.
stop()
{
	kill "-$1" "$PID"
	wait "$PID" 2>/dev/null
	local status=$?
	PID=
	[ "$status" = "$2" ] || fail "msd ended with $status after SIG$1, not $2"
}

logged()
{
	grep -qE "$1" "$DIRECTORY/log" || fail "the log has nothing like \"$1\": $(cat "$DIRECTORY/log")"
}

# flags and their errors
expect 0 '--memory FILE' "$MSD" --help
expect 0 '^msd \(sherman\) [0-9]' "$MSD" --version
expect 2 'memory.*missing' "$MSD"
expect 2 'size.*missing' "$MSD" --memory "$DIRECTORY/memory" --socket "$DIRECTORY/socket"
expect 2 'unknown flag "--fast"' "$MSD" --fast
expect 2 'is not a flag' "$MSD" memory
expect 2 'needs a value' "$MSD" --memory
expect 2 'number from 1048576' "$MSD" --memory a --socket b --size 12
expect 2 'number from 1048576' "$MSD" --memory a --socket b --size 1X
expect 2 'number from 1 to 65535' "$MSD" --memory a --socket b --size 1G --channels 0
expect 2 'cannot read the configuration file' "$MSD" --config "$DIRECTORY/nothing"
expect 1 'hint: ' "$MSD" --memory /nonexistent/memory --socket "$DIRECTORY/socket" --size 16M
expect 1 'hint: ' "$MSD" --memory "$DIRECTORY/memory" --socket /nonexistent/socket --size 16M
expect 1 'cannot open the log file.*' "$MSD" --memory "$DIRECTORY/memory" --socket "$DIRECTORY/socket" --size 16M \
	--log /nonexistent/log
rm -f "$DIRECTORY"/memory*

# the configuration file, and flags that win over it
cat > "$DIRECTORY/config" <<END
# a comment
memory = '$DIRECTORY/of-the-file'
socket = "$DIRECTORY/socket"   # another one
size = 32 MB
verbose = on
END
printf 'size=4M\nsise = 3\n' > "$DIRECTORY/bad.config"
expect 2 'config line 2: .*no setting "sise"' "$MSD" --config "$DIRECTORY/bad.config"
printf 'memory\n' > "$DIRECTORY/bad.config"
expect 2 'line 1: a line is "name = value"' "$MSD" --config "$DIRECTORY/bad.config"
printf 'verbose = perhaps\n' > "$DIRECTORY/bad.config"
expect 2 'must be on or off' "$MSD" --config "$DIRECTORY/bad.config"
start --config "$DIRECTORY/config" --size=16M || exit 1
logged 'info: serving .*/memory \(new\).* 0 of 16 MB'
[ -e "$DIRECTORY/of-the-file" ] && fail "the flag did not win over the file"

# a second daemon over the same memory is refused
expect 1 'another msd serves' "$MSD" --memory "$DIRECTORY/memory" --socket "$DIRECTORY/socket2" --size 16M

# SIGHUP opens the log anew
mv "$DIRECTORY/log" "$DIRECTORY/log.old"
kill -HUP "$PID"
for _ in $(seq 1200); do [ -s "$DIRECTORY/log" ] && break; sleep 0.05; done
logged 'log opened anew'

# clean ends, and the memory kept over them; SIGKILL, and the memory recovered
stop TERM 0
logged 'info: stopped'
[ -e "$DIRECTORY/socket" ] && fail "the socket was left behind"
start --size 16M && logged '\(kept\)'
stop INT 0
start --size 16M
stop KILL 137
: > "$DIRECTORY/log"
start --size 16M && logged '\(recovered\)'
stop TERM 0

# another size is other memory
start --size 8M && logged '\(new\).* 0 of 8 MB'
stop TERM 0

if [ "$failures" -gt 0 ]; then
	echo "$failures failures"
	exit 1
fi
echo "all passed"
