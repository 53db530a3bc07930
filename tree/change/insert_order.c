/*
 * insert_order.c
 *		The entries of tree_insert_many() in the order of integers, as they lie in leaves.
 */
#include "tree/change/insert_many.h"

static int
tids_order(const TreeKey *a, const TreeKey *b)
{
	uint64_t first = tid_order(a->block, a->offset);
	uint64_t second = tid_order(b->block, b->offset);

	return first < second ? -1 : first > second;
}

static int
norms_order(const NodeGeometry *g, const TreeKey *a, const TreeKey *b, uint32_t first_word)
{
	for (uint32_t i = first_word; i < g->norm_words; i++)
		if (a->norm[i] != b->norm[i])
			return a->norm[i] < b->norm[i] ? -1 : 1;
	return 0;
}

/* By the keys as far as integers decide, then by TID: so duplicates of an entry are neighbors. */
static int
entries_order(const Many *many, const ManyEntry *a, const ManyEntry *b)
{
	const TreeKey *first = &many->keys[a->key];
	const TreeKey *second = &many->keys[b->key];
	int order;

	if (a->high != b->high)
		return a->high ? 1 : -1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	order = norms_order(&many->tree->geometry, first, second, 1);
	return order != 0 ? order : tids_order(first, second);
}

int
tree_key_order(const Tree *handle, const TreeKey *first, const TreeKey *second)
{
	int order;

	if (first->high != second->high)
		return first->high ? 1 : -1;
	order = norms_order(&handle->geometry, first, second, 0);
	return order != 0 ? order : tids_order(first, second);
}

bool
many_differs(const Many *many, uint32_t entry)
{
	const TreeKey *a = many_key(many, entry - 1), *b = many_key(many, entry);

	return a->high != b->high || norms_order(&many->tree->geometry, a, b, 0) != 0;
}

/* Merges two runs that lie side by side. */
static void
runs_merge(const Many *many, const ManyEntry *from, uint32_t middle, uint32_t count, ManyEntry *to)
{
	uint32_t a = 0, b = middle;

	for (uint32_t i = 0; i < count; i++)
	{
		bool second = a == middle || (b < count && entries_order(many, &from[b], &from[a]) < 0);

		to[i] = second ? from[b++] : from[a++];
	}
}

/* Merges each two runs of this length. */
static void
runs_merge_all(const Many *many, const ManyEntry *from, uint32_t length, ManyEntry *to)
{
	for (uint32_t start = 0; start < many->count; start += 2 * length)
	{
		uint32_t left = many->count - start;
		uint32_t count = left < 2 * length ? left : 2 * length;
		uint32_t middle = length < count ? length : count;

		/* Keys often come in their order already. */
		if (middle == count || entries_order(many, &from[start + middle - 1], &from[start + middle]) <= 0)
			memcpy(to + start, from + start, count * sizeof(*to));
		else
			runs_merge(many, from + start, middle, count, to + start);
	}
}

void
many_fill(Many *many, uint32_t count)
{
	assert(count <= MANY_ENTRIES);
	many->count = count;
	many->next = 0;
	for (uint32_t i = 0; i < count; i++)
		many->entries[i] = (ManyEntry){many->keys[i].norm[0], i, many->keys[i].high, MANY_WAITS, false};
}

void
many_sort(Many *many)
{
	ManyEntry *from = many->entries, *to = many->sorting;
	uint32_t count = many->count;

	for (uint32_t length = 1; length < count; length *= 2)
	{
		ManyEntry *swap = from;

		runs_merge_all(many, from, length, to);
		from = to;
		to = swap;
	}
	if (from != many->entries)
		memcpy(many->entries, from, count * sizeof(*from));
}
