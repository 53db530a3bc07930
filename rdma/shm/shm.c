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

#include "rdma/base/control.h"
#include "rdma/memory/guard.h"
#include "rdma/shm/shm.h"

/* A WRITE holds its stripe for well under this unless its process was preempted: then yield. */
#define SPIN_NANOSECONDS 2000u
/*
 * A preempted writer runs again within a time slice; after this it is stopped or dead, and only sleep
 * helps.
 */
#define YIELD_NANOSECONDS 200000u
#define SLEEP_MS 1

typedef struct ShmState
{
	ControlClient control;
	Memory memory;
	ApplyChannel channel; /* its record is NULL before there is one */
	char *path;           /* of the control socket */
	bool frames; /* the memory is a device's: chains go over the socket, by tcp's half of the protocol */
} ShmState;

/* A chain's wait for stripes. */
typedef struct StripeWait
{
	const uint64_t *stripe;
	uint64_t word;     /* that it met */
	uint64_t start;    /* when it met that first */
	uint64_t deadline; /* of the chain; 0 = it has not waited yet */
} StripeWait;

static inline void
spin_hint(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

static FabricStatus
channel_fenced(FabricEndpoint *endpoint)
{
	fabric_set_detail(endpoint->fabric, "the memory node has closed channel %u",
	                  ((ShmState *) endpoint->state)->channel.channel);
	return FABRIC_FENCED;
}

/* The memory segment was truncated: WRITEs of the chain there are lost, and its READs are void. */
static FabricStatus
memory_lost(FabricEndpoint *endpoint)
{
	fabric_set_detail(endpoint->fabric, "the memory node's memory was cut short by a process that has it");
	return FABRIC_LOST;
}

/*
 * Waits a little for a stripe that another process has; anything but FABRIC_OK ends the chain here. Sleeps only if
 * the owner keeps it: where the word changes, owners come and go, and a process that sleeps would find another one
 * each time it wakes.
 */
static __attribute__((noinline)) FabricStatus
wait_for_stripe(FabricEndpoint *endpoint, const ApplyRun *run, StripeWait *wait)
{
	ShmState *shm = endpoint->state;
	uint64_t now = fabric_now();
	int ready;

	if (wait->deadline == 0)
		wait->deadline = fabric_deadline(endpoint->fabric, FABRIC_WAIT_CHAIN);
	if (run->awaited != wait->word || run->stripe != wait->stripe)
	{
		wait->word = run->awaited;
		wait->stripe = run->stripe;
		wait->start = now;
	}
	if (!apply_is_live(&shm->channel, __ATOMIC_RELAXED))
		return channel_fenced(endpoint);
	if (now >= wait->deadline)
	{
		fabric_set_detail(endpoint->fabric, "a stripe stayed taken for too long");
		return FABRIC_TIMED_OUT;
	}
	if (now - wait->start < SPIN_NANOSECONDS)
	{
		spin_hint();
		return FABRIC_OK;
	}
	if (now - wait->start < YIELD_NANOSECONDS)
	{
		sched_yield();
		return FABRIC_OK;
	}
	ready = fabric_sleep(endpoint->fabric, &shm->control.descriptor, 1, SLEEP_MS);
	if (ready > 0 && control_is_closed(&shm->control))
	{
		/* No server is there to settle a dead owner's stripe. */
		fabric_set_detail(endpoint->fabric, "the memory node is gone");
		return FABRIC_LOST;
	}
	if (ready > 0)
		ready = fabric_sleep(endpoint->fabric, NULL, 0, SLEEP_MS);
	return ready < 0 ? FABRIC_STOPPED : FABRIC_OK;
}

/* Runs the chain to its end, or to the end of the waiting for a stripe. */
static inline FabricStatus
run_chain(FabricEndpoint *endpoint, ApplyRun *run)
{
	ShmState *shm = endpoint->state;
	StripeWait wait = {0};

	for (;;)
	{
		ApplyStatus applied = apply_steps(&shm->channel, run);
		FabricStatus status;

		if (applied == APPLY_DONE)
			return FABRIC_OK;
		if (applied == APPLY_FENCED)
			return channel_fenced(endpoint);
		status = wait_for_stripe(endpoint, run, &wait);
		if (status != FABRIC_OK)
			return status;
	}
}

static inline FabricStatus
execute(FabricEndpoint *endpoint, FabricOp *ops, int count)
{
	ShmState *shm = endpoint->state;
	ApplyRun run = {.ops = ops, .count = count};
	ApplyStatus started = apply_start(&shm->channel, &run);
	FabricStatus status;

	if (started == APPLY_RANGE)
		return FABRIC_RANGE;
	if (started != APPLY_DONE)
		return channel_fenced(endpoint);
	status = run_chain(endpoint, &run);
	apply_leave(&shm->channel, &run);
	return status;
}

static FabricStatus
shm_execute(FabricEndpoint *endpoint, FabricOp *ops, int count)
{
	FabricStatus status = execute(endpoint, ops, count);

	return guard_is_lost(((const ShmState *) endpoint->state)->memory.base) ? memory_lost(endpoint) : status;
}

const ApplyChannel *
shm_channel(const FabricEndpoint *endpoint)
{
	return &((const ShmState *) endpoint->state)->channel;
}

static void
shm_abandon_write(FabricEndpoint *endpoint, const FabricOp *op, uint32_t lines)
{
	ShmState *shm = endpoint->state;
	FabricOp copy = *op;
	ApplyRun run = {.ops = &copy, .count = 1};
	StripeWait wait = {0};
	uint64_t *stripe = memory_stripe(&shm->memory, op->offset);
	uint32_t words = op->length / 8;
	uint32_t stored = lines * 8 < words ? lines * 8 : words;
	uint64_t odd;

	if (apply_start(&shm->channel, &run) != APPLY_DONE)
		return;
	__atomic_store_n(&shm->channel.record->intent, memory_intent(op->offset, op->length), __ATOMIC_RELEASE);
	while (!stripe_try_take(stripe, shm->channel.channel, &odd))
	{
		apply_await(&run, stripe);
		if (wait_for_stripe(endpoint, &run, &wait) != FABRIC_OK)
			return;
	}
	stripe_copy_in(apply_node(&shm->channel, op->offset), op->buffer, words, words - stored);
}

/* Maps the memory segment that came with a reply to HELLO, in place of an older mapping. */
static FabricStatus
map_segment(FabricEndpoint *endpoint, int descriptor)
{
	ShmState *shm = endpoint->state;
	Memory memory = {.descriptor = -1};
	FabricStatus status;

	/* The lock proves to the memory node that a mapper lives; the descriptor is this process's own. */
	if (descriptor < 0 || flock(descriptor, LOCK_SH | LOCK_NB) != 0)
	{
		fabric_set_detail(endpoint->fabric, "the memory node passed no usable memory segment");
		status = FABRIC_PROTOCOL;
	}
	else
	{
		status = memory_map(descriptor, &memory);
		if (status != FABRIC_OK)
			fabric_set_detail(endpoint->fabric, "cannot map the memory segment: %s",
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
	FramePayload payload = {.data = reply, .bytes = bytes};
	FabricCapabilities capabilities;
	FabricChannel channel;
	FabricStatus status = frame_get_channel(&payload, endpoint, &capabilities, &channel);

	if (status != FABRIC_OK)
		return status;
	if (endpoint->data)
	{
		if (shm->memory.base == NULL || capabilities.channel >= shm->memory.header->max_channels ||
		    capabilities.region_bytes[FABRIC_NODES] != shm->memory.header->region_bytes ||
		    capabilities.region_bytes[FABRIC_LOCKS] != MEMORY_LOCK_WORDS * sizeof(uint64_t))
			return FABRIC_PROTOCOL;
		shm->channel = (ApplyChannel){
			.memory = &shm->memory,
			.record = &shm->memory.channels[capabilities.channel],
			.live = channel.serial << MEMORY_STATE_BITS | MEMORY_CHANNEL_LIVE,
			.idle = channel.serial << 1,
			.locks = shm->memory.locks,
			.channel = channel.channel,
		};
	}
	endpoint->capabilities = capabilities;
	endpoint->channel = channel;
	return FABRIC_OK;
}

/*
 * Connects the control socket and sends HELLO; endpoint->channel, if there is one, must be dead before we get
 * another.
 */
static FabricStatus
say_hello(FabricEndpoint *endpoint)
{
	ShmState *shm = endpoint->state;
	uint8_t request[128];
	uint8_t reply[256];
	uint32_t reply_bytes = sizeof(reply);
	FramePayload payload = {.data = request, .bytes = sizeof(request)};
	int descriptor = -1;
	FabricStatus status;

	status = control_connect(&shm->control, endpoint->fabric, shm->path);
	if (status != FABRIC_OK)
		return status;
	frame_put_own_hello(&payload, endpoint);
	status = control_call(&shm->control, CONTROL_HELLO, request, payload.position, reply, &reply_bytes,
	                      &descriptor);
	if (status == FABRIC_NOT_SUPPORTED && endpoint->data)
	{
		shm->frames = true;
		fabric_set_detail(endpoint->fabric,
		                  "the memory node serves verbs since it was started again: connect anew");
	}
	if (status == FABRIC_OK && endpoint->data)
	{
		status = map_segment(endpoint, descriptor);
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
	 * Nothing is in progress: chains run inside their calls. The mapping goes first, then the lock that shows that a
	 * mapper lives.
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
	status = shm->path == NULL ? FABRIC_NO_MEMORY : say_hello(endpoint);
	if (!shm->frames)
		return status;
	shm_disconnect(endpoint);
	return tcp_connect_local(endpoint, location);
}

static FabricStatus
shm_call(FabricEndpoint *endpoint, uint16_t method, const void *request, uint32_t request_bytes, void *reply,
         uint32_t *reply_bytes)
{
	ShmState *shm = endpoint->state;

	return control_call(&shm->control, method, request, request_bytes, reply, reply_bytes, NULL);
}

static FabricStatus
call_without_descriptor(void *connection, uint16_t method, const void *request, uint32_t request_bytes,
                        void *reply, uint32_t *reply_bytes)
{
	return control_call(connection, method, request, request_bytes, reply, reply_bytes, NULL);
}

static FabricStatus
shm_attach(FabricEndpoint *endpoint, bool resume, uint64_t launcher_nonce, uint32_t *instance,
           uint32_t *incarnation)
{
	ShmState *shm = endpoint->state;

	return control_attach(call_without_descriptor, &shm->control, resume, launcher_nonce, instance,
	                      incarnation);
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
		return say_hello(endpoint);
	}
	if (shm->control.descriptor >= 0)
	{
		status = control_call(&shm->control, CONTROL_RESET, NULL, 0, reply, &reply_bytes, NULL);
		if (status == FABRIC_OK)
			return take_channel(endpoint, reply, reply_bytes);
		if (status != FABRIC_LOST)
			return status;
	}
	return say_hello(endpoint);
}

static bool
shm_is_draining(const FabricEndpoint *endpoint)
{
	const ShmState *shm = endpoint->state;

	return shm->memory.base != NULL && __atomic_load_n(&shm->memory.header->draining, __ATOMIC_RELAXED) != 0;
}

const FabricTransport shm_transport = {
	.name = "shm",
	.connect = shm_connect,
	.disconnect = shm_disconnect,
	.execute = shm_execute,
	.call = shm_call,
	.attach = shm_attach,
	.reset = shm_reset,
	.is_draining = shm_is_draining,
	.abandon_write = shm_abandon_write,
};
