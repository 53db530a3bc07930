/*
 * prefetch.c
 *		Leaves that scans are about to begin at, read together into the cache of leaves.
 *
 * A hint and nothing else: a scan that begins looks for its leaf as ever, finds it in the cache, and checks it as one that was
 * read.  Delayed admission would turn most of the leaves away; here it is known that they are wanted.
 */
#include "tree/scan/scan.h"
#include "tree/descent/descent.h"

/* The leaves that are to be read. */
typedef struct Prefetch
{
	Tree *tree;
	uint64_t *memory; /* room for the images of SEEKS_AHEAD_MAX leaves */
	int count;
	uint64_t pointers[SEEKS_AHEAD_MAX];
} Prefetch;

/* Reads what was gathered.  What is torn or stale by now is not kept, and nothing follows from it here. */
static TreeStatus
prefetch_read(Prefetch *prefetch)
{
	Tree *tree = prefetch->tree;
	uintptr_t first = ((uintptr_t) prefetch->memory + LINE_BYTES - 1) & ~(uintptr_t) (LINE_BYTES - 1);
	uint64_t *images[SEEKS_AHEAD_MAX];
	NodeVerdict verdicts[SEEKS_AHEAD_MAX];
	int count = prefetch->count;
	TreeStatus status;

	if (count == 0)
		return TREE_OK;
	for (int i = 0; i < count; i++)
		images[i] = (uint64_t *) (first + (size_t) i * tree->geometry.leaf_bytes);
	prefetch->count = 0;
	tree->client->leaves_wanted = true;
	status = leaf_cache_read_leaves(tree, prefetch->pointers, count, images, verdicts);
	tree->client->leaves_wanted = false;
	return status == TREE_RETRY ? TREE_OK : status;
}

/* Adds the leaf to those that are to be read, unless it is one of them or in the cache. */
static void
prefetch_add(Prefetch *prefetch, uint64_t pointer)
{
	/* Neighbors in the caller's order often share a leaf; the others are few. */
	for (int i = prefetch->count - 1; i >= 0; i--)
		if (pointer_address(prefetch->pointers[i]) == pointer_address(pointer))
			return;
	if (leaf_cache_lacks(prefetch->tree, pointer))
		prefetch->pointers[prefetch->count++] = pointer;
}

/* tree_prefetch(), in a critical section. */
static TreeStatus
prefetch_inside(Prefetch *prefetch, const TreeBound *bounds, uint32_t count)
{
	TreeStatus status = TREE_OK;

	for (uint32_t i = 0; i < count && (status == TREE_OK || status == TREE_RETRY); i++)
	{
		Path path;

		assert(bounds[i].norm_exact && bounds[i].side != 0);
		status = search_descend(prefetch->tree, &bounds[i], 0, false, &path);
		if (status == TREE_OK)
			prefetch_add(prefetch, path.pointer);
		if (prefetch->count == SEEKS_AHEAD_MAX)
			status = prefetch_read(prefetch);
	}
	return status == TREE_OK || status == TREE_RETRY ? prefetch_read(prefetch) : status;
}

TreeStatus
tree_prefetch(Tree *handle, const TreeBound *bounds, uint32_t count)
{
	TreeClient *client = handle->client;
	Prefetch prefetch = {.tree = handle};
	TreeStatus status;
	int section;

	assert(!client->holding);
	if (client->shared->leaves == NULL || handle->replicas != NULL)
		return TREE_OK;
	prefetch.memory = client_allocate(client, SEEKS_AHEAD_MAX * handle->geometry.leaf_bytes + LINE_BYTES);
	if (prefetch.memory == NULL)
		return TREE_NO_MEMORY;
	status = critical_enter(handle, &section);
	if (status == TREE_OK)
	{
		status = prefetch_inside(&prefetch, bounds, count);
		critical_leave(handle, section);
	}
	client_release(client, prefetch.memory);
	return status;
}
