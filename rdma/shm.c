/*
 * shm.c
 *		The shm transport: a chain runs inside fabric_post(), on the memory node's mapped memory.
 *
 * How a channel dies here: see MemoryChannel.  A client is `active` from before the first change of a chain
 * to the end of the chain, and looks at its record's state after it said so; it never closes its control
 * socket while active.  So the server knows of each channel whether anything of it can still land.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "stripe.h"
#include "transport.h"

/* A WRITE holds its stripe for well under this unless its process was preempted: then yield. */
#define SPIN_NANOSECONDS 2000u
/*
 * A preempted writer runs again within a time slice; after this it is stopped or dead, and only sleep
 * helps.
 */
#define YIELD_NANOSECONDS 200000u
#define SLEEP_MS 1

/* READs that were overtaken by WRITEs so often take the stripe as a writer would, so that they end. */
#define READ_ATTEMPTS 8u

typedef struct ShmState
{
	ControlClient control;
	Memory memory;
	MemoryChannel *record;
	uint64_t live;    /* record->state while this channel lives */
	uint64_t idle;    /* record->active between its chains */
	uint32_t channel; /* owner in stripe words */
	char *path;       /* of the control socket */
} ShmState;

/* A running chain. */
typedef struct ChainRun
{
	bool active;       /* this chain made the channel busy */
	uint64_t awaited;  /* the stripe word that the present wait is for; 0 = it has not waited yet */
	uint64_t start;    /* when that word was met first */
	uint64_t deadline; /* of the chain; 0 = it has not waited yet */
} ChainRun;

