#!/bin/bash
#
# test_msd_metrics.sh
#		Metrics of the daemon: the format, what is refused, that they change with what happens.
#
# Usage: test_msd_metrics.sh [path of msd]

. "$(dirname "$0")/support/msd.sh"

CHECK=$(dirname "$0")/support/check_metrics.pl

# request METHOD PATH: what the daemon answers, head and body.
request()
{
	perl -MIO::Socket::INET -e '
		my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $ARGV[0]) or die "connect: $!";
		print $socket "$ARGV[1] $ARGV[2] HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
		local $/;
		print <$socket>;
	' "$PORT" "$1" "$2"
}

# answered METHOD PATH PATTERN: the head of the answer.
answered()
{
	local head
	head=$(request "$1" "$2" | sed '/^\r$/q' | tr -d '\r')
	grep -qE -- "$3" <<<"$head" || fail "$1 $2 was answered \"$head\", nothing like \"$3\""
}

# samples: the page, checked, one sample a line; its status tells whether it is right.
samples()
{
	request GET /metrics | sed '1,/^\r$/d' | perl "$CHECK"
}

# sample PATTERN: waits until a line of the samples matches.
sample()
{
	local page
	for _ in $(seq $PATIENCE); do
		page=$(samples) || { fail "the page is wrong"; return; }
		grep -qE -- "^sherman_msd_$1\$" <<<"$page" && return
		sleep 0.1
	done
	fail "no sample is like \"$1\": $page"
}

serve()
{
	start --size 16M --metrics 127.0.0.1:0 --tenant-quota 'local 4M' "$@"
	PORT=$(grep -oE 'metrics at port [0-9]+' "$LOG" | grep -oE '[0-9]+$')
}

serve
answered GET /metrics '^HTTP/1.1 200 '
answered GET /metrics '^Content-Type: text/plain; version=0.0.4; charset=utf-8$'
answered HEAD /metrics '^HTTP/1.1 200 '
answered GET / '^HTTP/1.1 404 '
answered POST /metrics '^HTTP/1.1 405 '
answered PUT /metrics '^Allow: GET, HEAD$'
answered DELETE / '^HTTP/1.1 405 '
sample 'info\{version="[0-9.]+",memory="new"\} 1'
sample 'state\{state="serving"\} 1'
sample 'state\{state="draining"\} 0'
sample 'generation 1'
sample 'uptime_seconds [0-9.]+'
sample 'memory_bytes 16777216'
sample 'memory_used_bytes 0'
sample 'tenant_memory_bytes\{tenant="local"\} 0'
sample 'tenant_quota_bytes\{tenant="local"\} 4194304'
sample 'channels\{transport="shm"\} 0'
sample 'channels\{transport="tcp"\} 0'
sample 'channels\{transport="verbs"\} 0'
sample 'chains_refused_total 0'
sample 'call_duration_seconds_count\{method="create"\} 0'
sample 'locks_recovered_total 0'
sample 'authentication_failures_total 0'

# who speaks another protocol is counted as refused
sample 'connections_refused_total 0'
perl -MIO::Socket::UNIX -e '
	my $socket = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die;
	print $socket "GET /metrics HTTP/1.1\r\n\r\n" x 4;
	local $/;
	my $answer = <$socket>;
' "$DIRECTORY/socket"
sample 'connections_refused_total 1'
sample 'connections_accepted_total 1'
sample 'connections 0'

# the port is taken
expect 1 'cannot listen at' "$MSD" --memory "$DIRECTORY/other" --socket "$DIRECTORY/other.socket" --size 16M \
	--metrics "127.0.0.1:$PORT"

# another life: the generation, and how the memory was found
stop KILL 137
serve
sample 'generation 2'
sample 'info\{version="[0-9.]+",memory="recovered"\} 1'

# hold COUNT PROGRAM: a helper opens so many connections by PROGRAM, which may use $n and pushes the socket onto @held; READER ends it.
hold()
{
	rm -f "$DIRECTORY/held"
	perl -MIO::Socket::INET -MIO::Socket::UNIX -e '
		my ($count, $program, $flag, $port, $path) = @ARGV;
		our @held;
		$SIG{PIPE} = "IGNORE";
		for my $n (1 .. $count) { eval $program; die $@ if $@; }
		open(my $out, ">", $flag); close($out);
		while (1) { sleep 1; print $_ "x" for @held; }
	' "$1" "$2" "$DIRECTORY/held" "$PORT" "$DIRECTORY/socket" &
	READER=$!
	for _ in $(seq $PATIENCE); do [ -e "$DIRECTORY/held" ] && return; kill -0 "$READER" || break; sleep 0.05; done
	fail "$1 connections cannot be had"
}

