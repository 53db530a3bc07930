/*
 * proxy_fixture.c
 *		See proxy_fixture.h.
 */
#include <string.h>
#include <sys/mman.h>

#include "proxy_fixture.h"

#define NODE_BYTES (4u << 20)
#define AREA_BYTES (4u * FABRIC_UNIT_BYTES)

ProxyFixture fixture;

uint64_t
stripe_offset(uint32_t stripe)
{
	return fixture.nodes + (uint64_t) stripe * FABRIC_STRIPE_BYTES;
}

/* ---- what is lent, in one thread ---- */

void
step_workers(void)
{
	for (int i = 0; i < MAX_WORKERS && !fixture.frozen; i++)
	{
		if (fixture.workers[i] != NULL)
			assert_int_equal(fabric_worker_step(fixture.workers[i], 0), FABRIC_OK);
	}
}

static void
nobody_to_wake(void *argument, uint32_t number)
{
	(void) argument;
	(void) number;
}

static void
client_sleep(void *argument, int milliseconds)
{
	(void) argument;
	step_workers();
	if (fixture.frozen)
		sleep_ms((uint32_t) (milliseconds < 5 ? milliseconds : 5));
}

static int
client_hook(void *argument, const int *descriptors, int count, int milliseconds)
{
	(void) argument;
	(void) descriptors;
	(void) count;
	(void) milliseconds;
	return fixture.stop_at > 0 && --fixture.stop_at == 0 ? -1 : 0;
}

static int
worker_hook(void *argument, const int *descriptors, int count, int milliseconds)
{
	(void) argument;
	(void) descriptors;
	(void) count;
	sleep_ms((uint32_t) (milliseconds < 1 ? milliseconds : 1));
	return 0;
}

static void
plan_faults(void *argument, FabricEndpoint *endpoint)
{
	(void) argument;
	if (fixture.planned)
		assert_int_equal(fabric_fault_set(endpoint, &fixture.plan), FABRIC_OK);
	fixture.planned = false;
}

void
open_worker(uint32_t number)
{
	fixture.options[number] = (FabricWorkerOptions){
		.area = fixture.area,
		.worker = number,
		.fabric = {.operation_timeout_ms = fixture.timeout_ms, .connect_timeout_ms = fixture.timeout_ms},
		.wake_client = nobody_to_wake,
		.wait = worker_hook,
		.connected = plan_faults,
	};
	assert_int_equal(fabric_worker_open(&fixture.options[number], &fixture.workers[number]), FABRIC_OK);
}

void
close_worker(uint32_t number)
{
	fabric_worker_close(fixture.workers[number]);
	fixture.workers[number] = NULL;
}

void
begin(uint32_t workers, uint32_t slots)
{
	fixture.frozen = fixture.planned = false;
	fixture.stop_at = 0;
	fixture.cluster++;
	fixture.incarnation = cluster_attach(fixture.process.address, fixture.cluster);
	fixture.area_bytes = fabric_proxy_bytes(workers, slots);
	fixture.area = fabric_proxy_initialize(
		mmap(NULL, fixture.area_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), workers,
		slots);
	assert_non_null(fixture.area);
	fixture.proxy = (FabricProxy){.area = fixture.area, .wake_worker = nobody_to_wake, .sleep = client_sleep};
	for (uint32_t i = 0; i < workers; i++)
		open_worker(i);
}

void
finish(void)
{
	for (uint32_t i = 0; i < MAX_WORKERS; i++)
		close_worker(i);
	munmap(fixture.area, fixture.area_bytes);
}

FabricStatus
try_connect(TestChannel *channel, uint32_t timeout_ms)
{
	FabricOptions options = {
		.operation_timeout_ms = timeout_ms,
		.connect_timeout_ms = timeout_ms,
		.wait = client_hook,
		.cluster = {fixture.cluster, ~fixture.cluster},
		.incarnation = fixture.incarnation,
		.proxy = &fixture.proxy,
	};
	FabricStatus status;

	assert_int_equal(fabric_open(&options, &channel->fabric), FABRIC_OK);
	status = fabric_connect(channel->fabric, fixture.address, &channel->endpoint);
	if (status != FABRIC_OK)
		channel_close(channel);
	return status;
}

TestChannel
connect_client(void)
{
	TestChannel channel;

	assert_int_equal(try_connect(&channel, PATIENCE_MS), FABRIC_OK);
	return channel;
}

void
set_patience(TestChannel *channel, uint32_t timeout_ms)
{
	channel->fabric->options.operation_timeout_ms = timeout_ms;
	channel->fabric->options.connect_timeout_ms = timeout_ms;
}

uint64_t
true_word(uint64_t offset)
{
	TestChannel direct;
	uint64_t word;

	channel_open(&direct, fixture.process.address, fixture.cluster, fixture.incarnation);
	channel_read(&direct, offset, &word, 8);
	channel_close(&direct);
	return word;
}

uint64_t
read_through(TestChannel *channel, uint64_t offset)
{
	uint64_t word;

	channel_read(channel, offset, &word, 8);
	return word;
}

FabricWorkerFigures
figures(uint32_t worker)
{
	FabricWorkerFigures found;

	fabric_worker_figures(fixture.area, worker, &found);
	return found;
}

/* ---- the memory node ---- */

void
use_network(bool yes)
{
	snprintf(fixture.address, sizeof(fixture.address), "proxy:%s",
	         yes ? fixture.process.network_address : fixture.process.address);
}

int
fixture_start(void **state)
{
	fabric_process_prepare(&fixture.process, NODE_BYTES, 64);
	fabric_process_listen(&fixture.process, false);
	fabric_process_start(&fixture.process);
	use_network(false);
	fixture.nodes = service_info(fixture.process.address).first_unit;
	return service_commit(fixture.process.address, fixture.nodes, AREA_BYTES) == FABRIC_OK ? 0 : 1;
}

int
fixture_stop(void **state)
{
	fabric_process_remove(&fixture.process);
	return 0;
}
