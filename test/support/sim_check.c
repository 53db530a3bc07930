/*
 * sim_check.c
 *		The beginning and the end of a simulated run: makes the tree, and looks at all of it.  See sim_work.h.
 */
#include <stdlib.h>

#include "require.h"
#include "sim_work.h"

/* The slot of who makes the tree and looks at it in the end. */
#define DIRECTOR_SLOT (SIM_SLOTS - 1)

typedef struct Check
{
	SimRun *run;
	bool *there; /* by id */
} Check;

void
sim_make_tree(SimRun *run)
{
	const SimPlan *plan = &run->plan;
	SimWorker director;
	SimClient client;
	TreeStatus status;

	sim_client_open(&client, &run->cluster, DIRECTOR_SLOT, 0);
	run->record = (TreeRecord){.cluster = {1, 2}, .database = 1, .format = run->space->format};
	status = tree_create(client.tree, &run->record);
	REQUIRE(status == TREE_OK, "tree_create: %s: %s", tree_status_name(status), tree_detail(client.tree));
	sim_client_close(&client);
	sim_worker_open(&director, run, DIRECTOR_SLOT);
	for (uint32_t id = 0; id < plan->prefill; id++)
	{
		if (plan->left_out != 0 && id % plan->left_out == 0)
			continue;
		if (plan->unique)
			sim_insert_unique(&director, id);
		else
			sim_insert(&director, id);
	}
	director.done = true;
	sim_worker_close(&director);
}

static void
report(void *argument, const char *message)
{
	sim_fail(((const Check *) argument)->run, "check: %s", message);
}

static void
take_entry(void *argument, const TreeKey *key, bool unverified)
{
	const Check *check = argument;
	uint32_t id = sim_id_of_tid(check->run, key->block, key->offset);

	(void) unverified;
	if (check->there[id])
		sim_fail(check->run, "check: TID (%u,%u) is there twice", key->block, key->offset);
	check->there[id] = true;
}

void
sim_check_tree_by(SimWorker *worker)
{
	SimRun *run = worker->run;
	Check check = {run, calloc(run->plan.entries, sizeof(bool))};
	TreeStatistics statistics;
	uint64_t problems;
	TreeStatus status;

	REQUIRE(check.there != NULL, "no memory");
	status = tree_check(worker->tree, report, take_entry, &check, &statistics, &problems);
	if (status != TREE_OK)
		sim_fail(run, "check: %s: %s", tree_status_name(status), tree_detail(worker->client.tree));
	tree_counters(worker->tree, &run->counters);
	/* What is marked as dead is in the tree and is not found. */
	for (uint32_t id = 0; id < run->plan.entries; id++)
		if (!run->entries[id].marked)
			sim_history_look(run, id, check.there[id]);
	free(check.there);
}

void
sim_check_tree(SimRun *run)
{
	SimWorker director;

	sim_worker_open(&director, run, DIRECTOR_SLOT);
	sim_check_tree_by(&director);
	director.done = true;
	sim_worker_close(&director);
}
