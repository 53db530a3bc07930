/*
 * fault.c
 *		The fault layer: a transport on top of another one.
 *
 * It runs a chain as single operations of the transport below, or as single lines of them, and between these does
 * what the plan says. Counters and the state of chains are fabric.c's, above it, which sees one chain.
 */
#define _GNU_SOURCE 1
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rdma/fault.h"
#include "rdma/base/transport.h"

#define LINE_BYTES 64u

/* Pieces that one operation is cut into, at most: words; or lines, of which it may start and end inside one. */
#define MAX_PIECES (FABRIC_STRIPE_BYTES / sizeof(uint64_t))

/* One in so many gaps between two pieces of a torn operation gives the processor away. */
#define YIELD_CHANCE 4u
/* For each so many nanoseconds that it took one of the next such gaps does not: else a busy machine is all that the test waits for. */
#define YIELD_NS 20000u

/* The rest of a chain that is to arrive late. WRITE data are copies, for the caller has its buffers back. */
typedef struct LateChain
{
	int count;
	FabricOp ops[FABRIC_MAX_CHAIN];
	uint64_t data[FABRIC_MAX_CHAIN][FABRIC_STRIPE_BYTES / sizeof(uint64_t)];
} LateChain;

typedef struct FaultState
{
	FabricFaultPlan plan;
	const FabricTransport *below;
	uint32_t flags_below; /* the capabilities that the layer hides */
	uint64_t random;
	uint64_t operations;
	uint64_t yields_spared; /* the next yields, which are left out */
	LateChain *late;        /* only with late_operation */
} FaultState;

/* The next random number of the plan (splitmix64). */
static uint64_t
next_random(FaultState *fault)
{
	uint64_t value = fault->random += 0x9e3779b97f4a7c15ull;

	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
	return value ^ (value >> 31);
}

static FabricStatus
run_below(FabricEndpoint *endpoint, FabricOp *op)
{
	return ((FaultState *) endpoint->fault)->below->execute(endpoint, op, 1);
}

/* Cuts an operation at the borders of lines (or words); returns how many pieces there are. */
static uint32_t
cut_operation(const FabricOp *op, uint32_t unit, FabricOp pieces[MAX_PIECES])
{
	uint32_t count = 0;

	for (uint32_t done = 0; done < op->length;)
	{
		FabricOp *piece = &pieces[count++];
		uint32_t room = unit - (uint32_t) ((op->offset + done) % unit);

		*piece = *op;
		piece->offset = op->offset + done;
		piece->buffer = (uint8_t *) op->buffer + done;
		piece->length = op->length - done < room ? op->length - done : room;
		done += piece->length;
	}
	return count;
}

/* What is not torn by the plan. */
static uint32_t
tear_unit(const FaultState *fault)
{
	return fault->plan.tear_words ? (uint32_t) sizeof(uint64_t) : LINE_BYTES;
}

/*
 * Lets other processes see what is torn. Where many others want to run it lasts for milliseconds; then the next ones are left
 * out, as processes are interrupted there without them.
 */
static void
yield(FaultState *fault)
{
	uint64_t began;

	if (fault->yields_spared > 0)
	{
		fault->yields_spared--;
		return;
	}
	began = fabric_now();
	sched_yield();
	fault->yields_spared = (fabric_now() - began) / YIELD_NS;
}

/* Runs a READ or WRITE piece by piece, in random order. */
static FabricStatus
run_torn(FabricEndpoint *endpoint, const FabricOp *op)
{
	FaultState *fault = endpoint->fault;
	FabricOp pieces[MAX_PIECES];
	uint32_t count = cut_operation(op, tear_unit(fault), pieces);

	for (uint32_t left = count; left > 0; left--)
	{
		uint32_t chosen = (uint32_t) (next_random(fault) % left);
		FabricStatus status = run_below(endpoint, &pieces[chosen]);

		if (status != FABRIC_OK)
			return status;
		pieces[chosen] = pieces[left - 1];
		if (left > 1 && next_random(fault) % YIELD_CHANCE == 0)
			yield(fault);
	}
	return FABRIC_OK;
}

