/*
 * nodes.h
 *		The face of am/nodes: memory nodes, connections, errors.
 */
#ifndef SHERMAN_AM_NODES_H
#define SHERMAN_AM_NODES_H

#include "am/base/shared.h"

/* ---- errors.c: the one place that turns a TreeStatus into ereport (I-P1) ---- */

/* Reports the status; `index` may be NULL. Never returns for elevel >= ERROR. Nothing may be locked. */
extern void sherman_report(int elevel, TreeStatus status, const char *detail, Relation index);
/* Raises what a call of the tree with this process's client returned, with the tree's detail. */
extern _Noreturn void sherman_report_failure(TreeStatus status, Relation index);
/* Raises the error for a memory node that is not attached: that of a position, or with -1 of all. */
extern void sherman_report_away(int elevel, const char *subject, int position);
/* What views say where sherman_promotion_waits(). */
extern const char sherman_unfollowed_text[];
/* How to go on without the standby that sherman_promotion_waits() waits for: for ereport(). */
extern int	sherman_hint_unfollowed(void);
/*
 * The same as a clause, for views: palloc'd.  With address and failure if the current user, who reads the view, may see them.
 */
extern char *sherman_away_text(int position);

/*
 * Has errors for a full memory node add this sentence to the DETAIL, palloc'd, NULL: nothing; in place of an earlier one.  What it
 * raises is dropped; it is called in a transaction, with no LWLock held.
 */
extern void sherman_report_full_with(char *(*describe) (void));

/* ---- connection.c ---- */

/* As sherman_client(), but NULL instead of an error or a wait: for hooks and views. */
extern TreeClient *sherman_client_if_ready(void);

/*
 * A call of the tree ended with TREE_UNREACHABLE or TREE_FENCED: no process uses the memory nodes concerned until the
 * launcher has fenced and attached them anew. Returns them, a bit for each.
 */
extern uint32 sherman_connection_trouble(void);

/* This process's client, whatever the phase is; NULL: no memory. */
extern TreeClient *sherman_connection_client(void);
/* The same, but it is not made; NULL: there is none yet. */
extern TreeClient *sherman_connection_if_open(void);
/* Whether it was opened on a standby, and only reads: until the end of the transaction in which that is promoted. */
extern bool sherman_connection_is_reader(void);
/* It is used in this transaction. */
extern void sherman_connection_reads(void);
/*
 * Closes it, if the server was promoted since: from then on this process may change indexes.  False: this transaction has used it, and
 * must not go on.
 */
extern bool sherman_connection_leave_standby(void);
/* What WAL positions prove to it; no call of the tree is in progress. */
extern void sherman_connection_set_limits(const TreeWalLimits *limits);
/* How long this process slept for memory nodes while sherman_traffic_measured was set, in microseconds. */
extern uint64 sherman_connection_waited_us(void);
extern void sherman_connection_close(void);
/*
 * In the postmaster: what connections with a key need before there is one, so that it is not each session that makes it.  Without it, as where
 * the key file was set later, each does.
 */
extern void sherman_connection_prepare(void);
extern bool sherman_connection_is_made(int position);
/*
 * Has this process's client, which is there, use what the cache of leaves has of a memory node that it is not connected to: it connects when it
 * first has something to ask.  From then on in this transaction no other memory takes its place.  False: it is to connect before it is used, as
 * the launcher has not heard the memory node lately, this process could not connect, or its leaves are not cached.
 */
extern bool sherman_connection_vouch(int position);
/* Gives up connections to memory nodes that were attached anew. No call of the tree is in progress. */
extern void sherman_connection_refresh(void);
/* At the end of a transaction. */
extern void sherman_connection_end_transaction(void);
/* A subtransaction of this nesting level begins, or is aborted. */
extern void sherman_connection_begin_inside(int level);
extern void sherman_connection_abort_inside(int level);
/* Fills what fabric_open() needs. */
extern void sherman_fabric_options(FabricOptions *options, uint32 incarnation);
/*
 * For the process that looks after memory nodes: a connection that belongs to no client, for calls, or on a standby of a reader.  The caller closes
 * *fabric, which is NULL if there is none, in any case.
 */
