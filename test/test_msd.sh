#!/bin/bash
#
# test_msd.sh
#		The daemon as a program: flags, configuration file, errors, log, signals, restart over its memory, what it is
#		installed with.
#
# Usage: test_msd.sh [path of msd]; without it, msd beside this script, where make -C test puts both.

. "$(dirname "$0")/support/msd.sh"

# flags and their errors
expect 0 '--memory FILE' "$MSD" --help
expect 0 '^msd \(sherman\) [0-9]' "$MSD" --version
expect 2 'memory.*missing' "$MSD"
expect 2 'size.*missing' "$MSD" --memory "$DIRECTORY/memory" --socket "$DIRECTORY/socket"
expect 2 'unknown flag "--fast"' "$MSD" --fast
expect 2 'is not a flag' "$MSD" memory
expect 2 'needs a value' "$MSD" --memory
needed=(--memory "$DIRECTORY/memory" --socket "$DIRECTORY/socket" --size 16M)
expect 2 '"client-user" must be a user of this machine' "$MSD" "${needed[@]}" --client-user no-such-user
expect 2 '"client-group" must be a group of this machine' "$MSD" "${needed[@]}" --client-group -1
expect 2 'unknown flag "--other-users"' "$MSD" "${needed[@]}" --other-users
expect 2 'number from 1048576' "$MSD" "${needed[@]}" --size 12
expect 2 'number from 1048576' "$MSD" "${needed[@]}" --size 1X
expect 2 'number from 1 to 65535' "$MSD" "${needed[@]}" --channels 0
expect 2 'number from 0 to 3600' "$MSD" "${needed[@]}" --drain-seconds 3601
expect 2 'off, try or on' "$MSD" "${needed[@]}" --huge-pages yes
expect 2 'auto, off or' "$MSD" "${needed[@]}" --numa-node first
for address in 'localhost' ':1' '127.0.0.1:' '127.0.0.1:x' '127.0.0.1:65536' '::1:5' '[::1]' '[:5' 'a b:1' '[]:5'; do
	expect 2 '"listen" must be host:port' "$MSD" "${needed[@]}" --listen "$address"
	expect 2 '"metrics" must be host:port' "$MSD" "${needed[@]}" --metrics "$address"
done
for quota in '' 'orders' 'orders x' 'orders 12' ' 4G' 'orders 4G 5G' "$(printf 'x%.0s' {1..64}) 4G"; do
	expect 2 "tenant's name and a size" "$MSD" "${needed[@]}" --tenant-quota "$quota"
done
many=()
for i in $(seq 17); do many+=(--tenant-quota "tenant$i 1M"); done
expect 2 'more than 16 tenants' "$MSD" "${needed[@]}" "${many[@]}"
expect 2 'needs "keys = FILE"' "$MSD" "${needed[@]}" --listen 127.0.0.1:0
expect 2 'exclude each other' "$MSD" "${needed[@]}" --listen 127.0.0.1:0 --keys a --insecure-loopback
expect 2 '"listen = host:port" is missing' "$MSD" "${needed[@]}" --keys a
expect 2 '"listen = host:port" is missing' "$MSD" "${needed[@]}" --insecure-loopback
expect 2 'cannot read the configuration file' "$MSD" --config "$DIRECTORY/nothing"

# who only drops serves nobody: neither the socket's directory nor a free port is needed
(umask 077 && printf 'orders %064d\n' 1 > "$DIRECTORY/drop.keys")
expect 1 'never came to this memory' "$MSD" "${needed[@]}" --socket /nonexistent/socket --listen 192.0.2.1:1 --keys "$DIRECTORY/drop.keys" \
	--drop-tenant nobody
rm -f "$DIRECTORY"/memory* "$DIRECTORY/drop.keys"