static bool
is_torn(const FaultState *fault, const FabricOp *op)
{
	const FabricFaultPlan *plan = &fault->plan;
	uint32_t unit = tear_unit(fault);

	return op->region == FABRIC_NODES && op->offset / unit < (op->offset + op->length - 1) / unit &&
	       ((op->opcode == FABRIC_READ && (plan->tear_reads || plan->tear_words)) ||
	        (op->opcode == FABRIC_WRITE && (plan->tear_writes || plan->tear_words)));
}

static FabricStatus
run_operation(FabricEndpoint *endpoint, FabricOp *op)
{
	return is_torn(endpoint->fault, op) ? run_torn(endpoint, op) : run_below(endpoint, op);
}

/* Ends the process after the operation, or inside it. */
static void
die(FabricEndpoint *endpoint, FabricOp *op)
{
	FaultState *fault = endpoint->fault;
	uint32_t lines = fault->plan.die_line;

	/* What the transport vouches for is not broken: a packet lands whole or not at all. */
	if (op->opcode != FABRIC_WRITE || lines == 0 || op->length <= endpoint->capabilities.one_packet)
		run_operation(endpoint, op);
	else if (fault->below->abandon_write != NULL)
		fault->below->abandon_write(endpoint, op, lines);
	else
	{
		FabricOp pieces[MAX_PIECES];
		uint32_t count = cut_operation(op, LINE_BYTES, pieces);

		for (uint32_t i = 0; i < count && i < lines; i++)
			run_below(endpoint, &pieces[i]);
	}
	kill(getpid(), SIGKILL);
	/* The signal is on its way: nothing may happen behind it. */
	for (;;)
		pause();
}

static void
hold_back(FaultState *fault, const FabricOp *ops, int count)
{
	LateChain *late = fault->late;

	late->count = count;
	for (int i = 0; i < count; i++)
	{
		late->ops[i] = ops[i];
		if (ops[i].opcode == FABRIC_WRITE)
			memcpy(late->data[i], ops[i].buffer, ops[i].length);
		late->ops[i].buffer = late->data[i];
	}
}

static void
random_delay(FaultState *fault)
{
	uint64_t nanoseconds;

	if (fault->plan.delay_max_us == 0)
		return;
	nanoseconds = next_random(fault) % ((uint64_t) fault->plan.delay_max_us * 1000 + 1);
	nanosleep(&(struct timespec){.tv_sec = (time_t) (nanoseconds / 1000000000),
	                             .tv_nsec = nanoseconds % 1000000000},
	          NULL);
}

/* Does something happen to this operation, which will be the `number`th? */
static bool
is_touched(const FaultState *fault, const FabricOp *op, uint64_t number)
{
	return number == fault->plan.fail_operation || number == fault->plan.late_operation ||
	       number == fault->plan.die_operation || is_torn(fault, op);
}

/* Runs the chain's next operation, which is touched. */
static FabricStatus
run_touched(FabricEndpoint *endpoint, FabricOp *ops, int count, int i)
{
	FaultState *fault = endpoint->fault;

	fault->operations++;
	if (fault->operations == fault->plan.fail_operation)
	{
		fabric_set_detail(endpoint->fabric, "fault layer: operation %d of the chain failed", i + 1);
		return FABRIC_LOST;
	}
	if (fault->operations == fault->plan.late_operation)
	{
		hold_back(fault, ops + i, count - i);
		fabric_set_detail(endpoint->fabric, "fault layer: operation %d of the chain is late", i + 1);
		return FABRIC_LOST;
	}
	if (fault->operations == fault->plan.die_operation)
		die(endpoint, &ops[i]);
	return run_operation(endpoint, &ops[i]);
}

/*
 * What is not touched goes below together, as it came: on a channel that several clients share, others' chains would
 * come in between.
 */
static FabricStatus
fault_execute(FabricEndpoint *endpoint, FabricOp *ops, int count)
{
	FaultState *fault = endpoint->fault;
	int next = 0;

	random_delay(fault);
	for (int i = 0; i < count; i = next)
	{
		FabricStatus status;

		while (next < count && !is_touched(fault, &ops[next], fault->operations + (uint64_t) (next - i) + 1))
			next++;
		if (next > i)
		{
			fault->operations += (uint64_t) (next - i);
			status = fault->below->execute(endpoint, ops + i, next - i);
		}
		else
		{
			next = i + 1;
			status = run_touched(endpoint, ops, count, i);
		}
		/* "Nothing happened" is no longer true behind the first operation. */
		if (i > 0 && (status == FABRIC_RANGE || status == FABRIC_PROTOCOL || status == FABRIC_BUSY))
			status = FABRIC_LOST;
		if (status != FABRIC_OK)
			return status;
	}
	return FABRIC_OK;
}

