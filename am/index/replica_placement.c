/*
 * replica_placement.c
 *		The two halves of an index with a copy: on which memory nodes they are, and what is known of them.  The home's half is the
 *		first one, the copy's the second.
 */
#include "am/base/sherman.h"

#include "am/base/shared.h"
#include "am/index/replica_placement.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"

int
halves_home(const ShermanMetaPage *meta)
{
	return (int) tree_home(meta->root);
}

int
halves_replica(const ShermanMetaPage *meta)
{
	Assert(meta->replica != 0);
	return (int) meta->replica - 1;
}

int
halves_read(const ShermanMetaPage *meta)
{
	return meta->replica != 0 && meta->replicas_valid == SHERMAN_VALID_SECOND ? halves_replica(meta) : halves_home(meta);
}

uint64
sherman_tree_key(const ShermanMetaPage *meta)
{
	return meta->replicas_valid == SHERMAN_VALID_SECOND ? meta->tree | SHERMAN_TREE_REPLICA : meta->tree;
}

bool
half_is_usable(const ShermanMetaPage *meta, int position)
{
	return sherman_shared->node[position].member == meta->incarnations[position][0] &&
		sherman_node_phase(position) == SHERMAN_PHASE_ATTACHED;
}

bool
half_is_lost(const ShermanMetaPage *meta, int position)
{
	return sherman_shared->node[position].member != meta->incarnations[position][0];
}

bool
half_may_be_missed(const ShermanMetaPage *meta, int position)
{
	return pg_atomic_read_u32(&sherman_shared->node[position].drained) != 0 || half_is_lost(meta, position);
}

bool
half_is_unverified(uint64 key)
{
	ShermanTreeEntry entry;

	return sherman_trees_find(key, &entry) && entry.unverified_epoch != 0;
}

/*
 * Whether a lost chain may have left the two different.
 */
static bool
halves_doubted(const ShermanMetaPage *meta)
{
	ShermanTreeEntry entry;

	return sherman_trees_find(meta->tree, &entry) ? sherman_trees_replicas_doubted(&entry, false) :
		tree_replicas_doubted(sherman_tree_shared, meta->tree, false);
}

bool
halves_in_doubt(const ShermanMetaPage *meta)
{
	return half_is_unverified(meta->tree) || half_is_unverified(meta->tree | SHERMAN_TREE_REPLICA) || halves_doubted(meta);
}

bool
sherman_replicas_alone_doubtful(const ShermanMetaPage *meta)
{
	return !half_is_unverified(meta->tree) && !half_is_unverified(meta->tree | SHERMAN_TREE_REPLICA) && halves_doubted(meta);
}

int
sherman_replicas_away_position(const ShermanMetaPage *meta)
{
	return halves_read(meta);
}

bool
sherman_replicas_lack_copy(const ShermanMetaPage *meta)
{
	return meta->replica != 0 && meta->replicas_valid == SHERMAN_VALID_BOTH && !half_is_usable(meta, halves_replica(meta));
}

/*
 * Whether the launcher is to check a memory node. An absent one is not checked: sessions that still tried to connect
 * when it was lost have reported it needlessly.
 */
static bool
is_suspected(int position)
{
	return sherman_node_phase(position) == SHERMAN_PHASE_ATTACHED &&
		pg_atomic_read_u32(&sherman_shared->node[position].suspected) != SHERMAN_UNSUSPECTED;
}

bool
sherman_replicas_suspected(const ShermanMetaPage *meta)
{
	return is_suspected(halves_home(meta)) || is_suspected(halves_replica(meta));
}