let_go()
{
	kill "$READER"
	wait "$READER" 2>/dev/null
	READER=
}

# Scrapes that come to no end, a byte at a time, keep nobody out.
hold 200 '
	my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $port) or die "connect: $!";
	$socket->autoflush(1);
	print $socket "GET /metrics HTTP/1.1\r\nHost: ";
	push @held, $socket;'
answered GET /metrics '^HTTP/1.1 200 '
sample 'connections 0'
let_go
stop TERM 0

# Descriptors beyond what select() knows: the daemon has two for each local client.
if [ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -ge 4096 ]; then
	ulimit -n 4096
	serve
	hold 700 'push @held, IO::Socket::UNIX->new(Peer => $path) // die "$path: $!";'
	sample 'connections 700'
	[ "$(ls "/proc/$PID/fd" | wc -l)" -gt 1100 ] || fail "the daemon has no more than 1,100 descriptors"
	answered GET /metrics '^HTTP/1.1 200 '
	let_go
	stop TERM 0
else
	echo "skipped: metrics beyond 1,024 descriptors: the limit is $(ulimit -Hn)"
fi
if grep -q ' lo$' /proc/net/if_inet6 2>/dev/null; then
	serve --metrics '[::1]:0'
	stop TERM 0
fi

# A loop that hangs, here because what it was given as its standard error is a pipe that nobody empties: the page says so, and no sign of
# life is given, for the service manager to end it.
signs() { grep -c '^WATCHDOG=1$' "$NOTIFY.log"; }

# mark TEXT: what the daemon has told before is in NOTIFY.log.
mark()
{
	perl -MIO::Socket::UNIX -MSocket -e '
		my $socket = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Peer => $ARGV[0]) or die "$ARGV[0]: $!";
		send($socket, $ARGV[1], 0) or die $!;
	' "$NOTIFY" "$1"
	for _ in $(seq $PATIENCE); do grep -q "^$1\$" "$NOTIFY.log" && return; sleep 0.05; done
	fail "the listener does not hear"
}

# switches: how often the daemon's first thread has gone to sleep, if it sleeps.
switches()
{
	awk '/^State:/ { state = $2 } /^voluntary_ctxt_switches:/ && state == "S" { print $2 }' "/proc/$PID/task/$PID/status"
}

# hangs: it sleeps, and did not wake for longer than any wait of the loop.
hangs()
{
	local before
	before=$(switches)
	sleep 0.5
	[ -n "$before" ] && [ "$(switches)" = "$before" ]
}

PIPE=$DIRECTORY/pipe
mkfifo "$PIPE"
perl -MFcntl -e '
	sysopen(my $pipe, $ARGV[0], O_RDWR) or die "$ARGV[0]: $!";
	fcntl($pipe, 1031, 4096) or die "F_SETPIPE_SZ: $!";
	open(my $log, ">>", $ARGV[1]) or die;
	while (sysread($pipe, my $bytes, 4096)) { syswrite($log, $bytes); }
' "$PIPE" "$LOG" &
READER=$!
listen_to_signs
NOTIFY_SOCKET=$NOTIFY WATCHDOG_USEC=200000 NO_LOG=1 serve 2>"$PIPE"
for _ in $(seq $PATIENCE); do [ "$(signs)" -ge 3 ] && break; sleep 0.05; done
kill -STOP "$READER"
for _ in $(seq $PATIENCE); do
	for _ in $(seq 20); do kill -HUP "$PID"; sleep 0.005; done
	hangs && break
done
hangs || fail "the loop cannot be made to hang"
mark first
before=$(signs)
sample 'figures_age_seconds ([2-9]|[1-9][0-9]+)\.[0-9]+'
mark second
[ "$(signs)" = "$before" ] || fail "a loop that hangs gives signs of life"
kill -CONT "$READER"
for _ in $(seq $PATIENCE); do [ "$(signs)" -gt "$before" ] && break; sleep 0.05; done
[ "$(signs)" -gt "$before" ] || fail "a loop that goes on gives no sign of life"
sample 'figures_age_seconds 0\.[0-9]+'
stop TERM 0
kill "$READER"
wait "$READER" 2>/dev/null
READER=
stop_listening

finish