# what the machine does not give: a hint each
expect 1 'hint: ' "$MSD" --memory /nonexistent/memory --socket "$DIRECTORY/socket" --size 16M
expect 1 'hint: ' "$MSD" --memory "$DIRECTORY/memory" --socket /nonexistent/socket --size 16M
expect 1 'cannot open the log file.*' "$MSD" "${needed[@]}" --log /nonexistent/log
expect 1 'no NUMA node 1000.*' "$MSD" "${needed[@]}" --numa-node 1000
expect 1 'hint: set "numa-node"' "$MSD" "${needed[@]}" --numa-node 1000
expect 1 'no loopback address' "$MSD" "${needed[@]}" --metrics 192.0.2.1:0
expect 1 'hint: "metrics" is a free port' "$MSD" "${needed[@]}" --metrics 192.0.2.1:0
if [ "$(stat -f -c %T "$DIRECTORY")" != tmpfs ] || ! grep -q '\[force\]' /sys/kernel/mm/transparent_hugepage/shmem_enabled 2>/dev/null &&
	! grep " $BASE tmpfs " /proc/mounts | grep -q 'huge='; then
	expect 1 'cannot have huge pages' "$MSD" "${needed[@]}" --huge-pages on
	expect 1 'hint: put the memory file on hugetlbfs' "$MSD" "${needed[@]}" --huge-pages on
fi
rm -f "$DIRECTORY"/memory*

# the configuration file, and flags that win over it
cat > "$DIRECTORY/config" <<END
# a comment
memory = '$DIRECTORY/of-the-file'
socket = "$DIRECTORY/socket"   # another one
size = 32 MB
verbose = on
numa-node = off
huge-pages = try
tenant-quota = orders 2G
tenant-quota = local 8M
END
printf 'size=4M\nsise = 3\n' > "$DIRECTORY/bad.config"
expect 2 'config line 2: .*no setting "sise"' "$MSD" --config "$DIRECTORY/bad.config"
printf 'memory\n' > "$DIRECTORY/bad.config"
expect 2 'line 1: a line is "name = value"' "$MSD" --config "$DIRECTORY/bad.config"
printf 'verbose = perhaps\n' > "$DIRECTORY/bad.config"
expect 2 'must be on or off' "$MSD" --config "$DIRECTORY/bad.config"
start --config "$DIRECTORY/config" --size=16M
logged 'info: serving .*/memory \(new\).* 0 of 16 MB'
[ -e "$DIRECTORY/of-the-file" ] && fail "the flag did not win over the file"

# a second daemon over the same memory is refused
expect 1 'another msd serves' "$MSD" --memory "$DIRECTORY/memory" --socket "$DIRECTORY/socket2" --size 16M

# SIGHUP: the log anew, settings that may change, those that may not; what is wrong changes nothing
mv "$LOG" "$LOG.old"
kill -HUP "$PID"
wait_for 'info: reloaded'
not_logged 'quota|restart|old settings'
forget
sed -i 's/orders 2G/orders 3G/; s/local 8M/archive 1M/; s/numa-node = off/numa-node = auto/' "$DIRECTORY/config"
echo 'drain-seconds = 7' >> "$DIRECTORY/config"
kill -HUP "$PID"
wait_for 'info: reloaded'
logged 'tenant "orders" has a quota of 3145728 KB now, it was 2097152 KB'
logged 'tenant "archive" has a quota of 1024 KB now$'
logged 'tenant "local" has no quota any more'
logged 'clients will have 7 seconds to go, it was 2'
logged 'changes of "numa-node" wait for a restart'
forget
echo 'sise = 3' >> "$DIRECTORY/config"
sed -i 's/orders 3G/orders 4G/' "$DIRECTORY/config"
kill -HUP "$PID"
wait_for 'info: reloaded'
logged 'the old settings stay in force: .*no setting "sise"'
not_logged 'quota'
forget
sed -i '/sise/d; s/verbose = on/verbose = off/' "$DIRECTORY/config"
kill -HUP "$PID"
wait_for 'info: reloaded'
logged 'tenant "orders" has a quota of 4194304 KB now, it was 3145728 KB'
logged 'details are not logged now'