/* Makes the endpoint claim no more than the layer lets through. */
static void
limit_capabilities(FabricEndpoint *endpoint)
{
	FaultState *fault = endpoint->fault;

	fault->flags_below = endpoint->capabilities.flags;
	if (fault->plan.tear_reads || fault->plan.tear_writes || fault->plan.tear_words)
		endpoint->capabilities.flags &= ~FABRIC_CAP_OPERATION_ATOMIC;
	if (fault->plan.tear_words)
		endpoint->capabilities.flags &= ~FABRIC_CAP_LINE_ATOMIC;
}

void
fabric_fault_deliver(FabricEndpoint *endpoint)
{
	FaultState *fault = endpoint->fault;

	if (fault == NULL || fault->late == NULL)
		return;
	for (int i = 0; i < fault->late->count; i++)
	{
		/* A channel that was killed meanwhile delivers nothing, and what follows neither. */
		if (run_operation(endpoint, &fault->late->ops[i]) != FABRIC_OK)
			break;
	}
	fault->late->count = 0;
}

static FabricStatus
fault_reset(FabricEndpoint *endpoint)
{
	FaultState *fault = endpoint->fault;
	FabricStatus status;

	fabric_fault_deliver(endpoint);
	status = fault->below->reset(endpoint);
	if (status == FABRIC_OK)
		limit_capabilities(endpoint);
	return status;
}

static FabricStatus
fault_call(FabricEndpoint *endpoint, uint16_t method, const void *request, uint32_t request_bytes,
           void *reply, uint32_t *reply_bytes)
{
	return ((FaultState *) endpoint->fault)
	    ->below->call(endpoint, method, request, request_bytes, reply, reply_bytes);
}

static FabricStatus
fault_attach(FabricEndpoint *endpoint, bool resume, uint64_t launcher_nonce, uint32_t *instance,
             uint32_t *incarnation)
{
	return ((FaultState *) endpoint->fault)
	    ->below->attach(endpoint, resume, launcher_nonce, instance, incarnation);
}

static bool
fault_is_draining(const FabricEndpoint *endpoint)
{
	const FabricTransport *below = ((const FaultState *) endpoint->fault)->below;

	return below->is_draining != NULL && below->is_draining(endpoint);
}

/* No connect, for the layer comes on a connected endpoint; no disconnect, for it goes before that. */
static const FabricTransport fault_transport = {
	.name = "fault",
	.execute = fault_execute,
	.call = fault_call,
	.attach = fault_attach,
	.reset = fault_reset,
	.is_draining = fault_is_draining,
};

void
fault_release(FabricEndpoint *endpoint)
{
	FaultState *fault = endpoint->fault;

	if (fault == NULL)
		return;
	endpoint->transport = fault->below;
	endpoint->capabilities.flags = fault->flags_below;
	endpoint->fault = NULL;
	free(fault->late);
	free(fault);
}

FabricStatus
fabric_fault_set(FabricEndpoint *endpoint, const FabricFaultPlan *plan)
{
	FaultState *fault;

	fault_release(endpoint);
	if (plan == NULL)
		return FABRIC_OK;
	fault = calloc(1, sizeof(FaultState));
	if (fault == NULL)
		return FABRIC_NO_MEMORY;
	if (plan->late_operation != 0)
	{
		fault->late = calloc(1, sizeof(LateChain));
		if (fault->late == NULL)
		{
			free(fault);
			return FABRIC_NO_MEMORY;
		}
	}
	fault->plan = *plan;
	fault->random = plan->seed;
	fault->below = endpoint->transport;
	endpoint->transport = &fault_transport;
	endpoint->fault = fault;
	limit_capabilities(endpoint);
	return FABRIC_OK;
}

uint64_t
fabric_fault_operations(const FabricEndpoint *endpoint)
{
	const FaultState *fault = endpoint->fault;

	return fault == NULL ? 0 : fault->operations;
}
