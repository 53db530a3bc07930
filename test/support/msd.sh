# What the script tests of msd share: a daemon over memory in a directory of its own, and checks. Sourced.
#
# MSD is the program; DIRECTORY is removed at the end; PID is the daemon that runs, LOG its log; LISTENER and READER are helpers.

set -u
MSD=${1:-$(dirname "$0")/msd}
if [ -w /dev/shm ]; then BASE=/dev/shm; else BASE=${TMPDIR:-/tmp}; fi
DIRECTORY=$(mktemp -d "$BASE/sherman-msd-XXXXXX") || exit 1
LOG=$DIRECTORY/log
PID=
LISTENER=
READER=
failures=0

# Longest wait for anything that will happen, in twentieths of a second.
PATIENCE=1200

cleanup()
{
	kill -KILL $PID $LISTENER $READER 2>/dev/null
	umount "$DIRECTORY/huge" 2>/dev/null
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

# wait_for PATTERN: until the log has it; the log's lines of before are moved to $LOG.before by forget().
wait_for()
{
	for _ in $(seq $PATIENCE); do
		grep -qE -- "$1" "$LOG" 2>/dev/null && return 0
		[ -n "$PID" ] && ! kill -0 "$PID" 2>/dev/null && break
		sleep 0.05
	done
	fail "the log has nothing like \"$1\": $(cat "$LOG" 2>/dev/null)"
	return 1
}

# forget: empties the log, which the daemon appends to.
forget()
{
	cat "$LOG" >> "$LOG.before" 2>/dev/null
	: > "$LOG"
}

# start [flags]: msd in the background; waits until it serves. With NO_LOG set its log is the standard error, which the caller brings to LOG.
start()
{
	local log=(--log "$LOG")
	[ -z "${NO_LOG:-}" ] || log=()
	forget
	"$MSD" --memory "$DIRECTORY/memory" --socket "$DIRECTORY/socket" "${log[@]}" "$@" &
	PID=$!
	wait_for 'info: ready' || exit 1
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
	grep -qE -- "$1" "$LOG" || fail "the log has nothing like \"$1\": $(cat "$LOG")"
}

not_logged()
{
	! grep -qE -- "$1" "$LOG" || fail "the log has something like \"$1\": $(cat "$LOG")"
}

# listen_to_signs: takes in the service manager's place what daemons tell it at NOTIFY from now on, a message a line of NOTIFY.log.
listen_to_signs()
{
	NOTIFY=$DIRECTORY/notify
	perl -MIO::Socket::UNIX -MSocket -e '
		my ($path, $ready, $log) = @ARGV;
		my $socket = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => $path) or die "$path: $!";
		open(my $out, ">", $log) or die;
		$out->autoflush(1);
		open(my $flag, ">", $ready); close($flag);
		my $message;
		while (defined recv($socket, $message, 1024, 0)) { print $out join(" ", split(/\n/, $message)), "\n"; }
	' "$NOTIFY" "$NOTIFY.ready" "$NOTIFY.log" &
	LISTENER=$!
	for _ in $(seq $PATIENCE); do [ -e "$NOTIFY.ready" ] && break; sleep 0.05; done
}

stop_listening()
{
	kill "$LISTENER"
	wait "$LISTENER" 2>/dev/null
	LISTENER=
}

finish()
{
	if [ "$failures" -gt 0 ]; then
		echo "$failures failures"
		exit 1
	fi
	echo "all passed"
}
