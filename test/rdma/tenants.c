/*
 * tenants.c
 *		Several tenants on one device, and clients of other transports beside those of verbs.
 *
 *		tenants [--verbs DEVICE] CASE...		the device is else $FABRIC_TEST_VERBS
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "support/fabric_process.h"
#include "rdma/base/transport.h"
#include "rdma/verbs/verbs_flight.h"

#define NODE_BYTES (4u << 20)
#define MAX_CHANNELS 8u

/* Of each client that counts, beside the others. */
#define COUNTS 200u

/* What test/support/soft_device.c takes for an order: an atomic that adds this never ends, or is lost. */
#define SOFT_STALL 0x5011d57a11ull
#define SOFT_LOSE 0x5011d1057ull

static const char *device;

/* Two tenants, each with a client. */
typedef struct Fixture
{
	FabricProcess process;
	char key_files[2][200];
	ServiceInfo info[2]; /* as each of them sees it */
	uint32_t incarnation[2];
	TestChannel channel[2];
} Fixture;

/* Adds a tenant to the keys of a memory node that is not running yet, and writes its own file. */
static void
add_tenant(const FabricProcess *process, const char *name, const char *path)
{
	const char *files[] = {process->key_file, path};

	for (int i = 0; i < 2; i++)
	{
		int file = open(files[i], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

		CHECK(file >= 0 && dprintf(file, "%s %064x\n", name, 0xf0f0u) > 0);
		close(file);
	}
}

/* A call by one of the tenants. */
static FabricStatus
call_as(const Fixture *fixture, int which, uint16_t method, const uint64_t request[2], ServiceInfo *info)
{
	uint32_t bytes = info == NULL ? 0 : sizeof(*info);
	TestChannel control;
	FabricStatus status;

	channel_defaults(fixture->key_files[which], NULL);
	channel_open(&control, fixture->process.network_address, (uint64_t) which + 1, 0);
	status = fabric_call(control.endpoint, method, request, request == NULL ? 0 : 16, info, &bytes);
	channel_close(&control);
	return status;
}

static FabricStatus
commit_as(const Fixture *fixture, int which, uint64_t offset)
{
	return call_as(fixture, which, SERVICE_COMMIT, (uint64_t[2]){offset, FABRIC_UNIT_BYTES}, NULL);
}

/* Opens the channel of one of them, which has its own part, with the first unit of it. */
static void
open_client(Fixture *fixture, int which)
{
	uint64_t cluster = (uint64_t) which + 1;

	CHECK(call_as(fixture, which, SERVICE_INFO, NULL, &fixture->info[which]) == FABRIC_OK);
	CHECK(commit_as(fixture, which, fixture->info[which].first_unit) == FABRIC_OK);
	fixture->incarnation[which] = cluster_attach(fixture->process.network_address, cluster);
	channel_open(&fixture->channel[which], fixture->process.network_address, cluster,
	             fixture->incarnation[which]);
}

static void
fixture_start(Fixture *fixture)
{
	memset(fixture, 0, sizeof(*fixture));
	fabric_process_prepare(&fixture->process, NODE_BYTES, MAX_CHANNELS);
	fabric_process_listen(&fixture->process, true);
	fabric_process_verbs(&fixture->process, device);
	snprintf(fixture->key_files[0], sizeof(fixture->key_files[0]), "%s", fixture->process.key_file);
	snprintf(fixture->key_files[1], sizeof(fixture->key_files[1]), "%s/second", fixture->process.directory);
	add_tenant(&fixture->process, "second", fixture->key_files[1]);
	fabric_process_start(&fixture->process);
	open_client(fixture, 0);
	open_client(fixture, 1);
}

static void
fixture_end(Fixture *fixture)
{
	channel_close(&fixture->channel[0]);
	channel_close(&fixture->channel[1]);
	channel_defaults(NULL, NULL);
	unlink(fixture->key_files[1]);
	fabric_process_remove(&fixture->process);
}

static FabricStatus
run_one(TestChannel *channel, FabricOp op, uint64_t *result)
{
	FabricStatus status = fabric_execute(channel->endpoint, &op, 1);

	if (result != NULL)
		*result = op.result;
	return status;
}

/* ---- parts ---- */

/* Each has half of the memory, lock words of its own, and what an honest client does elsewhere is refused before it leaves. */
static void
case_parts(void)
{
	Fixture fixture;
	uint64_t word, first, old;

	fixture_start(&fixture);
	CHECK(fixture.info[0].end <= fixture.info[1].first_unit);
	CHECK(fixture.info[0].end - fixture.info[0].first_unit == NODE_BYTES / 2);
	CHECK(fixture.info[1].end - fixture.info[1].first_unit == NODE_BYTES / 2);
	for (int i = 0; i < 2; i++)
	{
		word = 0xa0 + (uint64_t) i;
		channel_write(&fixture.channel[i], fixture.info[i].first_unit, &word, 8);
		CHECK(run_one(&fixture.channel[i], op_compare_swap(FABRIC_LOCKS, 0, 0, word), &old) == FABRIC_OK &&
		      old == 0);
	}
	for (int i = 0; i < 2; i++)
	{
		first = fixture.info[1 - i].first_unit;
		CHECK(commit_as(&fixture, i, first + FABRIC_UNIT_BYTES) == FABRIC_RANGE);
		CHECK(run_one(&fixture.channel[i], op_write(first, &word, 8), NULL) == FABRIC_RANGE);
		CHECK(run_one(&fixture.channel[i], op_fetch_add(FABRIC_NODES, first, 1), NULL) == FABRIC_RANGE);
		word = 1;
		channel_read(&fixture.channel[i], first, &word, 8);
		CHECK(word == 0);
		channel_read(&fixture.channel[i], fixture.info[i].first_unit, &word, 8);
		CHECK(word == 0xa0 + (uint64_t) i);
		CHECK(run_one(&fixture.channel[i], op_compare_swap(FABRIC_LOCKS, 0, word, 0), &old) == FABRIC_OK &&
		      old == word);
	}
	/* Those on this machine have no key, and all is dealt. */
	channel_defaults(NULL, NULL);
	CHECK(channel_try_open(&(TestChannel){0}, fixture.process.address, 3,
	                       cluster_attach(fixture.process.address, 3), NULL) == FABRIC_DENIED);
	fixture_end(&fixture);
}

/* ---- foreign ---- */

/* The second client makes up that it reaches what the first one does, with the right keys and addresses. */
static void
try_foreign(Fixture *fixture, VerbsReach reach, FabricOp op)
{
	const VerbsFlight *victim = fixture->channel[0].endpoint->state;
	VerbsFlight *flight = fixture->channel[1].endpoint->state;

	flight->grant.windows[reach] = victim->grant.windows[reach];
	CHECK(run_one(&fixture->channel[1], op, NULL) == FABRIC_LOST);
	CHECK(fabric_reset(fixture->channel[1].endpoint) == FABRIC_OK);
}

/* The device refuses all of another tenant's memory, its owner notices nothing, and who tried is served again after a reset. */
static void
case_foreign(void)
{
	Fixture fixture;
	uint64_t mine = 0x600d, bad = 0xbad, found, slot;

	fixture_start(&fixture);
	slot = fabric_capabilities(fixture.channel[0].endpoint)->redo_offset;
	channel_write(&fixture.channel[0], fixture.info[0].first_unit, &mine, 8);
	channel_write(&fixture.channel[0], slot, &mine, 8);
	CHECK(run_one(&fixture.channel[0], op_compare_swap(FABRIC_LOCKS, 8, 0, mine), &found) == FABRIC_OK);
	channel_defaults(fixture.key_files[1], NULL);
	try_foreign(&fixture, VERBS_PART, op_read(fixture.info[0].first_unit, &found, 8));
	try_foreign(&fixture, VERBS_PART, op_write(fixture.info[0].first_unit, &bad, 8));
	try_foreign(&fixture, VERBS_PART, op_fetch_add(FABRIC_NODES, fixture.info[0].first_unit, 1));
	try_foreign(&fixture, VERBS_REDO, op_write(slot, &bad, 8));
	try_foreign(&fixture, VERBS_LOCKS, op_fetch_add(FABRIC_LOCKS, 8, 1));
	channel_read(&fixture.channel[0], fixture.info[0].first_unit, &found, 8);
	CHECK(found == mine);
	channel_read(&fixture.channel[0], slot, &found, 8);
	CHECK(found == mine);
	CHECK(run_one(&fixture.channel[0], op_compare_swap(FABRIC_LOCKS, 8, mine, 0), &found) == FABRIC_OK &&
	      found == mine);
	channel_write(&fixture.channel[1], fixture.info[1].first_unit, &bad, 8);
	fixture_end(&fixture);
}

/* ---- readers ---- */

/* A reader posts what it may not, by keys that others have: the device refuses it, and a reset serves the reader again. */
static void
try_as_reader(TestChannel *reader, const TestChannel *owner, uint64_t offset, FabricOp op)
{
	const VerbsFlight *owners = owner->endpoint->state;
	VerbsFlight *flight = reader->endpoint->state;
	uint64_t word;

	flight->grant.windows[VERBS_LOCKS] = owners->grant.windows[VERBS_LOCKS];
	reader->endpoint->reader = false;
	CHECK(run_one(reader, op, NULL) == FABRIC_LOST);
	reader->endpoint->reader = true;
	CHECK(run_one(reader, op, NULL) == FABRIC_LOST);
	CHECK(fabric_reset(reader->endpoint) == FABRIC_OK);
	CHECK(run_one(reader, op, NULL) == FABRIC_PROTOCOL);
	channel_read(reader, offset, &word, 8);
	CHECK(word == 0x600d);
}

/* What a reader learns of memory: no lock words, and a redo slot that nobody changes through its key, who may change others. */
static void
check_windows_of_reader(Fixture *fixture, const TestChannel *reader)
{
	const VerbsWindow *theirs = ((const VerbsFlight *) reader->endpoint->state)->grant.windows;
	TestChannel *owner = &fixture->channel[0];
	VerbsFlight *flight = owner->endpoint->state;
	uint64_t slot = fabric_capabilities(reader->endpoint)->redo_offset, word = 0xbad;

	CHECK(theirs[VERBS_LOCKS].key == 0 && theirs[VERBS_LOCKS].base == 0);
	CHECK(theirs[VERBS_REDO].first == slot);
	flight->grant.windows[VERBS_REDO] = theirs[VERBS_REDO];
	CHECK(run_one(owner, op_read(slot, &word, 8), NULL) == FABRIC_OK && word == 0);
	CHECK(run_one(owner, op_write(slot, &word, 8), NULL) == FABRIC_LOST);
	CHECK(fabric_reset(owner->endpoint) == FABRIC_OK);
}

/* A queue pair that serves a reader changes no memory that the reader's tenant has, not even the reader's redo slot. */
static void
case_readers(void)
{
	const FabricOptions options = {
		.operation_timeout_ms = PATIENCE_MS / 2, .connect_timeout_ms = PATIENCE_MS / 2, .reader = true};
	Fixture fixture;
	TestChannel *owner = &fixture.channel[0];
	TestChannel reader;
	uint64_t mine = 0x600d, bad = 0xbad, offset;

	fixture_start(&fixture);
	offset = fixture.info[0].first_unit;
	channel_write(owner, offset, &mine, 8);
	channel_defaults(fixture.key_files[0], NULL);
	CHECK(channel_try_open(&reader, fixture.process.network_address, 1, 0, &options) == FABRIC_OK);
	CHECK(fabric_capabilities(reader.endpoint)->incarnation == fixture.incarnation[0]);
	try_as_reader(&reader, owner, offset, op_write(offset, &bad, 8));
	try_as_reader(&reader, owner, offset, op_compare_swap(FABRIC_NODES, offset, mine, bad));
	try_as_reader(&reader, owner, offset, op_fetch_add(FABRIC_NODES, offset, 1));
	try_as_reader(&reader, owner, offset,
	              op_write(fabric_capabilities(reader.endpoint)->redo_offset, &bad, 8));
	try_as_reader(&reader, owner, offset, op_fetch_add(FABRIC_LOCKS, 8, 1));
	CHECK(run_one(owner, op_compare_swap(FABRIC_LOCKS, 8, 0, 0), &bad) == FABRIC_OK && bad == 0);
	check_windows_of_reader(&fixture, &reader);
	channel_close(&reader);
	fixture_end(&fixture);
}

/* ---- restart ---- */

/* After the memory node's death each finds its part where it was, and what it wrote there. */
static void
case_restart(void)
{
	ServiceInfo info;
	Fixture fixture;
	uint64_t word;

	fixture_start(&fixture);
	for (uint64_t i = 0; i < 2; i++)
	{
		word = 0xb0 + i;
		channel_write(&fixture.channel[i], fixture.info[i].first_unit, &word, 8);
	}
	fabric_process_stop(&fixture.process, SIGKILL);
	fabric_process_start(&fixture.process);
	for (int i = 1; i >= 0; i--)
	{
		CHECK(call_as(&fixture, i, SERVICE_INFO, NULL, &info) == FABRIC_OK);
		CHECK(info.first_unit == fixture.info[i].first_unit && info.end == fixture.info[i].end);
		CHECK(fabric_reset(fixture.channel[i].endpoint) == FABRIC_OK);
		channel_read(&fixture.channel[i], fixture.info[i].first_unit, &word, 8);
		CHECK(word == 0xb0 + (uint64_t) i);
	}
	fixture_end(&fixture);
}

/* ---- beside ---- */

static void
count(const char *address, uint32_t incarnation, uint64_t offset)
{
	TestChannel channel;

	channel_open(&channel, address, 1, incarnation);
	for (uint32_t i = 0; i < COUNTS; i++)
	{
		CHECK(run_one(&channel, op_fetch_add(FABRIC_NODES, offset, 1), NULL) == FABRIC_OK);
		CHECK(run_one(&channel, op_fetch_add(FABRIC_LOCKS, 64, 1), NULL) == FABRIC_OK);
	}
	channel_close(&channel);
	_exit(0);
}

/* Clients of verbs, of tcp and of the socket count together: there is one atomic domain, that of the device. */
static void
case_beside(void)
{
	FabricProcess node;
	char tcp[sizeof(node.network_address)];
	const char *addresses[3] = {NULL, tcp, NULL};
	TestChannel channels[3];
	pid_t children[3];
	uint64_t offset, word, old;
	uint32_t incarnation;

	fabric_process_prepare(&node, NODE_BYTES, MAX_CHANNELS);
	fabric_process_listen(&node, false);
	snprintf(tcp, sizeof(tcp), "%s", node.network_address);
	fabric_process_verbs(&node, device);
	addresses[0] = node.network_address;
	addresses[2] = node.address;
	fabric_process_start(&node);
	offset = service_info(tcp).first_unit;
	CHECK(service_commit(tcp, offset, FABRIC_UNIT_BYTES) == FABRIC_OK);
	incarnation = cluster_attach(tcp, 1);
	for (int i = 0; i < 3; i++)
	{
		const FabricCapabilities *capabilities;

		channel_open(&channels[i], addresses[i], 1, incarnation);
		capabilities = fabric_capabilities(channels[i].endpoint);
		CHECK((capabilities->flags & FABRIC_CAP_OPERATION_ATOMIC) == 0);
		CHECK(capabilities->flags == fabric_capabilities(channels[0].endpoint)->flags);
		CHECK(capabilities->one_packet < FABRIC_STRIPE_BYTES);
	}
	for (int i = 0; i < 3; i++)
	{
		children[i] = start_child();
		if (children[i] == 0)
			count(addresses[i], incarnation, offset);
	}
	for (int i = 0; i < 3; i++)
		CHECK(wait_for_child(children[i]) == 0);
	for (uint64_t i = 0; i < 3; i++)
	{
		channel_read(&channels[i], offset, &word, 8);
		CHECK(word == 3 * COUNTS + i);
		word++;
		channel_write(&channels[i], offset, &word, 8);
		CHECK(run_one(&channels[i], op_fetch_add(FABRIC_LOCKS, 64, 0), &old) == FABRIC_OK &&
		      old == 3 * COUNTS);
		/* What is not granted is refused, where the memory node sees it. */
		if (i > 0)
			CHECK(run_one(&channels[i], op_write(offset + FABRIC_UNIT_BYTES, &word, 8), NULL) ==
			      FABRIC_RANGE);
	}
	/* An attach ends them all. */
	incarnation = cluster_attach(tcp, 1);
	for (int i = 0; i < 3; i++)
	{
		CHECK(run_one(&channels[i], op_fetch_add(FABRIC_LOCKS, 64, 0), NULL) != FABRIC_OK);
		CHECK(fabric_reset(channels[i].endpoint) == FABRIC_FENCED);
		channel_close(&channels[i]);
	}
	fabric_process_remove(&node);

	/* Without a device there is no verbs. */
	fabric_process_prepare(&node, NODE_BYTES, MAX_CHANNELS);
	fabric_process_listen(&node, false);
	fabric_process_start(&node);
	incarnation = cluster_attach(node.network_address, 1);
	snprintf(tcp, sizeof(tcp), "verbs:%s", node.listen);
	CHECK(channel_try_open(&channels[0], tcp, 1, incarnation, NULL) == FABRIC_NOT_SUPPORTED);
	channel_open(&channels[0], node.network_address, 1, incarnation);
	channel_close(&channels[0]);
	fabric_process_remove(&node);
}

/* ---- locks ---- */

/* Lock words on the device: won, given back, freed at an attach, and everybody is fenced when the memory node starts again. */
static void
case_locks(void)
{
	Fixture fixture;
	uint64_t words[2], old;
	uint32_t first;

	setenv("SOFT_DEVICE_LOCKS", "1", 1);
	fixture_start(&fixture);
	CHECK(fabric_capabilities(fixture.channel[0].endpoint)->flags & FABRIC_CAP_DEVICE_LOCKS);
	for (int i = 0; i < 2; i++)
	{
		words[i] = fabric_lock_word(fabric_capabilities(fixture.channel[i].endpoint)->instance,
		                            fixture.incarnation[i], 7);
		CHECK(run_one(&fixture.channel[i], op_compare_swap(FABRIC_LOCKS, 16, 0, words[i]), &old) ==
		          FABRIC_OK &&
		      old == 0);
	}
	channel_defaults(fixture.key_files[0], NULL);
	first = cluster_attach(fixture.process.network_address, 1);
	channel_close(&fixture.channel[0]);
	channel_open(&fixture.channel[0], fixture.process.network_address, 1, first);
	for (int i = 0; i < 2; i++)
		CHECK(run_one(&fixture.channel[i], op_fetch_add(FABRIC_LOCKS, 16, 0), &old) == FABRIC_OK &&
		      old == (i == 0 ? 0 : words[1]));
	fabric_process_stop(&fixture.process, SIGKILL);
	fabric_process_start(&fixture.process);
	CHECK(fabric_reset(fixture.channel[0].endpoint) == FABRIC_FENCED);
	fixture_end(&fixture);
	unsetenv("SOFT_DEVICE_LOCKS");
}

/* ---- broken ---- */

/* A device that loses a chain of a tcp client, or never ends it: that client has to reset, and nobody else waits for it. */
static void
case_broken(void)
{
	static const uint64_t orders[] = {SOFT_LOSE, SOFT_STALL};
	FabricProcess node;
	TestChannel victim, other;
	uint64_t offset, word = 1, ticket;
	uint32_t incarnation;

	fabric_process_prepare(&node, NODE_BYTES, MAX_CHANNELS);
	fabric_process_listen(&node, false);
	node.verbs_device = device;
	fabric_process_start(&node);
	offset = service_info(node.network_address).first_unit;
	CHECK(service_commit(node.network_address, offset, FABRIC_UNIT_BYTES) == FABRIC_OK);
	incarnation = cluster_attach(node.network_address, 1);
	channel_open(&victim, node.network_address, 1, incarnation);
	channel_open(&other, node.network_address, 1, incarnation);
	for (int i = 0; i < 2; i++)
	{
		FabricOp op = op_fetch_add(FABRIC_NODES, offset, orders[i]);

		CHECK(fabric_post(victim.endpoint, &op, 1, &ticket) == FABRIC_OK);
		for (uint32_t round = 0; round < COUNTS; round++)
		{
			word = round;
			channel_write(&other, offset + 8, &word, 8);
			channel_read(&other, offset + 8, &word, 8);
			CHECK(word == round);
		}
		CHECK(i == 0 || !fabric_ended(victim.endpoint, ticket));
		CHECK(fabric_wait(victim.endpoint, ticket) == FABRIC_FENCED);
		CHECK(fabric_reset(victim.endpoint) == FABRIC_OK);
		channel_read(&victim, offset, &word, 8);
		CHECK(word == 0);
	}
	channel_close(&victim);
	channel_close(&other);
	fabric_process_remove(&node);
}

/* The last two need the device that plays one. */
static const TestCase cases[] = {
	{"parts", case_parts}, {"foreign", case_foreign}, {"restart", case_restart}, {"beside", case_beside},
	{"locks", case_locks}, {"readers", case_readers}, {"broken", case_broken},
};

int
main(int argc, char **argv)
{
	int first;

	device = test_device(argc, argv, &first);
	return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argv + first);
}