# pipes in the place of its files do not stop it: not as settings, not as the log
forget
mv "$DIRECTORY/config" "$DIRECTORY/config.kept"
mkfifo "$DIRECTORY/config"
kill -HUP "$PID"
wait_for 'info: reloaded'
logged 'the old settings stay in force: .*/config": it is no regular file'
rm "$DIRECTORY/config"
mv "$DIRECTORY/config.kept" "$DIRECTORY/config"
forget
mv "$LOG" "$LOG.old"
mkfifo "$LOG"
mv "$LOG.old" "$LOG.kept"
kill -HUP "$PID"
for _ in $(seq $PATIENCE); do grep -q 'cannot be opened anew' "$LOG.kept" && break; sleep 0.05; done
rm "$LOG"
mv "$LOG.kept" "$LOG"
logged 'the log file cannot be opened anew'
kill -HUP "$PID"
wait_for 'info: reloaded'

# clean ends, and the memory kept over them; SIGKILL, and the memory recovered
stop TERM 0
logged 'info: stopped'
[ -e "$DIRECTORY/socket" ] && fail "the socket was left behind"
start --size 16M && logged '\(kept\)'
stop INT 0
start --size 16M
stop KILL 137
start --size 16M && logged '\(recovered\)'
stop TERM 0

# another size is other memory
start --size 8M && logged '\(kept\).* 0 of 8 MB' && logged 'had 16 MB .*: its content is kept'
stop TERM 0

# a tmpfs with huge pages, where we may mount one
huge=$DIRECTORY/huge
mkdir "$huge"
if mount -t tmpfs -o size=64m,huge=always none "$huge" 2>/dev/null; then
	start --memory "$huge/memory" --size 8M --huge-pages on && logged 'huge pages of tmpfs'
	stop TERM 0
	umount "$huge"
fi

# NUMA: node 0 is everywhere
if [ -d /sys/devices/system/node/node0 ]; then
	start --size 8M --numa-node 0 && logged 'NUMA node 0'
	grep -qE 'bind' "/proc/$PID/numa_maps" 2>/dev/null || [ ! -e "/proc/$PID/numa_maps" ] || fail "memory is not bound"
	stop TERM 0
fi

# the service manager: every word, in its order; a sign of life twice in the watchdog's time while the loop turns
listen_to_signs
NOTIFY_SOCKET=$NOTIFY WATCHDOG_USEC=200000 start --size 8M
for _ in $(seq $PATIENCE); do [ "$(grep -c '^WATCHDOG=1$' "$NOTIFY.log")" -ge 3 ] && break; sleep 0.05; done
kill -HUP "$PID"
wait_for 'info: reloaded'
stop TERM 0
for _ in $(seq $PATIENCE); do grep -q 'STOPPING=1' "$NOTIFY.log" && break; sleep 0.05; done
stop_listening
told=$(grep -v WATCHDOG "$NOTIFY.log" | sed 's/USEC=[0-9]*/USEC=N/' | tr '\n' ';')
[ "$told" = 'STATUS=opening the memory;READY=1 STATUS=serving;RELOADING=1 MONOTONIC_USEC=N;READY=1;STOPPING=1 STATUS=draining;' ] ||
	fail "the service manager was told: $told"
[ "$(grep -c '^WATCHDOG=1$' "$NOTIFY.log")" -ge 3 ] || fail "no signs of life: $(cat "$NOTIFY.log")"

# a snapshot that is none: refused, and left alone; a damaged one: kept, and served all the same; one that a killed daemon began goes
expect 2 'are the same file' "$MSD" "${needed[@]}" --snapshot "$DIRECTORY/memory"
rm -f "$DIRECTORY/memory"
echo nothing > "$DIRECTORY/saved"
expect 1 'cannot serve: the snapshot ".*/saved" cannot be loaded: it is no snapshot.*it is not touched' \
	"$MSD" "${needed[@]}" --snapshot "$DIRECTORY/saved"
