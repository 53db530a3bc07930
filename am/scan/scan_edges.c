/*
 * scan_edges.c
 *		The ends of what a scan reads, as bounds of the tree.
 */
#include "am/scan/scan_edges.h"

/* An edge in the making. */
typedef struct EdgeBytes
{
	uint8		bytes[KEY_NORM_MAX];
	bool		open;			/* all columns so far are decided by bytes */
	int8		side;			/* not 0: an argument beyond its column's type settled the side */
} EdgeBytes;

/* Binds the next column of an edge. */
static void
edge_bind(const ShermanKeys *keys, ScanEdge *edge, EdgeBytes *made, const ShermanSearchColumn *value)
{
	int			i = edge->search.columns++;
	const KeyColumn *column = &keys->column[i];
	ShermanSearchColumn *bound = &edge->search.column[i];
	TreeBound  *tree = &edge->tree;
	Normalized	result;

	*bound = *value;
	if (!made->open || i >= keys->in_norm)
	{
		made->open = false;
		return;
	}

	if (i == 0)
		tree->key.high = key_null_flag(column, bound->isnull);
	else
	{
		made->bytes[column->null_at] = key_null_flag(column, bound->isnull);
		tree->norm_length = (uint8) (column->null_at + 1);
	}
	if (bound->isnull)
	{
		tree->norm_length = (uint8) (column->at + column->bytes);
		edge->search.whole = i + 1;
		return;
	}
	result = column->bytes == 0 ? NORMALIZED_NOT :
		normalize_argument(column->kind, column->type, bound->type, bound->value, made->bytes + column->at,
						   column->bytes);
	if (result == NORMALIZED_NOT)
	{
		made->open = false;
		return;
	}
	tree->norm_length = (uint8) (column->at + column->bytes);
	if (column->descending)
		key_invert_bytes(made->bytes + column->at, column->bytes);
	if (result == NORMALIZED_PREFIX)
		made->open = false;
	else
		edge->search.whole = i + 1;
	if (result == NORMALIZED_BELOW || result == NORMALIZED_ABOVE)
		made->side = (result == NORMALIZED_ABOVE) != column->descending ? 1 : -1;
}

bool
scan_edge_make(const ShermanKeys *keys, ScanEdge *edge, bool low, const ShermanSearchColumn *equal, int count,
			   const ScanRange *range)
{
	EdgeBytes	made;
	int8		side = low ? -1 : 1;

	memset(made.bytes, 0, sizeof(made.bytes));
	made.open = true;
	made.side = 0;
	edge->search.columns = edge->search.whole = 0;
	edge->tree.norm_length = 0;
	edge->tree.key.high = false;
	for (int i = 0; i < count; i++)
	{
		edge_bind(keys, edge, &made, &equal[i]);
		if (made.side != 0)
			return false;
	}
	if (range != NULL)
	{
		const ScanEnd *end = low ? &range->low : &range->high;

		/* The end without a condition excludes NULLs, if they sort there. */
		if (end->bound || keys->column[count].nulls_first == low)
		{
			edge_bind(keys, edge, &made, &end->value);
			if (!end->inclusive)
				side = -side;
			if (made.side != 0)
				side = made.side;
		}
	}

	edge->bound = edge->search.columns > 0;
	edge->tree.key.cut = false;
	edge->tree.key.image = NULL;
	edge->tree.key.image_bytes = 0;
	edge->tree.key.block = 0;
	edge->tree.key.offset = 0;
	key_words_from_bytes(keys, made.bytes, edge->tree.key.norm);
	edge->tree.norm_bits_valid = edge->bound;
	edge->tree.norm_exact = edge->search.whole == edge->search.columns;
	if (edge->search.whole == keys->columns)
		edge->tree.norm_length = keys->format.norm_bytes; /* what is left is zeros in every entry */
	edge->tree.side = side;
	edge->tree.argument = &edge->search;
	return true;
}

void
scan_edge_mirror(ScanEdge *high, const ScanEdge *low)
{
	/* The columns that the comparator asks for are the low edge's. */
	high->bound = low->bound;
	high->tree = low->tree;
	high->tree.side = 1;
}

bool
scan_edges_crossed(const ScanEdge *low, const ScanEdge *high)
{
	int			left = Min(low->tree.norm_length, high->tree.norm_length);

	if (!low->bound || !high->bound)
		return false;
	if (low->tree.key.high != high->tree.key.high)
		return low->tree.key.high;
	for (int i = 0; left > 0; i++, left -= 8)
	{
		uint64		mask = left >= 8 ? ~UINT64CONST(0) : ~UINT64CONST(0) << (64 - left * 8);

		if ((low->tree.key.norm[i] & mask) != (high->tree.key.norm[i] & mask))
			return (low->tree.key.norm[i] & mask) > (high->tree.key.norm[i] & mask);
	}
	return low->tree.norm_length == high->tree.norm_length && low->tree.norm_exact && high->tree.norm_exact &&
		low->tree.side >= high->tree.side;
}