static inline void
spin_hint(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

static inline bool
channel_is_live(const ShmState *shm, int order)
{
	return __atomic_load_n(&shm->record->state, order) == shm->live;
}

static FabricStatus
channel_fenced(FabricEndpoint *endpoint)
{
	fabric_set_detail(endpoint->fabric, "the memory node has closed channel %u",
	                  ((ShmState *) endpoint->state)->channel);
	return FABRIC_FENCED;
}

/*
 * Waits a little for a stripe that was seen with `word`; anything but FABRIC_OK ends the chain here.  Only an
 * owner who keeps it is slept for: where the word changes, owners come and go, and who sleeps meanwhile would
 * meet another of them each time it wakes.
 */
static __attribute__((noinline)) FabricStatus
wait_for_stripe(FabricEndpoint *endpoint, ChainRun *run, uint64_t word)
{
	ShmState *shm = endpoint->state;
	uint64_t now = fabric_now();
	int ready;

	if (run->deadline == 0)
		run->deadline = now + (uint64_t) endpoint->fabric->options.operation_timeout_ms * 1000000;
	if (word != run->awaited)
	{
		run->awaited = word;
		run->start = now;
	}
	if (!channel_is_live(shm, __ATOMIC_RELAXED))
		return channel_fenced(endpoint);
	if (now >= run->deadline)
	{
		fabric_set_detail(endpoint->fabric, "a stripe stayed taken for %u ms",
		                  endpoint->fabric->options.operation_timeout_ms);
		return FABRIC_TIMED_OUT;
	}
	if (now - run->start < SPIN_NANOSECONDS)
	{
		spin_hint();
		return FABRIC_OK;
	}
	if (now - run->start < YIELD_NANOSECONDS)
	{
		sched_yield();
		return FABRIC_OK;
	}
	ready = fabric_sleep(endpoint->fabric, &shm->control.descriptor, 1, SLEEP_MS);
	if (ready > 0 && control_is_closed(&shm->control))
	{
		/* Nobody is there who would settle a dead owner's stripe. */
		fabric_set_detail(endpoint->fabric, "the memory node is gone");
		return FABRIC_LOST;
	}
	if (ready > 0)
		ready = fabric_sleep(endpoint->fabric, NULL, 0, SLEEP_MS);
	return ready < 0 ? FABRIC_STOPPED : FABRIC_OK;
}

/* Takes the stripe of a WRITE, after its intent was recorded. */
static inline FabricStatus
take_stripe(FabricEndpoint *endpoint, uint64_t *stripe, uint64_t *odd, ChainRun *run)
{
	ShmState *shm = endpoint->state;

	run->awaited = 0;
	while (!stripe_try_take(stripe, shm->channel, odd))
	{
		FabricStatus status = wait_for_stripe(endpoint, run, __atomic_load_n(stripe, __ATOMIC_RELAXED));

		if (status != FABRIC_OK)
			return status;
	}
	return FABRIC_OK;
}

/*
 * Says that changes follow, and learns whether they still may.  False: the channel is dead, and nothing was
 * said.
 */
static inline bool
become_active(const ShmState *shm, ChainRun *run)
{
	uint64_t idle = shm->idle;

	/* A record that was given to somebody else since bears another serial, and stays as it is. */
	if (!__atomic_compare_exchange_n(&shm->record->active, &idle, shm->idle | MEMORY_ACTIVE_BUSY, false,
	                                 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return false;
	run->active = channel_is_live(shm, __ATOMIC_SEQ_CST);
	if (!run->active)
	{
		/* By a swap as well: the record may have a new owner by now, who is busy. */
		idle = shm->idle | MEMORY_ACTIVE_BUSY;
		__atomic_compare_exchange_n(&shm->record->active, &idle, shm->idle, false, __ATOMIC_SEQ_CST,
		                            __ATOMIC_RELAXED);
	}
	return run->active;
}

static inline void
become_idle(const ShmState *shm, ChainRun *run)
{
	if (!run->active)
		return;
	run->active = false;
	__atomic_store_n(&shm->record->active, shm->idle, __ATOMIC_RELEASE);
}

static inline FabricStatus
run_write(FabricEndpoint *endpoint, const FabricOp *op, ChainRun *run)
{
	ShmState *shm = endpoint->state;
	uint64_t *stripe = memory_stripe(&shm->memory, op->offset);
	uint64_t odd;
	FabricStatus status;

	__atomic_store_n(&shm->record->intent, memory_intent(op->offset, op->length), __ATOMIC_RELEASE);
	status = take_stripe(endpoint, stripe, &odd, run);
	if (status == FABRIC_OK)
	{
		stripe_copy_in((uint64_t *) (void *) (shm->memory.nodes + op->offset), op->buffer, op->length / 8, 0);
		stripe_release(stripe, odd);
	}
	__atomic_store_n(&shm->record->intent, 0, __ATOMIC_RELEASE);
	return status;
}

/*
 * A READ that WRITEs keep overtaking: excludes them while it copies.  An intent, for the stripe is odd
 * meanwhile.
 */
static __attribute__((noinline)) FabricStatus
run_read_as_writer(FabricEndpoint *endpoint, const FabricOp *op, ChainRun *run)
{
	ShmState *shm = endpoint->state;
	uint64_t *stripe = memory_stripe(&shm->memory, op->offset);
	uint64_t odd;
	FabricStatus status;

	/* It changes nothing, but a stripe is taken: from here on the chain is one that changes. */
	if (!run->active && !become_active(shm, run))
		return channel_fenced(endpoint);
	__atomic_store_n(&shm->record->intent, memory_intent(op->offset, op->length) | MEMORY_INTENT_READ,
	                 __ATOMIC_RELEASE);
	status = take_stripe(endpoint, stripe, &odd, run);
	if (status == FABRIC_OK)
	{
		stripe_copy_out(op->buffer, (const uint64_t *) (const void *) (shm->memory.nodes + op->offset),
		                op->length / 8);
		stripe_release(stripe, odd);
	}
	__atomic_store_n(&shm->record->intent, 0, __ATOMIC_RELEASE);
	return status;
}

/*
 * Does NODES have pages at the offset?  Touching a unit that was given back would take memory, or meet
 * SIGBUS.
 */
static inline bool
unit_is_committed(const ShmState *shm, uint64_t offset)
{
	return __atomic_load_n(&shm->memory.units[offset / FABRIC_UNIT_BYTES], __ATOMIC_RELAXED) != 0;
}

static inline FabricStatus
run_read(FabricEndpoint *endpoint, const FabricOp *op, ChainRun *run)
{
	ShmState *shm = endpoint->state;
	const uint64_t *source;
	uint64_t *stripe;

	if (op->region == FABRIC_LOCKS)
	{
		*(uint64_t *) op->buffer = __atomic_load_n(&shm->memory.locks[op->offset / 8], __ATOMIC_SEQ_CST);
		return FABRIC_OK;
	}
	if (!unit_is_committed(shm, op->offset))
	{
		memset(op->buffer, 0, op->length);
		return FABRIC_OK;
	}
	source = (const uint64_t *) (const void *) (shm->memory.nodes + op->offset);
	stripe = memory_stripe(&shm->memory, op->offset);
	if (stripe_try_read(stripe, source, op->buffer, op->length / 8))
		return FABRIC_OK;
	run->awaited = 0;
	for (uint32_t overtaken = 0; overtaken < READ_ATTEMPTS;)
	{
		uint64_t word = __atomic_load_n(stripe, __ATOMIC_RELAXED);

		if (stripe_is_odd(word))
		{
			FabricStatus status;

			overtaken += word != run->awaited;
			status = wait_for_stripe(endpoint, run, word);
			if (status != FABRIC_OK)
				return status;
		}
		else if (stripe_try_read(stripe, source, op->buffer, op->length / 8))
			return FABRIC_OK;
		else
			overtaken++;
	}
	return run_read_as_writer(endpoint, op, run);
}

static inline void
run_atomic(const ShmState *shm, FabricOp *op)
{
	uint64_t *word = op->region == FABRIC_LOCKS ? &shm->memory.locks[op->offset / 8]
	                                            : (uint64_t *) (void *) (shm->memory.nodes + op->offset);

	if (op->opcode == FABRIC_FETCH_ADD)
		op->result = __atomic_fetch_add(word, op->operand, __ATOMIC_SEQ_CST);
	else
	{
		op->result = op->compare;
		__atomic_compare_exchange_n(word, &op->result, op->operand, false, __ATOMIC_SEQ_CST,
		                            __ATOMIC_SEQ_CST);
	}
}

static FabricStatus
shm_execute(FabricEndpoint *endpoint, FabricOp *ops, int count)
{
	ShmState *shm = endpoint->state;
	ChainRun run = {0};
	FabricStatus status = FABRIC_OK;
	bool changes = false;

	for (int i = 0; i < count; i++)
	{
		if (ops[i].opcode == FABRIC_READ)
			continue;
		changes = true;
		if (ops[i].region == FABRIC_NODES && !unit_is_committed(shm, ops[i].offset))
			return FABRIC_RANGE;
	}
	if (changes ? !become_active(shm, &run) : !channel_is_live(shm, __ATOMIC_RELAXED))
		return channel_fenced(endpoint);
	for (int i = 0; i < count && status == FABRIC_OK; i++)
	{
		if (ops[i].opcode == FABRIC_READ)
			status = run_read(endpoint, &ops[i], &run);
		else if (ops[i].opcode == FABRIC_WRITE)
			status = run_write(endpoint, &ops[i], &run);
		else
			run_atomic(shm, &ops[i]);
	}
	become_idle(shm, &run);
	return status;
}

static void
shm_abandon_write(FabricEndpoint *endpoint, const FabricOp *op, uint32_t lines)
{
	ShmState *shm = endpoint->state;
	uint64_t *stripe = memory_stripe(&shm->memory, op->offset);
	ChainRun run = {0};
	uint32_t words = op->length / 8;
	uint32_t stored = lines * 8 < words ? lines * 8 : words;
	uint64_t odd;

	if (!unit_is_committed(shm, op->offset) || !become_active(shm, &run))
		return;
	__atomic_store_n(&shm->record->intent, memory_intent(op->offset, op->length), __ATOMIC_RELEASE);
	if (take_stripe(endpoint, stripe, &odd, &run) == FABRIC_OK)
		stripe_copy_in((uint64_t *) (void *) (shm->memory.nodes + op->offset), op->buffer, words,
		               words - stored);
}

/* Maps the memory object that came with a reply to HELLO, in place of an older mapping. */
static FabricStatus
map_object(FabricEndpoint *endpoint, int descriptor)
{
	ShmState *shm = endpoint->state;
	Memory memory = {.descriptor = -1};
	FabricStatus status;

	/* The lock proves to the memory node that a mapper lives; the descriptor is this process's own. */
	if (descriptor < 0 || flock(descriptor, LOCK_SH | LOCK_NB) != 0)
	{
		fabric_set_detail(endpoint->fabric, "the memory node passed no usable memory object");
		status = FABRIC_PROTOCOL;
	}
	else
	{
		status = memory_map(descriptor, &memory);
		if (status != FABRIC_OK)
			fabric_set_detail(endpoint->fabric, "cannot map the memory object: %s",
			                  fabric_status_name(status));
	}
	if (status != FABRIC_OK)
	{
		if (descriptor >= 0)
			close(descriptor);
		return status;
	}
	memory_unmap(&shm->memory);
	shm->memory = memory;
	return FABRIC_OK;
}

/* Takes what a reply to HELLO or RESET says about the new channel. */
static FabricStatus
take_channel(FabricEndpoint *endpoint, uint8_t *reply, uint32_t bytes)
{
	ShmState *shm = endpoint->state;
	ControlPayload payload = {.data = reply, .bytes = bytes};
	FabricCapabilities capabilities = {0};
	uint64_t serial;

	control_get_capabilities(&payload, &capabilities, &serial);
	if (payload.failed)
		return FABRIC_PROTOCOL;
	memcpy(capabilities.transport, "shm", 4);
	if (endpoint->data)
	{
		if (shm->memory.base == NULL || capabilities.channel >= shm->memory.header->max_channels ||
		    capabilities.region_bytes[FABRIC_NODES] != shm->memory.header->region_bytes ||
		    capabilities.region_bytes[FABRIC_LOCKS] != MEMORY_LOCK_WORDS * sizeof(uint64_t))
			return FABRIC_PROTOCOL;
		shm->channel = capabilities.channel;
		shm->record = &shm->memory.channels[shm->channel];
		shm->idle = serial << 1;
		shm->live = serial << MEMORY_STATE_BITS | MEMORY_CHANNEL_LIVE;
	}
	else
		capabilities.max_chain = 0;
	endpoint->capabilities = capabilities;
	return FABRIC_OK;
}

/*
 * Connects the control socket and says who we are; `old` names a channel that must be dead before we get
 * one.
 */
static FabricStatus
say_hello(FabricEndpoint *endpoint, bool old)
{
	ShmState *shm = endpoint->state;
	const FabricOptions *options = &endpoint->fabric->options;
	uint8_t request[128];
	uint8_t reply[256];
	uint32_t reply_bytes = sizeof(reply);
	ControlPayload payload = {.data = request, .bytes = sizeof(request)};
	ControlHello hello = {
		.cluster = {options->cluster[0], options->cluster[1]},
		.incarnation = options->incarnation,
		.old_channel = CONTROL_NO_CHANNEL,
	};
	int descriptor = -1;
	FabricStatus status;

	if (old && shm->record != NULL)
	{
		hello.old_channel = shm->channel;
		hello.old_serial = shm->live >> MEMORY_STATE_BITS;
		memcpy(hello.old_node_uuid, endpoint->capabilities.node_uuid, sizeof(hello.old_node_uuid));
	}
	status = control_connect(&shm->control, endpoint->fabric, shm->path);
	if (status != FABRIC_OK)
		return status;
	control_put_hello(&payload, &hello);
	status = control_call(&shm->control, CONTROL_HELLO, request, payload.position, reply, &reply_bytes,
	                      &descriptor);
	if (status == FABRIC_OK && endpoint->data)
	{
		status = map_object(endpoint, descriptor);
		descriptor = -1;
	}
	if (descriptor >= 0)
		close(descriptor);
	if (status == FABRIC_OK)
		status = take_channel(endpoint, reply, reply_bytes);
	if (status != FABRIC_OK)
		control_disconnect(&shm->control);
	return status;
}

static void
shm_disconnect(FabricEndpoint *endpoint)
{
	ShmState *shm = endpoint->state;

	/*
	 * Nothing is in progress: chains run inside their calls. The mapping goes first, then the sign of life.
	 */
	memory_unmap(&shm->memory);
	control_disconnect(&shm->control);
	free(shm->path);
	free(shm);
	endpoint->state = NULL;
}

static FabricStatus
shm_connect(FabricEndpoint *endpoint, const char *location)
{
	ShmState *shm = calloc(1, sizeof(ShmState));
	FabricStatus status;

	if (shm == NULL)
		return FABRIC_NO_MEMORY;
	endpoint->state = shm;
	shm->control.descriptor = -1;
	shm->memory.descriptor = -1;
	shm->path = strdup(location);
	status = shm->path == NULL ? FABRIC_NO_MEMORY : say_hello(endpoint, false);
	/*
	 * Before there is a channel nothing can be in doubt: the memory node frees what it granted and we never
	 * saw.
	 */
	if (status == FABRIC_LOST || status == FABRIC_TIMED_OUT)
		status = FABRIC_UNREACHABLE;
	if (status != FABRIC_OK)
		shm_disconnect(endpoint);
	return status;
}

static FabricStatus
shm_call(FabricEndpoint *endpoint, uint16_t method, const void *request, uint32_t request_bytes, void *reply,
         uint32_t *reply_bytes)
{
	ShmState *shm = endpoint->state;

	if (method >= CONTROL_FIRST_METHOD)
		return FABRIC_PROTOCOL;
	return control_call(&shm->control, method, request, request_bytes, reply, reply_bytes, NULL);
}

static FabricStatus
shm_attach(FabricEndpoint *endpoint, bool resume, uint64_t launcher_nonce, uint32_t *instance,
           uint32_t *incarnation)
{
	ShmState *shm = endpoint->state;
	uint8_t request[16];
	uint8_t reply[16];
	uint32_t reply_bytes = sizeof(reply);
	ControlPayload payload = {.data = request, .bytes = sizeof(request)};
	ControlPayload answer = {.data = reply};
	FabricStatus status;

	control_put32(&payload, resume ? 1 : 0);
	control_put64(&payload, launcher_nonce);
	status =
		control_call(&shm->control, CONTROL_ATTACH, request, payload.position, reply, &reply_bytes, NULL);
	if (status != FABRIC_OK)
		return status;
	answer.bytes = reply_bytes;
	*instance = control_get32(&answer);
	*incarnation = control_get32(&answer);
	return answer.failed ? FABRIC_PROTOCOL : FABRIC_OK;
}

static FabricStatus
shm_reset(FabricEndpoint *endpoint)
{
	ShmState *shm = endpoint->state;
	uint8_t reply[256];
	uint32_t reply_bytes = sizeof(reply);
	FabricStatus status;

	if (!endpoint->data)
	{
		control_disconnect(&shm->control);
		status = say_hello(endpoint, false);
		return status == FABRIC_LOST ? FABRIC_UNREACHABLE : status;
	}
	if (shm->control.descriptor >= 0)
	{
		status = control_call(&shm->control, CONTROL_RESET, NULL, 0, reply, &reply_bytes, NULL);
		if (status == FABRIC_OK)
			return take_channel(endpoint, reply, reply_bytes);
		if (status != FABRIC_LOST)
			return status;
	}
	status = say_hello(endpoint, true);
	return status == FABRIC_LOST ? FABRIC_UNREACHABLE : status;
}

const FabricTransport shm_transport = {
	.name = "shm",
	.connect = shm_connect,
	.disconnect = shm_disconnect,
	.execute = shm_execute,
	.call = shm_call,
	.attach = shm_attach,
	.reset = shm_reset,
	.abandon_write = shm_abandon_write,
};
