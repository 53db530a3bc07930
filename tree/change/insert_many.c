/*
 * insert_many.c
 *		Many entries of one statement: in the order of their keys, by waves over many leaves (insert_wave.c), and
 *		alone where a wave is impossible.
 *
 * A wave cannot insert an overflow key, a TID that the leaf has already, an entry whose place integers do not decide,
 * an entry for which a root that is a leaf has no room, or one with a stale path. Such an entry is inserted by insert.c, once nothing
 * is held, which also corrects the path for the next wave. Where a wave inserts nothing, as other processes have
 * locked all of its leaves, its first entry is inserted alone, and waits in the lock's queue: so there is always
 * progress.
 */
#include "tree/change/insert_many.h"

/* Fewer entries go one by one. */
#define MANY_WORTH_WAVES 2

/* Whether entries can go by waves at all. */
static bool
waves_possible(const Tree *tree)
{
	const TreeTechniques *techniques = &tree->client->techniques;

	return tree->replicas == NULL && techniques->exclusive && techniques->hierarchy &&
	       techniques->entry_writes && !techniques->overwrite && techniques->credits == 0;
}

/* The client's memory for such calls; NULL: there is none, or a call that this one is inside of uses it. */
static Many *
many_begin(Tree *tree)
{
	TreeClient *client = tree->client;
	uint64_t depth = (uint64_t) client->sections + 1;
	uintptr_t mask = LINE_BYTES - 1;
	Many *many;

	if (client->many == NULL)
	{
		client->many = client_allocate_beside(client, client, sizeof(Many) + mask);
		if (client->many != NULL)
			((Many *) (((uintptr_t) client->many + mask) & ~mask))->depth = UINT64_MAX;
	}
	if (client->many == NULL)
		return NULL;
	many = (Many *) (((uintptr_t) client->many + mask) & ~mask);
	/* A call that an error jumped out of has ended: it was not deeper than this one. */
	if (many->depth < depth)
		return NULL;
	many->depth = depth;
	many->tree = tree;
	many->leaves_max = MANY_IMAGES_BYTES / tree->geometry.leaf_bytes;
	if (many->leaves_max > LOCK_MANY_MAX)
		many->leaves_max = LOCK_MANY_MAX;
	many->whole_max = MANY_WHOLE_BYTES / tree->geometry.leaf_bytes;
	if (many->whole_max > MANY_WHOLE_MAX)
		many->whole_max = MANY_WHOLE_MAX;
	many->short_of = 0;
	return many;
}

/* One after the other. */
static TreeStatus
insert_each(Tree *tree, const TreeKey *keys, uint32_t count, const TreeWalPosition *wal)
{
	TreeStatus status = TREE_OK;
	bool hit;

	for (uint32_t i = 0; status == TREE_OK && i < count; i++)
		status = tree_insert(tree, &keys[i], wal, &hit);
	return status;
}

/* Inserts the entries of the last wave that go by themselves; if nothing else came of it, one that waits, too. */
static TreeStatus
many_singles(Many *many)
{
	bool waits = true;
	TreeStatus status = TREE_OK;

	for (uint32_t i = many->next; waits && i < many->end; i++)
		waits = many->entries[i].state == MANY_WAITS;
	if (waits)
		many->entries[many->next].state = MANY_SINGLE;
	for (uint32_t i = many->next; status == TREE_OK && i < many->end; i++)
	{
		if (many->entries[i].state != MANY_SINGLE)
			continue;
		status = insert_each(many->tree, many_key(many, i), 1, many->wal);
		many->entries[i].state = MANY_DONE;
	}
	return status;
}

/* Those of the last wave that wait on come first in the next one. */
static void
many_go_on(Many *many)
{
	uint32_t to = many->end;

	for (uint32_t i = many->end; i > many->next; i--)
		if (many->entries[i - 1].state == MANY_WAITS)
			many->entries[--to] = many->entries[i - 1];
	many->next = to;
}

/* So many that they are sorted together. */
static TreeStatus
insert_some(Many *many, const TreeKey *keys, uint32_t count)
{
	TreeStatus status = TREE_OK;

	many->keys = keys;
	many->next = 0;
	many_sort(many, count);
	while (status == TREE_OK && many->next < many->count)
	{
		if (client_should_stop(many->tree->client))
			return client_fail(many->tree->client, TREE_STOPPED, "stopped between two waves of inserts");
		status = many_wave(many);
		if (status == TREE_OK)
			status = many_singles(many);
		many_go_on(many);
	}
	return status;
}

TreeStatus
tree_insert_many(Tree *handle, const TreeKey *keys, uint32_t count, const TreeWalPosition *wal)
{
	TreeStatus status = TREE_OK;
	Many *many = NULL;

	assert(!handle->client->holding);
	for (uint32_t i = 0; i < count; i++)
		if (!insert_valid(handle, &keys[i], wal))
			return client_fail(handle->client, TREE_INVALID, "an entry outside of the tree's format");
	if (count >= MANY_WORTH_WAVES && waves_possible(handle))
		many = many_begin(handle);
	if (many == NULL)
		return insert_each(handle, keys, count, wal);
	many->wal = wal;
	for (uint32_t done = 0; status == TREE_OK && done < count; done += MANY_ENTRIES)
		status = insert_some(many, keys + done, count - done < MANY_ENTRIES ? count - done : MANY_ENTRIES);
	many->depth = UINT64_MAX;
	return status;
}