[ "$(cat "$DIRECTORY/saved")" = nothing ] || fail "the file is not what it was"
head -c 9000 /dev/zero > "$DIRECTORY/saved"
head -c 9000 /dev/zero > "$DIRECTORY/saved.new"
start --size 8M --snapshot "$DIRECTORY/saved"
logged 'warning: the snapshot ".*/saved" is refused: .*; it is kept as ".*/saved\.kept-damaged-[0-9TZ]*"'
logged '\(new\)'
ls "$DIRECTORY" | grep -q "^saved\.kept-damaged-" && ! [ -e "$DIRECTORY/saved" ] && ! [ -e "$DIRECTORY/saved.new" ] || fail "files: $(ls "$DIRECTORY")"
stop TERM 0
logged 'there are no trees: no snapshot is needed'
logged 'hint: msd --list-files .* --remove-file removes one'
rm -f "$DIRECTORY/memory"

# what was kept aside is listed, and removed: that, and nothing else, whatever has its name
files=(--memory "$DIRECTORY/memory" --snapshot "$DIRECTORY/saved")
stamp=20261123T121314Z
me=$(id -un)
expect 2 '"memory" or "snapshot" is missing' "$MSD" --list-files
expect 2 'exclude each other' "$MSD" "${files[@]}" --list-files --remove-file "$DIRECTORY/saved"
expect 2 'exclude each other' "$MSD" "${files[@]}" --remove-file "$DIRECTORY/saved" --drop-tenant orders
expect 2 '"remove-file" must be a file' "$MSD" "${files[@]}" --remove-file ''
echo "remove-file = $DIRECTORY/saved" > "$DIRECTORY/bad.config"
expect 2 'no setting "remove-file"' "$MSD" --config "$DIRECTORY/bad.config"
damaged=$(ls "$DIRECTORY"/saved.kept-damaged-*)
expect 0 "^kept +[1-9][0-9]* +20[0-9-]+T[0-9:]+Z +$me +damaged +$damaged\$" "$MSD" "${files[@]}" --list-files
# a daemon that was told such a name serves it; without it, it can go
kept=$DIRECTORY/memory.kept-other-shape-$stamp
start --size 8M --memory "$kept"
expect 0 "^kept +[1-9][0-9]* +2026-11-23T12:13:14Z +$me +other-shape +$kept\$" "$MSD" "${files[@]}" --list-files
expect 1 'in use' "$MSD" "${files[@]}" --remove-file "$kept"
[ -e "$kept" ] || fail "memory that is served was removed"
expect 0 "^memory +[1-9][0-9]* .* served +$kept\$" "$MSD" --memory "$kept" --list-files
stop KILL 137
expect 0 "^memory +[1-9][0-9]* .* not-served +$kept\$" "$MSD" --memory "$kept" --list-files
# A link, or what is no file, is none of ours.
ln -s "$kept" "$DIRECTORY/link"
mkdir "$DIRECTORY/no-file"
for name in link no-file; do
	[ "$("$MSD" --snapshot "$DIRECTORY/$name" --list-files | wc -l)" -eq 1 ] || fail "$name is listed as a file"
done
for name in "$kept" "$DIRECTORY/saved" "$DIRECTORY/memory" "$DIRECTORY/./${damaged##*/}" "${damaged##*/}" "$damaged/" /etc/passwd; do
	expect 1 'not removed: .*no file of this user that was set aside' "$MSD" --snapshot "$DIRECTORY/saved" --remove-file "$name"
done
# names alone are not enough, nor are they all right
text=$DIRECTORY/memory.kept-damaged-$stamp
echo text > "$text"
expect 1 'not removed: .*is none: it is not touched' "$MSD" "${files[@]}" --remove-file "$text"
cp "$text" "$DIRECTORY/saved.kept-damaged-$stamp"
expect 1 'not removed: .*is none: it is not touched' "$MSD" "${files[@]}" --remove-file "$DIRECTORY/saved.kept-damaged-$stamp"
ln -s "$kept" "$DIRECTORY/memory.kept-link-$stamp"
mkdir "$DIRECTORY/memory.kept-directory-$stamp"
mkfifo "$DIRECTORY/memory.kept-pipe-$stamp"
cp --sparse=always "$kept" "$kept.x"
cp --sparse=always "$kept" "$DIRECTORY/memory.kept-spaces- 026 1 3T121314Z"
unlisted=("$DIRECTORY/memory.kept-link-$stamp" "$DIRECTORY/memory.kept-directory-$stamp" "$DIRECTORY/memory.kept-pipe-$stamp" "$kept.x"
	"$DIRECTORY/memory.kept-spaces- 026 1 3T121314Z")
