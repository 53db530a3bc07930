/*
 * service_descend.c
 *		Lookups that clients offload (offload.h): from an inner node to a leaf in this memory, by integers.
 *
 * A node is copied at one instant and validated as by any reader, by its sum or stamps, its tree, address and level.
 * The descent ends at a node that is elsewhere, not the tree's, or invalid, or where integers do not decide; nothing
 * is waited for, and the client goes on by itself. It validates the result, the leaf's address and perhaps its image,
 * as if it had read it. Requests are not trusted: all that node.c asserts of a bound is checked, and only units of a
 * tree of the caller's are read.
 */
#include "tree/service/service_state.h"
#include "tree/node/inner.h"

/* The bound and format of a request. False: there is no such bound in such a tree. */
static bool
descent_read(const DirectoryDescent *request, TreeBound *bound, NodeGeometry *g)
{
	TreeFormat format = {.cell_bytes = request->cell_bytes,
	                     .norm_bytes = request->norm_bytes,
	                     .lossless = (request->flags & DESCENT_LOSSLESS) != 0};
	bool whole;

	if (!format_valid(&format) || (request->flags & ~DESCENT_FLAGS) != 0 || request->level == 0 ||
	    request->level >= LEVELS_MAX || request->norm_length > request->norm_bytes || request->side < -1 ||
	    request->side > 1)
		return false;
	*g = node_geometry(&format);
	*bound = (TreeBound){
		.key = {.high = (request->flags & DESCENT_HIGH) != 0,
	            .cut = (request->flags & DESCENT_CUT) != 0,
	            .block = request->block,
	            .offset = request->offset},
		.norm_bits_valid = (request->flags & DESCENT_BITS_VALID) != 0,
		.norm_length = request->norm_length,
		.norm_exact = (request->flags & DESCENT_EXACT) != 0,
		.side = request->side,
	};
	memcpy(bound->key.norm, request->norm, sizeof(bound->key.norm));
	whole = bound->norm_bits_valid && bound->norm_length == format.norm_bytes;
	return whole || !bound->key.cut;
}

/*
 * Copies a node of this level, of the record's tree.  False: that is not to be had now.  The pointer is the caller's word, or that of
 * a node which its clients wrote: its unit must be one of this very record, for others have trees of this id, too.  A node
 * lies in one unit.
 */
static bool
node_take(Service *service, const NodeGeometry *g, const ServiceRecord *record, uint64_t pointer,
          uint32_t level, uint64_t *node)
{
	uint64_t offset = pointer_offset(pointer);

	return pointer_address(pointer) != POINTER_NONE && tables_owner(&service->tables, offset) == record &&
	       fabric_server_read(service->server, offset, node_bytes(g, level), node) &&
	       node_level(node) == level && node_check(g, node, record->record.tree, pointer) == NODE_GOOD;
}

FabricStatus
service_descend(Service *service, const FabricPeer *peer, const DirectoryDescent *request,
                DirectoryDescended *reply)
{
	uint64_t node[INNER_BYTES / 8];
	uint64_t pointer = request->pointer;
	/* The caller's number for this memory node. Nodes elsewhere are not searched here. */
	const uint32_t here = pointer_memory_node(pointer);
	const ServiceRecord *record = service_peer_tree(service, peer, request->tree);
	ChildChoice choice;
	TreeBound bound;
	NodeGeometry g;

	/*
	 * A fenced incarnation may not read, and so may not call this, either: checked for callers that have an
	 * incarnation.
	 */
	if (peer->incarnation == 0)
		return FABRIC_DENIED;
	if (record == NULL)
		return FABRIC_NOT_FOUND;
	if (!descent_read(request, &bound, &g))
		return FABRIC_RANGE;
	for (uint32_t level = request->level; level > 0; level--)
	{
		reply->visited++;
		if (pointer_memory_node(pointer) != here || !node_take(service, &g, record, pointer, level, node) ||
		    !node_find_child(&g, node, &bound, &choice) || choice.bound_below || choice.bound_above)
			return FABRIC_OK;
		pointer = choice.child;
	}
	reply->pointer = pointer;
	if (pointer_memory_node(pointer) != here)
		return FABRIC_OK;
	reply->visited++;
	if (node_take(service, &g, record, pointer, 0, reply->image))
		reply->bytes = g.leaf_bytes;
	return FABRIC_OK;
}
