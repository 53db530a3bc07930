/*
 * directory_replicas.c
 *		The client's side of the calls about copies (service_replicas.c), and trees that are made with them.
 */
#include "tree/client/directory.h"

TreeStatus
directory_replica(TreeClient *client, uint32_t memory_node, uint64_t tree, uint64_t offset, uint64_t bytes,
                  DirectoryReplica *copy)
{
	DirectoryReplicaRequest request = {.tree = tree, .offset = offset, .bytes = bytes};

	return directory_call(client, memory_node, DIRECTORY_REPLICA, &request, sizeof(request), copy,
	                      sizeof(*copy));
}

TreeStatus
directory_replicas(TreeClient *client, uint32_t memory_node, uint64_t tree, uint64_t *position,
                   DirectoryReplicas *replicas)
{
	DirectoryReplicasRequest request = {.tree = tree, .position = *position};
	TreeStatus status = directory_call(client, memory_node, DIRECTORY_REPLICAS, &request, sizeof(request),
	                                   replicas, sizeof(*replicas));

	if (status == TREE_OK && (replicas->count > DIRECTORY_REPLICAS_MAX ||
	                          (replicas->count > 0 && replicas->position <= *position)))
		return client_fail(client, TREE_DAMAGED, "memory node %u: the list of copies does not advance",
		                   memory_node);
	if (status == TREE_OK)
		*position = replicas->position;
	return status;
}

TreeStatus
directory_replica_begin(TreeClient *client, const DirectoryCreated *created, uint64_t *root)
{
	uint64_t offset = pointer_offset(created->record.root);
	DirectoryReplicaRequest request = {
		.tree = created->record.tree,
		.offset = created->extent.offset,
		.bytes = created->extent.bytes,
		.record = created->record,
	};
	DirectoryReplica copy;
	uint32_t memory_node;
	TreeStatus status;

	if (!tree_record_replica(&created->record, &memory_node))
		return TREE_INVALID;
	/* The first of the extent's pieces has the root; the others are asked for when they are needed. */
	status = directory_call(client, memory_node, DIRECTORY_REPLICA, &request, sizeof(request), &copy,
	                        sizeof(copy));
	if (status == TREE_OK)
		*root = pointer_make(memory_node, copy.copy + (offset - copy.offset));
	return status;
}

TreeStatus
tree_record_update_at(TreeClient *client, uint32_t node, const TreeRecord *record)
{
	if (record->tree == 0 || node >= client->options.nodes)
		return client_fail(client, TREE_INVALID, "there is no tree %016llx",
		                   (unsigned long long) record->tree);
	return directory_call(client, node, DIRECTORY_UPDATE, record, sizeof(*record), NULL, 0);
}
