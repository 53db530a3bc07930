/*
 * split_order.c
 *		The part of a leaf's split that needs the comparator: ordering cells whose normalized keys are equal,
 *		and whole separators. Nothing is held here; the cells lie in a private copy, which the caller holds
 *		against the leaf again under its lock.
 */
#include "tree/descent/descent.h"
#include "tree/change/change.h"
#include "tree/space/allocate.h"

/* Tries to write a separator's image when the channel had to be reset meanwhile. */
#define IMAGE_ATTEMPTS 3

/* Fetches the images of all cells but the new one, whose image is its key's. */
static TreeStatus
order_images(Tree *tree, OrderedCells *cells)
{
	const uint64_t *others[LEAF_ENTRIES_MAX + 1];
	const uint8_t *images[LEAF_ENTRIES_MAX + 1];
	uint32_t count = 0;
	TreeStatus status;

	assert(cells->leaf.count <= LEAF_ENTRIES_MAX + 1);
	assert(!tree->client->holding);

	for (uint32_t i = 0; i < cells->leaf.count; i++)
		if (cells->leaf.cells[i] != cells->extra)
			others[count++] = cells->leaf.cells[i];
	status = search_images(tree, others, (int) count, images);
	if (status != TREE_OK)
		return status;
	count = 0;
	for (uint32_t i = 0; i < cells->leaf.count; i++)
	{
		if (cells->leaf.cells[i] != cells->extra)
			cells->images[i] = images[count++];
		else if ((cells->extra[0] & CELL_OVERFLOW_BIT) != 0)
			cells->images[i] = cells->extra_key->image;
		else
			cells->images[i] = NULL;
	}
	return TREE_OK;
}

static bool
cell_before(Tree *tree, const uint64_t *a, const uint8_t *a_image, const uint64_t *b, const uint8_t *b_image)
{
	TreeBound bound;
	TreeKey key;

	assert(a != b);
	cell_key(&tree->geometry, a, false, &key);
	if (a_image != NULL)
		key.image = a_image;
	assert(key.image_bytes == 0 || key.image != NULL);
	bound_of_key(&tree->geometry, &key, &bound);
	return search_compare_image(tree, &bound, b, false, b_image) < 0;
}

/* Puts cell `i` of a run that begins at `begin` and is ordered before it into its place, found by halves. */
static void
order_insert(Tree *tree, OrderedCells *cells, uint32_t begin, uint32_t i)
{
	const uint64_t *cell = cells->leaf.cells[i];
	const uint8_t *image = cells->images[i];
	uint32_t low = begin, high = i;

	assert(begin < i && i < cells->leaf.count);
	while (low < high)
	{
		uint32_t middle = (low + high) / 2;

		if (cell_before(tree, cell, image, cells->leaf.cells[middle], cells->images[middle]))
			high = middle;
		else
			low = middle + 1;
	}
	assert(low >= begin && low <= i);
	memmove(&cells->leaf.cells[low + 1], &cells->leaf.cells[low], (i - low) * sizeof(cells->leaf.cells[0]));
	memmove(&cells->images[low + 1], &cells->images[low], (i - low) * sizeof(cells->images[0]));
	cells->leaf.cells[low] = cell;
	cells->images[low] = image;
}

TreeStatus
order_cells(Tree *tree, OrderedCells *cells)
{
	uint32_t begin = 0;
	TreeStatus status = order_images(tree, cells);

	assert((cells->extra != NULL) == (cells->extra_key != NULL));
	assert(!tree->client->holding);
	if (status != TREE_OK)
		return status;
	/* Gathered cells are in the order of integers: only runs of ties are left to order. */
	for (uint32_t i = 1; i < cells->leaf.count; i++)
	{
		if (cell_order(&tree->geometry, cells->leaf.cells[i - 1], cells->leaf.cells[i]) != 0)
			begin = i;
		else
			order_insert(tree, cells, begin, i);
	}
	cells->leaf.ordered = true;
	for (uint32_t i = 0; i < cells->leaf.count; i++)
		if (cells->leaf.cells[i] == cells->extra)
			cells->leaf.extra = i;
	return TREE_OK;
}

TreeStatus
order_separator(Tree *tree, uint32_t memory_node, const OrderedCells *cells, uint32_t cut,
                uint64_t *separator)
{
	const NodeGeometry *g = &tree->geometry;
	const uint8_t *image = cells->images[cut];
	OverflowReference reference;
	FabricOp op = {.opcode = FABRIC_WRITE, .region = FABRIC_NODES, .buffer = tree->overflow};
	TreeKey key;
	TreeStatus status;

	assert(cut > 0 && cut < cells->leaf.count);
	assert(tree->cut.bytes == 0);

	leaf_separator(g, leaf_cut_left(cells->leaf.cells, cut), cells->leaf.cells[cut], separator);
	if ((separator[0] & CELL_OVERFLOW_BIT) == 0 || cell_state(separator[0]) == SEPARATOR_CUT)
		return TREE_OK;
	cell_key(g, separator, true, &key);
	key.image = image;
	memory_node = tree_source(tree, memory_node);
	assert(image != NULL && key.image_bytes > 0);
	status = allocate_overflow(tree, memory_node, key.image_bytes, &reference.offset);
	if (status != TREE_OK)
		return status;
	tree->cut = (OverflowBlock){memory_node, key.image_bytes, reference.offset};
	reference.memory_node = memory_node;
	reference.bytes = key.image_bytes;
	reference.hash = image_hash(image, key.image_bytes);
	memset(tree->overflow, 0, (key.image_bytes + 7u) / 8 * 8);
	memcpy(tree->overflow, image, key.image_bytes);
	op.length = (key.image_bytes + 7u) / 8 * 8;
	op.offset = reference.offset;
	cell_make(g, separator, &key, 0, &reference);
	status = TREE_RETRY;
	for (int attempt = 0; attempt < IMAGE_ATTEMPTS && status == TREE_RETRY; attempt++)
		status = access_execute(tree, memory_node, &op, 1);
	return status;
}