if [ "$(id -u)" = 0 ]; then
	cp --sparse=always "$kept" "$kept.1"
	chown nobody "$kept.1"
	expect 0 "^kept .* nobody +other-shape +$kept.1\$" "$MSD" "${files[@]}" --list-files
	unlisted+=("$kept.1")
fi
for name in "${unlisted[@]}"; do
	expect 1 'not removed: .*no file of this user that was set aside' "$MSD" "${files[@]}" --remove-file "$name"
	[ -e "$name" ] || fail "$name is gone"
done
cp --sparse=always "$kept" "$kept.99"
for name in "$kept" "$kept.99" "$damaged"; do
	expect 0 '^removed ' "$MSD" "${files[@]}" --remove-file "$name"
	! [ -e "$name" ] || fail "$name is still there"
done
[ "$(cat "$text")" = text ] || fail "a text is not what it was"
rm -rf "$DIRECTORY"/memory* "$DIRECTORY"/saved*

# others' files of such names do not keep it from keeping its own
if [ "$(id -u)" = 0 ]; then
	for number in $(seq 16); do
		echo > "$DIRECTORY/saved.kept-damaged-$stamp.$number"
	done
	chown nobody "$DIRECTORY"/saved.kept-*
	head -c 9000 /dev/zero > "$DIRECTORY/saved"
	start --size 8M --snapshot "$DIRECTORY/saved"
	stop TERM 0
	rm -f "$DIRECTORY"/memory* "$DIRECTORY"/saved*
fi

# what it is installed with
if [ -d "${TOP:-/nonexistent}/doc" ]; then
	for unit in msd.service:msd:sherman msd@.service:%i:sherman/%i; do
		IFS=: read -r file config directory <<<"$unit"
		sed "s|@bindir@|$(cd "$(dirname "$MSD")" && pwd)|; s|@config@|$config|; s|@directory@|$directory|" \
			"$TOP/doc/operate/msd.service.in" > "$DIRECTORY/$file"
		! grep '@[a-z]*@' "$DIRECTORY/$file" || fail "$file: a place that is not filled"
		if command -v systemd-analyze >/dev/null; then
			expect 0 '^$' systemd-analyze verify --man=no "$DIRECTORY/$file"
		fi
	done
	if command -v mandoc >/dev/null; then
		expect 0 '^$' mandoc -Tlint -Wwarning "$TOP/doc/operate/msd.8"
	elif command -v man >/dev/null; then
		expect 0 '^$' bash -c "man --warnings -l '$TOP/doc/operate/msd.8' 2>&1 >/dev/null"
	fi
	for name in $("$MSD" --help | grep -oE '^  --[a-z-]+' | tr -d ' -'); do
		tr -d - < "$TOP/doc/operate/msd.8" | grep -q "$name" || fail "msd.8 does not tell of $name"
		grep -qE '^(help|version|config|droptenant|listfiles|removefile)$' <<<"$name" && continue
		tr -d - < "$TOP/doc/operate/msd.conf" | grep -qE "^#?$name = " || fail "msd.conf does not tell of $name"
	done
	# The example is a configuration that is understood.
	sed "s|^memory = .*|memory = $DIRECTORY/memory|; s|^socket = .*|socket = $DIRECTORY/socket|; s|^size = .*|size = 8M|" \
		"$TOP/doc/operate/msd.conf" > "$DIRECTORY/example"
	start --config "$DIRECTORY/example"
	stop TERM 0
fi

finish
