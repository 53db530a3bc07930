/*
 * insert_many.c
 *		Many entries of one statement.
 */
#include "tree/internal.h"

TreeStatus
tree_insert_many(Tree *handle, const TreeKey *keys, uint32_t count, const TreeStamp *stamp)
{
	TreeStatus status = TREE_OK;
	bool hit;

	assert(!handle->client->holding);
	for (uint32_t i = 0; status == TREE_OK && i < count; i++)
		status = tree_insert(handle, &keys[i], stamp, &hit);
	return status;
}
