/*
 * baselines.c
 *		See baselines.h.
 */
#include "tree/change/change.h"
#include "tree/change/insert.h"
#include "tree/lock/local_lock_table.h"
#include "baselines.h"

/* Of the back-off that sleeps: so many lost swaps are followed by up to 2^n microseconds each, awake, the later ones by sleep. */
#define BACK_OFF_SPINS 6
#define BACK_OFF_SLEEP_MS 3u

Baseline baseline;

const Baseline baseline_fg = {
	.read_apart = true,
	.writes_apart = true,
	.flat_locks = true,
	.whole_leaves = true,
	.back_off = BASELINE_BACK_OFF_NONE,
};

extern TreeStatus __real_access_execute_at(Tree *tree, uint32_t memory_node, FabricOp *ops, int count);
extern TreeStatus __real_entry_acquire(Tree *tree, LockEntry *entry, LockWaiter *waiter, uint64_t *deadline,
                                       bool *chosen);
extern void __real_entry_release_for(TreeClient *client, LockEntry *entry, uint32_t slot);
extern void __real_back_off_wait(TreeClient *client, int attempt);
extern void __real_leaf_survey(const NodeGeometry *g, const uint64_t *node, uint32_t block, uint16_t offset,
                               LeafSurvey *survey);
extern bool __real_leaf_worth_rewrite(uint32_t room, uint32_t kept, uint32_t dropped);
extern TreeStatus __real_insert_by_rewrite(Insertion *in, uint32_t same_tid);

extern TreeStatus __wrap_access_execute_at(Tree *tree, uint32_t memory_node, FabricOp *ops, int count);
extern TreeStatus __wrap_entry_acquire(Tree *tree, LockEntry *entry, LockWaiter *waiter, uint64_t *deadline,
                                       bool *chosen);
extern void __wrap_entry_release_for(TreeClient *client, LockEntry *entry, uint32_t slot);
extern void __wrap_back_off_wait(TreeClient *client, int attempt);
extern void __wrap_leaf_survey(const NodeGeometry *g, const uint64_t *node, uint32_t block, uint16_t offset,
                               LeafSurvey *survey);
extern bool __wrap_leaf_worth_rewrite(uint32_t room, uint32_t kept, uint32_t dropped);
extern TreeStatus __wrap_insert_by_rewrite(Insertion *in, uint32_t same_tid);

/* ---- command combination ---- */

/* Whether it is {COMPARE_SWAP of a lock word, READ of the node}. */
static bool
chain_locks(const FabricOp *ops, int count)
{
	return count == 2 && ops[0].opcode == FABRIC_COMPARE_SWAP && ops[0].region == FABRIC_LOCKS &&
	       ops[1].opcode == FABRIC_READ;
}

TreeStatus
__wrap_access_execute_at(Tree *tree, uint32_t memory_node, FabricOp *ops, int count)
{
	TreeStatus status = TREE_OK;
	bool lock = baseline.read_apart && chain_locks(ops, count);
	bool writes = baseline.writes_apart && tree->client->holding && ops[0].opcode == FABRIC_WRITE;

	if (!lock && !writes)
		return __real_access_execute_at(tree, memory_node, ops, count);
	for (int i = 0; i < count && status == TREE_OK; i++)
	{
		status = __real_access_execute_at(tree, memory_node, ops + i, 1);
		if (lock && ops[0].result != ops[0].compare)
			break;
	}
	return status;
}

/* ---- hierarchical locks ---- */

TreeStatus
__wrap_entry_acquire(Tree *tree, LockEntry *entry, LockWaiter *waiter, uint64_t *deadline, bool *chosen)
{
	if (!baseline.flat_locks)
		return __real_entry_acquire(tree, entry, waiter, deadline, chosen);
	assert(!tree->client->techniques.exclusive);
	*chosen = false;
	waiter->state = WAIT_GRANTED;
	return TREE_OK;
}

void
__wrap_entry_release_for(TreeClient *client, LockEntry *entry, uint32_t slot)
{
	if (!baseline.flat_locks)
		__real_entry_release_for(client, entry, slot);
}

/* ---- back-off ---- */

void
__wrap_back_off_wait(TreeClient *client, int attempt)
{
	const TreeEnvironment *environment = &client->options.environment;

	if (baseline.back_off == BASELINE_BACK_OFF_ADAPTIVE)
		__real_back_off_wait(client, attempt);
	else if (baseline.back_off == BASELINE_BACK_OFF_NONE)
		client_pause(client);
	else if (attempt <= BACK_OFF_SPINS)
		access_pause(client, 1 + client_random(client) % (1u << attempt));
	else
		environment->sleep(environment->argument, client->slot,
		                   1 + (uint32_t) (client_random(client) % BACK_OFF_SLEEP_MS));
}

/* ---- two-level versions ---- */

/* Where leaves are written no slot counts as empty; and they are rewritten until they are full. */
void
__wrap_leaf_survey(const NodeGeometry *g, const uint64_t *node, uint32_t block, uint16_t offset,
                   LeafSurvey *survey)
{
	__real_leaf_survey(g, node, block, offset, survey);
	if (baseline.whole_leaves)
		survey->empty = LEAF_NO_SLOT;
}

bool
__wrap_leaf_worth_rewrite(uint32_t room, uint32_t kept, uint32_t dropped)
{
	return (baseline.whole_leaves && kept < room) || __real_leaf_worth_rewrite(room, kept, dropped);
}

/* ---- updates ---- */

/* Whether the entry in the slot is ours and may be written once more where it is. */
static bool
insert_overwrites(const Insertion *in, uint32_t slot)
{
	const NodeGeometry *g = &in->tree->geometry;
	const uint64_t *cell = in->tree->client->image + leaf_cell_word(g, slot);

	return baseline.overwrite && !baseline.whole_leaves && !g->format.postings && !in->has_overflow &&
	       cell_state(cell[0]) == CELL_LIVE && cell_same_key(g, cell, in->cell);
}

TreeStatus
__wrap_insert_by_rewrite(Insertion *in, uint32_t same_tid)
{
	if (same_tid == LEAF_NO_SLOT || !insert_overwrites(in, same_tid))
		return __real_insert_by_rewrite(in, same_tid);
	in->hit = true;
	return insert_into_slot(in, same_tid);
}
