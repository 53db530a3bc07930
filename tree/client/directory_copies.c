/*
 * directory_copies.c
 *		The client's side of the calls about copies (service_copies.c), and trees that are made with them.
 */
#include "tree/client/directory.h"

TreeStatus
directory_copy(TreeClient *client, uint32_t memory_node, uint64_t tree, uint64_t offset, uint64_t bytes,
               DirectoryCopy *copy)
{
	DirectoryCopyRequest request = {.tree = tree, .offset = offset, .bytes = bytes};

	return directory_call(client, memory_node, DIRECTORY_COPY, &request, sizeof(request), copy,
	                      sizeof(*copy));
}

TreeStatus
directory_copies(TreeClient *client, uint32_t memory_node, uint64_t tree, uint64_t *position,
                 DirectoryCopies *copies)
{
	DirectoryCopiesRequest request = {.tree = tree, .position = *position};
	TreeStatus status = directory_call(client, memory_node, DIRECTORY_COPIES, &request, sizeof(request),
	                                   copies, sizeof(*copies));

	if (status == TREE_OK &&
	    (copies->count > DIRECTORY_COPIES_MAX || (copies->count > 0 && copies->position <= *position)))
		return client_fail(client, TREE_DAMAGED, "memory node %u: the list of copies does not advance",
		                   memory_node);
	if (status == TREE_OK)
		*position = copies->position;
	return status;
}

TreeStatus
directory_copy_begin(TreeClient *client, const DirectoryCreated *created, uint64_t *root)
{
	uint64_t offset = pointer_offset(created->record.root);
	DirectoryCopyRequest request = {
		.tree = created->record.tree,
		.offset = created->extent.offset,
		.bytes = created->extent.bytes,
		.record = created->record,
	};
	DirectoryCopy copy;
	uint32_t memory_node;
	TreeStatus status;

	if (!tree_record_copy(&created->record, &memory_node))
		return TREE_INVALID;
	/* The first of the extent's pieces has the root; the others are asked for when they are needed. */
	status =
		directory_call(client, memory_node, DIRECTORY_COPY, &request, sizeof(request), &copy, sizeof(copy));
	if (status == TREE_OK)
		*root = pointer_make(memory_node, copy.copy + (offset - copy.offset), 0);
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
