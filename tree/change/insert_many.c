/*
 * insert_many.c
 *		Many entries of one statement: in the order of their keys, by waves over many leaves (insert_wave.c), and
 *		alone where a wave is impossible.
 *
 * A wave cannot insert an overflow key, a TID that the leaf has already, an entry whose place integers do not decide,
 * an entry for which a root that is a leaf has no room, or one with a stale path. Such an entry is inserted by insert.c,
 * once nothing is held, which also corrects the path for the next wave. Where a wave inserts nothing, as other processes
 * have locked all of its leaves, its first entry is inserted alone, and waits in the lock's queue: so there is always
 * progress.
 *
 * Where each key may have one entry only they go in their order: two sessions that insert the same keys then meet at the
 * first of them that both have, and not one here and the other there, each with what the other one waits for.
 */
#include "tree/change/insert_many.h"

/* Fewer entries go one by one. */
#define MANY_WORTH_WAVES 2

/* Whether entries can go by waves at all. */
static bool
waves_possible(const Tree *tree)
{
	const TreeTechniques *techniques = &tree->client->techniques;

	return tree->replicas == NULL && techniques->exclusive;
}

/* The client's memory for such calls; NULL: waves are impossible, or there is none, or a call that this one is inside of uses it. */
static Many *
many_begin(Tree *tree, uint32_t count)
{
	TreeClient *client = tree->client;
	uint64_t depth = (uint64_t) client->sections + 1;
	uintptr_t mask = LINE_BYTES - 1;
	Many *many;

	if (count < MANY_WORTH_WAVES || !waves_possible(tree))
		return NULL;
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

/*
 * Behind a wave of entries that go in their order: the first one that is not there is inserted by itself, if the wave has found
 * that it must be, or has brought nothing into the tree. *barred: it is not alone.
 */
static TreeStatus
alone_single(Many *many, bool *barred)
{
	ManyEntry *first = &many->entries[many->next];
	TreeStatus status = TREE_OK;
	bool hit, alone = true;

	if (first->state == MANY_SINGLE)
	{
		status =
			tree_insert_alone(many->tree, many_key(many, many->next), many->wal, many->permit, &hit, &alone);
		if (status == TREE_OK && alone)
			many->next++;
	}
	*barred = first->state == MANY_BARRED || (status == TREE_OK && !alone);
	first->state = MANY_WAITS;
	return status;
}

/* Those of the last wave that are done in order are left behind; all others wait on, even if a lost chain has them done, too. */
static void
alone_go_on(Many *many)
{
	uint32_t begin = many->next;

	while (many->next < many->end && many->entries[many->next].state == MANY_DONE)
		many->next++;
	for (uint32_t i = many->next + 1; i < many->end; i++)
		many->entries[i].state = MANY_WAITS;
	if (many->next == begin && many->entries[begin].state == MANY_WAITS)
		many->entries[begin].state = MANY_SINGLE;
}

/* One wave, and what goes by itself behind it. *barred: the entry at many->next is not alone. */
static TreeStatus
alone_wave(Many *many, bool *barred)
{
	TreeStatus status = many_wave(many);

	alone_go_on(many);
	if (status == TREE_OK && many->next < many->end)
		status = alone_single(many, barred);
	return status;
}

/* One wave, and what goes by itself behind it. */
static TreeStatus
some_wave(Many *many)
{
	TreeStatus status = many_wave(many);

	if (status == TREE_OK)
		status = many_singles(many);
	many_go_on(many);
	return status;
}

/* So many that they are sorted together. *barred: the entry at many->next is not alone, and those from there on are left. */
static TreeStatus
insert_some(Many *many, const TreeKey *keys, uint32_t count, bool *barred)
{
	TreeStatus status = TREE_OK;

	*barred = false;
	many->keys = keys;
	many_fill(many, count);
	if (!many->alone)
		many_sort(many);
	while (status == TREE_OK && !*barred && many->next < many->count)
	{
		if (client_should_stop(many->tree->client))
			return client_fail(many->tree->client, TREE_STOPPED, "stopped between two waves of inserts");
		status = many->alone ? alone_wave(many, barred) : some_wave(many);
	}
	return status;
}

static TreeStatus
keys_valid(const Tree *tree, const TreeKey *keys, uint32_t count, const TreeWalPosition *wal)
{
	for (uint32_t i = 0; i < count; i++)
		if (!insert_valid(tree, &keys[i], wal))
			return client_fail(tree->client, TREE_INVALID, "an entry outside of the tree's format");
	return TREE_OK;
}

/* How many of the entries that are left are worked on together. */
static uint32_t
some_of(uint32_t left)
{
	return left < MANY_ENTRIES ? left : MANY_ENTRIES;
}

TreeStatus
tree_insert_many(Tree *handle, const TreeKey *keys, uint32_t count, const TreeWalPosition *wal)
{
	TreeStatus status;
	Many *many;
	bool barred;

	assert(!handle->client->holding);
	status = keys_valid(handle, keys, count, wal);
	if (status != TREE_OK)
		return status;
	many = many_begin(handle, count);
	if (many == NULL)
		return insert_each(handle, keys, count, wal);
	many->wal = wal;
	many->alone = false;
	for (uint32_t done = 0; status == TREE_OK && done < count; done += MANY_ENTRIES)
		status = insert_some(many, keys + done, some_of(count - done), &barred);
	many->depth = UINT64_MAX;
	return status;
}

/* One after the other, up to the first one that is not alone. */
static TreeStatus
insert_each_alone(Tree *tree, const TreeKey *keys, uint32_t count, const TreeWalPosition *wal,
                  const TreePermit *permit, uint32_t *done)
{
	TreeStatus status = TREE_OK;
	bool hit, alone = true;

	for (*done = 0; status == TREE_OK && *done < count; (*done)++)
	{
		status = tree_insert_alone(tree, &keys[*done], wal, permit, &hit, &alone);
		if (status != TREE_OK || !alone)
			return status;
	}
	return status;
}

static bool
keys_ascend(const Tree *tree, const TreeKey *keys, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++)
		if (tree_key_order(tree, &keys[i - 1], &keys[i]) > 0)
			return false;
	return true;
}

TreeStatus
tree_insert_many_alone(Tree *handle, const TreeKey *keys, uint32_t count, const TreeWalPosition *wal,
                       const TreePermit *permit, uint32_t *done)
{
	TreeStatus status;
	Many *many;
	bool barred = false;

	assert(!handle->client->holding);
	*done = 0;
	status = keys_valid(handle, keys, count, wal);
	if (status != TREE_OK)
		return status;
	if (!keys_ascend(handle, keys, count))
		return client_fail(handle->client, TREE_INVALID, "entries that are not in the order of their keys");
	many = many_begin(handle, count);
	if (many == NULL)
		return insert_each_alone(handle, keys, count, wal, permit, done);
	many->wal = wal;
	many->alone = true;
	many->permit = permit;
	while (status == TREE_OK && !barred && *done < count)
	{
		status = insert_some(many, keys + *done, some_of(count - *done), &barred);
		*done += many->next;
	}
	many->depth = UINT64_MAX;
	return status;
}
