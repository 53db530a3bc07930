# Two memory nodes that serve verbs in the test machine itself, for a PostgreSQL there. Sourced behind script/lib/common.sh.

# verbs_nodes BYTES: starts them; sets VERBS_SETTINGS, the lines of a server's configuration. An emulated processor compiles a query for
# seconds: jit is off. On a machine with other work it may stand still for more than the 10 s of sherman.operation_timeout, behind which a
# memory node is away: who sources this takes none away.
verbs_nodes()
{
	local nodes

	NODE_PIDS=()
	keys_create
	node_start node1 "$RDMA_ADDRESS:0" --size "$1" --keys "$MEMORY/keys" --verbs rxe0
	nodes=verbs:$RDMA_ADDRESS:$PORT
	node_start node2 "$RDMA_ADDRESS:0" --size "$1" --keys "$MEMORY/keys" --verbs rxe0
	nodes+=", verbs:$RDMA_ADDRESS:$PORT"
	VERBS_SETTINGS="sherman.memory_nodes = '$nodes'
sherman.key_file = '$MEMORY/keys'
autovacuum = off
jit = off
sherman.operation_timeout = 5min
sherman.attach_timeout = 5min"
}
