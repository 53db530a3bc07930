# Machines that are network namespaces, joined by a switch (test/network/switch.c) that cuts, loses, delays, repeats and resets, and memory nodes
# on some of them. Sourced behind script/lib/common.sh and load.sh.
#
# Who sources it sets
#	MACHINES                   their numbers
#	SPACE                      what the namespaces' names begin with
#	PORT NODE_BYTES            of memory nodes
# and calls machines_prepare when there is a workplace with PostgreSQL in it.

# machines_prepare: builds the switch and the load into $WORK; makes $WORK/files, which belongs to the servers' user, and one tenant's new key, in
# $WORK/node.keys for memory nodes and in $WORK/postgres.keys for servers.
machines_prepare()
{
	make -s -C "$TOP/test/network" BUILD="$WORK" PG_CONFIG="$PGBIN/pg_config"
	install -d -o postgres "$WORK/files"
	install -m 600 -o postgres /dev/null "$WORK/node.keys"
	printf 'shop %s\n' "$(od -An -N32 -v -tx1 /dev/urandom | tr -d ' \n')" >"$WORK/node.keys"
	install -m 600 -o postgres "$WORK/node.keys" "$WORK/postgres.keys"
	export LOAD_PROGRAM=$WORK/load
}

# ---- the network

switch_pid=

address()
{
	echo "10.77.7.$(($1 + 1))"
}

# net COMMAND: tells the switch.
net()
{
	"$WORK/switch" --tell "$WORK/switch.control" "$*"
}

# total dropped|reset: frames, on all links.
total()
{
	net counters | awk -v column="$([ "$1" = dropped ] && echo 4 || echo 5)" '{ n += $column } END { print n + 0 }'
}

# inside NUMBER COMMAND...: replaces the shell by the command, in a namespace, as the servers' user.
inside()
{
	local space=$SPACE$1

	shift
	cd /
	exec ip netns exec "$space" setpriv --reuid postgres --regid postgres --init-groups "$@"
}

# Not every machine has what it takes: that is said, and is no failure.
make_network()
{
	local i ports=()

	for i in $MACHINES; do
		ip netns add "$SPACE$i" 2>"$WORK/network.err" || skip
		ports+=("tap:$SPACE$i")
	done
	"$WORK/switch" "$WORK/switch.control" "${ports[@]}" 2>"$WORK/network.err" &
	switch_pid=$!
	wait_for 10 net counters || skip
	for i in $MACHINES; do
		ip -n "$SPACE$i" link set lo up
		ip -n "$SPACE$i" addr add "$(address "$i")/24" dev eth0
		ip -n "$SPACE$i" link set eth0 up
	done
}

skip()
{
	say "skipped: no network namespaces here: $(head -n 1 "$WORK/network.err")"
	exit 0
}

remove_network()
{
	local i pid

	for i in $MACHINES; do
		ip netns pids "$SPACE$i" 2>/dev/null | while read -r pid; do
			kill -KILL "$pid" 2>/dev/null || true
		done
		ip netns del "$SPACE$i" 2>/dev/null || true
	done
	[ -z "$switch_pid" ] || kill "$switch_pid" 2>/dev/null || true
	switch_pid=
}

# ---- memory nodes

start_node()
{
	local files=$WORK/files/node$1

	(inside "$1" "$PGBIN/msd" --memory "$MEMORY/node$1" --socket "$files.socket" --size $NODE_BYTES \
		--listen "$(address "$1"):$PORT" --keys "$WORK/node.keys" --log "$files.log" >>"$files.out" 2>&1) &
	echo $! >"$files.pid"
	disown $!
	wait_for 30 node_listens "$1"
}

node_listens()
{
	ip netns exec "$SPACE$1" ss -Hltn "sport = :$PORT" | grep -q LISTEN
}

# stop_node NUMBER SIGNAL: and waits for its end.
stop_node()
{
	local pid

	pid=$(cat "$WORK/files/node$1.pid")
	kill "-$2" "$pid"
	wait_for 60 not kill -0 "$pid"
}