extern FabricStatus sherman_control_connect(const char *address, Fabric **fabric, FabricEndpoint **endpoint);
/* Writes what an attempt to connect ended with, SHERMAN_FAILURE_BYTES at most; fabric may be NULL. */
extern void sherman_describe_failure(char *failure, FabricStatus status, Fabric *fabric);
/* Why this process could not connect to a memory node that is attached, and the status of that; "" = it did. */
extern const char *sherman_connection_failure(int position, FabricStatus *status);
/* Before the client is closed this is called, which closes what depends on it; in place of an earlier one. */
extern void sherman_connection_before_close(void (*callback) (void));
/* This process is the launcher: it may connect to what is not attached yet, and waits for less long. */
extern void sherman_connection_launcher(void);

/* ---- pool.c: the memory nodes of this instance ---- */

/* In the startup hook, after sherman_recovery_start(): positions and list. */
extern void sherman_pool_start(ShermanShared *shared);
/* In the launcher, while nothing is attached: the memory nodes of the state file are other ones. */
extern void sherman_pool_adopt(void);
/* Takes the list from the settings as they now are. Launcher, with the lock, and startup hook. */
extern void sherman_pool_configure(ShermanShared *shared);
extern ShermanPhase sherman_node_phase(int position);
/* Microseconds by a clock that nobody sets, the same for all processes. */
extern uint64 sherman_monotonic_us(void);
/* How often the launcher asks an attached memory node whether it is there. */
#define SHERMAN_HEARTBEAT_MS 2000
/* The launcher has had an answer. */
extern void sherman_node_heard(int position);
/* Whether that was within its heartbeat, and no session has tried in vain to connect since.  Of one that is attached. */
extern bool sherman_node_is_heard(int position);
/* The launcher has attached a memory node: all processes may use it. */
extern void sherman_node_attached(int position);
/*
 * In the launcher: decides which memory nodes are gone.  Returns milliseconds until another one may be, LONG_MAX: none
 * that is away now.
 */
extern long sherman_pool_find_gone(void);
/* Bit per position: attached. */
extern uint32 sherman_attached_nodes(void);
/* Nothing leads to this memory node: if it is waited for, it is not any more. */
extern void sherman_node_not_awaited(int position);
/* What the launcher could not attach so far is not waited for any more. */
extern void sherman_pool_give_up_waiting(void);
/* Indexes with a copy may go on without a memory node that is closed. */
extern void sherman_node_drained(int position);
/* Closes an attached memory node for all processes until the launcher has fenced it. */
extern void sherman_node_lost(int position);
/* Copies the list's entry of a position, or of its memory's last address; false: it is not in the list. */
extern bool sherman_node_listed(int position, ShermanListedNode *listed);
/*
 * The same; of a position that was taken over from another server, whose address is not known before it is attached: an entry that may lead to it.
 */
extern bool sherman_node_looked_for(int position, ShermanListedNode *listed);
/* Copies the first entry of the list that could not be attached, or if there is none any. */
extern void sherman_first_failure(ShermanListedNode *listed);
/* Microseconds of a round trip to a memory node, the mean of those that are attached; 0: their memory is mapped, or none is. */
extern double sherman_round_trip_us(void);
/*
 * Notes why an entry of the list is not attached, or with "" that it is; logs what is new, with what follows from it ("is not attached").
 */
extern void sherman_note_failure(ShermanListedNode *listed, FabricStatus status, const char *failure, const char *effect);
/* Measures how long a round trip to a memory node takes, for the planner.  False: it does not answer, as tree_detail() says. */
extern bool sherman_measure_round_trip(TreeClient *client, int position);
/* The best phase of all memory nodes. */
extern ShermanPhase sherman_phase(void);

/* ---- connection_proxy.c ---- */
extern Size sherman_connection_workers_bytes(void);
extern void sherman_connection_workers_initialize(void);
/* What this process lends as a client of the workers; NULL: there are none. */
extern const FabricProxy *sherman_connection_proxy(void (*sleep) (void *argument, int milliseconds));

/* ---- connection_workers.c ---- */
extern void sherman_register_connection_workers(void);
extern PGDLLEXPORT void sherman_connection_worker_main(Datum argument);

/* ---- capabilities.c ---- */
/* What a memory node vouches for over the connection in use, in words; palloc'd. */
extern char *sherman_capabilities_text(const FabricCapabilities *capabilities);

#endif							/* SHERMAN_AM_NODES_H */
