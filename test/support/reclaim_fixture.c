/*
 * reclaim_fixture.c
 *		See reclaim_fixture.h.
 */
#include "reclaim_fixture.h"

void
reopen(CheckedTree *f)
{
	require_ok(tree_open(client.tree, f->record.tree, f->record.root, &f->space->format, keyspace_compare,
	                     (void *) f->space, &f->tree));
	require_ok(tree_scan_open(f->tree, &f->scan));
}

void
next_incarnation(CheckedTree *f)
{
	tree_scan_close(f->scan);
	tree_close(f->tree);
	fixture_reattach();
	reopen(f);
}

uint64_t
reclaim(Tree *tree)
{
	uint64_t bytes = 0;
	TreeStatus status;

	while ((status = tree_reclaim_next(tree, &bytes)) == TREE_OK)
		;
	assert_int_equal(status, TREE_END);
	return bytes;
}

TreeRecord
record_now(const CheckedTree *f)
{
	TreeRecord record;

	require_ok(tree_record_read(client.tree, f->record.tree, tree_home(f->record.root), &record));
	return record;
}

uint64_t
extent_bytes(const CheckedTree *f)
{
	return record_now(f).bytes;
}
