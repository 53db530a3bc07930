/*
 * simulator.h
 *		The transport "sim": chains that take effect in virtual time on the memory of a memory node
 *		(doc/internals/simulator.md).
 *
 *		scheduler_open(seed); simulator_open(&options); ... coroutines: a memory node that serves; clients
 *		with FabricOptions.transport = &sim_transport, which connect to "sim:" and the path of its control
 *		socket scheduler_run(limit); simulator_close(); scheduler_close();
 */
#ifndef SHERMAN_SIMULATOR_H
#define SHERMAN_SIMULATOR_H

#include "rdma/base/transport.h"

typedef struct SimulatorOptions
{
	/*
	 * Whatever the order of operations leaves open happens, at random: READs are sampled and packets of
	 * WRITEs placed line by line in any order, others come in between, and all of it takes its time.  Else
	 * each operation takes effect at once, after a fixed time.
	 */
	bool adversarial;
	bool operation_atomic; /* READs and WRITEs are whole all the same */
	bool
		tear_words; /* the same word by word, and the endpoint does not claim LINE_ATOMIC; not with operation_atomic */
	uint32_t packet_bytes; /* of a WRITE: what its channel's death cannot tear; a multiple of 64 */
	uint32_t lose_one_in;  /* one chain in so many loses its channel; 0 = none */
	bool stops;            /* wait hooks may ask to stop */
	/*
	 * In an exploration: an operation is told of as a whole, as one that changes all that it may, and is looked at.
	 */
	bool coarse;
	/*
	 * Told of each part of an operation when it is through: of an operation's bytes those from `from` on, at
	 * the memory node with this UUID (its first word), by this channel.  NULL: nobody is.
	 */
	void (*trace)(uint64_t node, uint32_t channel, const FabricOp *op, uint32_t from, uint32_t bytes);
} SimulatorOptions;

extern const FabricTransport sim_transport;

/* Begins; the scheduler is open. */
extern void simulator_open(const SimulatorOptions *options);
/* Ends; all of its clients are closed, or will never run again. */
extern void simulator_close(void);
/* Other options for chains that are posted from now on. */
extern void simulator_change(const SimulatorOptions *options);

/*
 * The channels of an exploration's client are lost: the rest of its chains never takes effect, or the client
 * is told so while it goes on to take effect until the reset.
 */
extern void simulator_lose(uint32_t client, bool lands_late);

/*
 * One client that is drawn and its memory node do not hear of each other for so long: nothing arrives there,
 * nothing comes back, or neither.  What was sent arrives later.
 */
extern void simulator_cut(uint64_t nanoseconds, bool to, bool from);
/* Nothing is cut any more, although what was held up may still be. */
extern void simulator_mend(void);
/*
 * The memory node with this UUID (its first word) has ended: no chain has any effect on its memory from now
 * on.
 */
extern void simulator_end_node(uint64_t node);

/* Steps that operations have taken so far. */
extern uint64_t simulator_steps(void);

#endif /* SHERMAN_SIMULATOR_H */
