/*
 * cost.c
 *		See cost.h.
 */
#include "cost.h"

/* Bytes of a request without payload, and of an answer without: headers are counted apart. */
#define REQUEST_BYTES 16u
#define ATOMIC_BYTES 28u

/* doc/internals/simulator.md has the table, with the source of each. */
const CostParameters cost_parameters = {
	.post = 200 * PICOSECONDS_PER_NS,
	.complete = 400 * PICOSECONDS_PER_NS,
	.request = 9000,
	.request_write = 10800,
	.request_latency = 150 * PICOSECONDS_PER_NS,
	.respond = 9100,
	.respond_latency = 100 * PICOSECONDS_PER_NS,
	.wire_latency = 250 * PICOSECONDS_PER_NS,
	.wire_byte = 80,
	.packet_header = 42,
	.packet_payload = 4096,
	.pcie_read = 550 * PICOSECONDS_PER_NS,
	.pcie_byte = 80,
	.inline_bytes = 220,
	.bucket = 400 * PICOSECONDS_PER_NS,
	.answer_latency = 100 * PICOSECONDS_PER_NS,
	.check_byte = 60,
	.call = 250 * PICOSECONDS_PER_NS,
	.processors = 4,
	.call_header = 24,
};

const char *
cost_resource_name(CostResource resource)
{
	static const char *const names[COST_RESOURCES] = {
		[COST_REQUEST] = "request pipeline",
		[COST_RESPOND] = "respond pipeline",
		[COST_OUT] = "wire out",
		[COST_IN] = "wire in",
		[COST_PCIE_READ] = "PCIe read",
		[COST_PCIE_WRITE] = "PCIe write",
		[COST_PROCESSORS] = "memory node's processors",
	};

	return names[resource];
}

static uint64_t
later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * Uses a resource for so long; *wait becomes what there is to wait for it, if that is longer. A chain passes
 * several resources, one behind the other: what it waits for the slowest of them it does not wait for the
 * next ones, whose queues are short therefore. All queues are looked at when a chain comes to a card, and not
 * when it gets to each of them, as what comes later would be in front of it then.
 */
static void
use(CostCard *card, CostResource resource, uint64_t now, uint64_t duration, uint64_t *wait)
{
	uint64_t start = later(now, card->busy[resource]);

	card->busy[resource] = start + duration;
	card->used[resource] += duration;
	*wait = later(*wait, start - now);
}

static bool
is_atomic(const FabricOp *op)
{
	return op->opcode != FABRIC_READ && op->opcode != FABRIC_WRITE;
}

/* What it sends. */
static uint32_t
request_bytes(const FabricOp *op)
{
	if (op->opcode == FABRIC_WRITE)
		return op->length + REQUEST_BYTES;
	return is_atomic(op) ? ATOMIC_BYTES : REQUEST_BYTES;
}

static uint64_t
wire_bytes(uint32_t payload)
{
	const CostParameters *p = &cost_parameters;
	uint32_t packets = (payload + p->packet_payload - 1) / p->packet_payload;

	return payload + (uint64_t) (packets == 0 ? 1 : packets) * p->packet_header;
}

uint64_t
cost_send(CostCard *requester, uint64_t now, uint64_t delay, const FabricOp *ops, int count,
          CostFlight *flight)
{
	const CostParameters *p = &cost_parameters;
	/* One request goes along with its doorbell; of several the card fetches the list. */
	uint64_t sent = now + delay + p->post + (count > 1 ? p->pcie_read : 0);
	uint64_t fetched = 0;
	uint64_t wait = 0;

	for (int i = 0; i < count; i++)
	{
		bool write = ops[i].opcode == FABRIC_WRITE;
		uint64_t request = write ? p->request_write : p->request;
		uint64_t bytes = wire_bytes(request_bytes(&ops[i]));

		use(requester, COST_REQUEST, now, request, &wait);
		if (write && ops[i].length > p->inline_bytes)
		{
			use(requester, COST_PCIE_READ, now, ops[i].length * p->pcie_byte, &wait);
			fetched = p->pcie_read;
		}
		use(requester, COST_OUT, now, bytes * p->wire_byte, &wait);
		sent += request + bytes * p->wire_byte;
		flight->bytes += bytes;
	}
	return sent + fetched + wait + p->request_latency + p->wire_latency;
}

