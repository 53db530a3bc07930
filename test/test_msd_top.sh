#!/bin/bash
#
# test_msd_top.sh
#		`msd top`: flags, one look for scripts, and the screen on a terminal: sizes, keys, signals, a memory node that goes and comes.
#
# Usage: test_msd_top.sh [path of msd]

. "$(dirname "$0")/support/msd.sh"

# port_of: where the daemon's metrics are.
port_of()
{
	grep -oE 'metrics at port [0-9]+' "$LOG" | grep -oE '[0-9]+$'
}

# flags
expect 0 'msd top: memory nodes on a terminal' "$MSD" top --help
expect 0 'msd top' "$MSD" --help
expect 2 '"nowhere" is not host:port' "$MSD" top nowhere
expect 2 '--delay must be a number from 1 to 3600, not "0"' "$MSD" top -d 0
expect 2 'must be a number from 1' "$MSD" top -n -1
expect 2 'must be a number from 1' "$MSD" top -n 1x
expect 2 'Try "msd top --help"' "$MSD" top --fast
expect 2 'cannot read "/nonexistent/file": No such file' "$MSD" top -c /nonexistent/file
expect 2 'more than 32 memory nodes' "$MSD" top $(printf '127.0.0.1:%d ' $(seq 1 33))
printf 'size = 16M\n' >"$DIRECTORY/conf"
expect 2 'has no setting "metrics"; add one' "$MSD" top -c "$DIRECTORY/conf"
printf 'sizes = 16M\n' >"$DIRECTORY/conf"
expect 2 'there is no setting "sizes"' "$MSD" top -c "$DIRECTORY/conf"

# a look
start --size 16M --metrics 127.0.0.1:0 --tenant-quota 'local 4M'
PORT=$(port_of)
expect 0 "^127.0.0.1:$PORT +serving +0m[0-9]+s +16.0M +0 +0% " "$MSD" top --once "127.0.0.1:$PORT"
expect 0 "^127.0.0.1:$PORT +local +0 +4.0M +0% +0\$" "$MSD" top --once "127.0.0.1:$PORT"
printf 'metrics = 127.0.0.1:%d\n' "$PORT" >"$DIRECTORY/conf"
expect 0 "^127.0.0.1:$PORT +serving" "$MSD" top --once -c "$DIRECTORY/conf"
expect 0 "^127.0.0.1:$PORT +serving" "$MSD" top --once "localhost:$PORT" "127.0.0.1:$PORT"
looks=$("$MSD" top -n 2 -d 1 "127.0.0.1:$PORT")
[ "$(grep -c '^MEMORY NODE' <<<"$looks")" = 2 ] || fail "two looks are not two: $looks"
[ "$(grep -c 'since its start' <<<"$looks")" = 1 ] || fail "the second look is not one since the first: $looks"
! grep -q $'\033' <<<"$looks" || fail "what is no terminal gets sequences for one"
# those that do not answer: nobody there; one that listens and says nothing; one that says something else; one that talks for ever
expect 1 '^127.0.0.1:1 +away: Connection refused' "$MSD" top --once 127.0.0.1:1 "127.0.0.1:$PORT"
expect 1 "^127.0.0.1:$PORT +serving" "$MSD" top --once 127.0.0.1:1 "127.0.0.1:$PORT"
expect 1 '^nowhere.invalid:9 +away: ' "$MSD" top --once nowhere.invalid:9
# stranger CODE: a server that does this with each connection, $c; sets STRANGER, its port.
stranger()
{
	rm -f "$DIRECTORY/port"
	perl -MIO::Socket::INET -e '
		$SIG{PIPE} = "IGNORE";
		my $s = IO::Socket::INET->new(Listen => 8, LocalAddr => "127.0.0.1", ReuseAddr => 1) or die;
		open(my $out, ">", "$ARGV[0].new"); print $out $s->sockport; close $out; rename("$ARGV[0].new", $ARGV[0]);
		while (my $c = $s->accept) { eval $ARGV[1]; }' "$DIRECTORY/port" "$1" &
	READER=$!
	for _ in $(seq $PATIENCE); do [ -e "$DIRECTORY/port" ] && break; sleep 0.05; done
	STRANGER=$(cat "$DIRECTORY/port")
}
stranger_ends()
{
	kill "$READER"
	wait "$READER" 2>/dev/null
	READER=
}
stranger 'push @kept, $c'
expect 1 'away: Connection timed out' "$MSD" top --once "127.0.0.1:$STRANGER"
stranger_ends
stranger 'sysread $c, $b, 1000; print $c "HTTP/1.0 200 OK\r\n\r\nhello\n"; close $c'
expect 1 'away: what answers there is no msd' "$MSD" top --once "127.0.0.1:$STRANGER"
stranger_ends
stranger 'sysread $c, $b, 1000; print $c "HTTP/1.0 404 Not Found\r\n"; close $c'
expect 1 'away: what answers there is no msd' "$MSD" top --once "127.0.0.1:$STRANGER"
stranger_ends
stranger 'sysread $c, $b, 1000; print $c "HTTP/1.0 200 OK\r\n\r\n"; 1 while print $c "x" x 100000; close $c'
expect 1 'away: ' "$MSD" top --once "127.0.0.1:$STRANGER"
stranger_ends