/* What was waited for so far is over when something else is looked at. */
static void
flight_is_at(CostFlight *flight, uint64_t now)
{
	if (flight->now == now)
		return;
	if (flight->answered != 0)
		flight->answered += flight->wait;
	flight->wait = 0;
	flight->now = now;
}

void
cost_arrive(CostCard *responder, uint64_t now, CostFlight *flight)
{
	flight_is_at(flight, now);
	/* Its first bytes were there as long before as all of them take. */
	use(responder, COST_IN, now, flight->bytes * cost_parameters.wire_byte, &flight->wait);
}

/* A lock word's bucket, or a node word's. */
static uint32_t
bucket_of(const FabricOp *op)
{
	return (uint32_t) (op->offset / 8) % COST_BUCKETS;
}

/* An atomic in host memory waits for its bucket: when it takes effect. */
static uint64_t
serve_in_bucket(CostCard *responder, const FabricOp *op, uint64_t from)
{
	uint64_t *bucket = &responder->buckets[bucket_of(op)];

	*bucket = later(from, *bucket) + cost_parameters.bucket;
	responder->bucket_used[bucket_of(op)] += cost_parameters.bucket;
	return *bucket;
}

uint64_t
cost_serve(CostCard *responder, const CostPlacement *placement, uint64_t now, const FabricOp *op,
           CostFlight *flight)
{
	const CostParameters *p = &cost_parameters;
	bool on_chip = op->region == FABRIC_LOCKS && placement->chip_locks;
	bool release = placement->release_by_write && op->opcode == FABRIC_COMPARE_SWAP &&
	               op->region == FABRIC_LOCKS && op->operand == 0;
	uint64_t ready, answer = 0;

	flight_is_at(flight, now);
	use(responder, COST_RESPOND, now, p->respond, &flight->wait);
	responder->served++;
	ready = flight->order = later(now, flight->order) + p->respond;
	if (op->opcode == FABRIC_WRITE || release)
	{
		if (!on_chip)
			use(responder, COST_PCIE_WRITE, now, op->length * p->pcie_byte, &flight->wait);
	}
	else
	{
		answer = op->opcode == FABRIC_READ ? op->length : 8;
		if (is_atomic(op) && !on_chip)
			ready = flight->order = serve_in_bucket(responder, op, ready + flight->wait) - flight->wait;
		else if (!on_chip)
		{
			use(responder, COST_PCIE_READ, now, op->length * p->pcie_byte, &flight->wait);
			ready += p->pcie_read + op->length * p->pcie_byte;
		}
	}
	flight->answer_bytes += wire_bytes((uint32_t) answer);
	flight->answered = later(flight->answered, ready + p->respond_latency);
	return flight->order + flight->wait;
}

uint64_t
cost_answer(CostCard *responder, CostCard *requester, uint64_t now, CostFlight *flight)
{
	const CostParameters *p = &cost_parameters;
	uint64_t duration = flight->answer_bytes * p->wire_byte;

	flight_is_at(flight, now);
	use(responder, COST_OUT, now, duration, &flight->wait);
	use(requester, COST_IN, now, duration, &flight->wait);
	return flight->answered + flight->wait + duration + p->wire_latency + p->answer_latency + p->complete;
}

/* ---- calls ---- */

/* A SEND is on its way what a WRITE of its bytes is; it goes to a place that the receiver has named. */
static FabricOp
message_op(uint32_t bytes)
{
	return (FabricOp){
		.opcode = FABRIC_WRITE, .region = FABRIC_NODES, .length = bytes + cost_parameters.call_header};
}

uint64_t
cost_message(CostCard *sender, uint64_t now, uint64_t delay, uint32_t bytes, CostFlight *flight)
{
	FabricOp op = message_op(bytes);

	return cost_send(sender, now, delay, &op, 1, flight);
}

uint64_t
cost_received(CostCard *receiver, uint64_t now, uint32_t bytes, CostFlight *flight)
{
	const CostParameters *p = &cost_parameters;
	const CostPlacement placement = {0};
	FabricOp op = message_op(bytes);

	cost_arrive(receiver, now, flight);
	return cost_serve(receiver, &placement, now, &op, flight) + p->respond_latency +
	       op.length * p->pcie_byte + p->complete;
}

uint64_t
cost_process(CostCard *host, uint64_t now, uint32_t touched)
{
	const CostParameters *p = &cost_parameters;
	uint64_t duration = p->call + touched * p->check_byte;
	uint64_t wait = 0;

	use(host, COST_PROCESSORS, now, duration / p->processors, &wait);
	return now + wait + duration;
}