# On a terminal. The screen is played: what the last look left on it, line by line.
cat >"$DIRECTORY/terminal.pl" <<'PERL'
use strict;
use warnings;
use IO::Pty;
use POSIX ();
use Time::HiRes qw(sleep time);

my ($msd, $pid_file, $address, $restart) = @ARGV;
my $pty = IO::Pty->new;
my $slave = $pty->slave;
$slave->set_winsize(40, 100);
my $settings = `stty -g < ${\$slave->ttyname}`;
my $child = fork();
if (!$child)
{
	POSIX::setsid();
	$pty->make_slave_controlling_terminal;
	POSIX::dup2(fileno($slave), $_) foreach 0 .. 2;
	exec $msd, 'top', '-d', '1', $address, '127.0.0.1:1';
}
my ($raw, @screen, $row, $column) = ('', 0, 0);
# What has come of a sequence that comes in two parts.
my $pending = '';
($row, $column) = (0, 0);

sub play
{
	my ($text) = @_;

	while (length $text)
	{
		if ($text =~ s/^\e\[H//) { ($row, $column) = (0, 0); }
		elsif ($text =~ s/^\e\[K//) { $screen[$row] = substr(($screen[$row] // '') . ' ' x 200, 0, $column); }
		elsif ($text =~ s/^\e\[J//) { $#screen = $row; }
		elsif ($text =~ s/^\e\[\?(1049|25)[hl]//) { }
		elsif ($text =~ s/^\r\n//) { $row++; $column = 0; }
		elsif ($text =~ s/^([ -~]+)//) { my $line = ($screen[$row] // '') . ' ' x 200; substr($line, $column, length $1) = $1; $screen[$row] = $line; $column += length $1; }
		else { die "a strange sequence: " . join(' ', map { sprintf '%02x', ord } split //, substr($text, 0, 8)) . "\n"; }
		die "row $row\n" if $row > 200;
	}
	return;
}

# Plays what comes until the screen matches, or the time is over.
sub until_shown
{
	my ($what, $pattern) = @_;
	my $end = time + 60;

	while (time < $end)
	{
		my $bits = '';
		vec($bits, fileno($pty), 1) = 1;
		if (select($bits, undef, undef, 0.2) > 0)
		{
			sysread($pty, my $more, 65536) or last;
			$raw .= $more;
			$more = $pending . $more;
			$pending = $more =~ s/(\e[^A-Za-z]*|\r)\z// ? $1 : '';
			play($more);
		}
		return print("ok: $what\n") if join("\n", map { s/ +$//r } grep { defined } @screen) =~ $pattern;
	}
	print "FAILED: $what: nothing like $pattern in\n" . join("\n", map { $_ // '' } @screen) . "\n";
	return;
}

sub resize
{
	my ($rows, $columns) = @_;

	@screen = ();
	$slave->set_winsize($rows, $columns);
	kill 'WINCH', $child;
	return;
}

until_shown('both memory nodes', qr/^MEMORY NODE.*\n\Q$address\E +serving.*\n127\.0\.0\.1:1 +away: Connection refused/s);
until_shown('rates since the last look', qr/^\Q$address\E +\S+ +\S+ +\S+ +\S+ +0$/m);
until_shown('what ends it', qr/every 1 s; q ends it$/);
resize(4, 30);
until_shown('a small terminal', qr/^MEMORY NODE              STATE\n\Q$address\E +servi\n127\.0\.0\.1:1              away:\n?$/);
resize(40, 100);
until_shown('a large one again', qr/every 1 s; q ends it$/);
kill 'KILL', do { open(my $in, '<', $pid_file) or die; my $pid = <$in>; chomp $pid; $pid };
until_shown('a memory node that goes', qr/^\Q$address\E +away: Connection refused; 0 of 16\.0M were in use$/m);
open(my $flag, '>', $restart) or die;
close $flag;
until_shown('and comes', qr/^\Q$address\E +serving/m);
print "FAILED: no screen of its own\n" if $raw !~ /^\e\[\?1049h/;
if ($ENV{END} eq 'q') { syswrite($pty, 'xq'); } elsif ($ENV{END} eq 'key') { syswrite($pty, "\003"); } else { kill $ENV{END}, $child; }
my $given_back = qr/\e\[\?25h\e\[\?1049l$/;
my ($end, $ended) = (time + 60, 0);
# Race -- it may have ended before what it wrote last has come through the terminal.
while (time < $end && !($ended && $raw =~ $given_back))
{
	my $bits = '';
	$ended ||= waitpid($child, POSIX::WNOHANG()) != 0;
	vec($bits, fileno($pty), 1) = 1;
	$raw .= $bits if select($bits, undef, undef, 0.1) > 0 && sysread($pty, $bits, 65536);
}
print $? == 256 ? "ok: ends by $ENV{END}, and says that a memory node did not answer\n" : "FAILED: ended by $ENV{END} with $?\n";
print "FAILED: the screen is not given back\n" if $raw !~ $given_back;
print "FAILED: the terminal's settings are not given back\n" if `stty -g < ${\$slave->ttyname}` ne $settings;
PERL
if perl -MIO::Pty -e 1 2>/dev/null; then
	for end in q key TERM; do
		rm -f "$DIRECTORY/again"
		echo "$PID" >"$DIRECTORY/pid"
		END=$end timeout 300 perl "$DIRECTORY/terminal.pl" "$MSD" "$DIRECTORY/pid" "127.0.0.1:$PORT" "$DIRECTORY/again" >"$DIRECTORY/played" 2>&1 &
		READER=$!
		for _ in $(seq $PATIENCE); do [ -e "$DIRECTORY/again" ] || ! kill -0 $READER 2>/dev/null && break; sleep 0.05; done
		# It was killed, unless the terminal has not got so far.
		kill -KILL "$PID" 2>/dev/null
		wait "$PID" 2>/dev/null
		start --size 16M --metrics "127.0.0.1:$PORT" --tenant-quota 'local 4M'
		wait "$READER" || fail "the terminal ended with $?"
		READER=
		[ "$(grep -c '^ok' "$DIRECTORY/played")" = 8 ] && ! grep -q FAILED "$DIRECTORY/played" || fail "on a terminal: $(cat "$DIRECTORY/played")"
	done
else
	echo "skipped: IO::Pty is not installed, so nothing was shown on a terminal"
fi
stop TERM 0
finish
