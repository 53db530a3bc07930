/*
 * swaps.c
 *		Swaps of 16 bits on devices that do them, do not, or say that they do: on the memory node's side and on the client's.
 *
 *		swaps [--verbs DEVICE] CASE...		the device is else $FABRIC_TEST_VERBS; one that soft_device.c or soft_verbs.c plays,
 *		and for the case `absent` one that has none
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "support/fabric_process.h"

#define NODE_BYTES (4u << 20)
#define MAX_CHANNELS 8u
#define LANE_WORD (40u * 8)

/* Of each of two processes that count beside each other. */
#define COUNTS 300u

/* A client has a quarter of this for its trial: enough for a device that answers, not too much for one that never does. */
#define SHORT_TIMEOUT_MS 6000u

static const char *device;

/* What a device may claim, or do ($SOFT_DEVICE_SWAPS), and what is said of it. */
typedef struct Lie
{
	const char *kind;
	const char *reason;
} Lie;

static const Lie lies[] = {
	{"none", "the device has none"},
	{"word", "the device swaps other bits than it is told to"},
	{"compare", "the device swaps other bits than it is told to"},
	{"swap", "the device swaps other bits than it is told to"},
	{"spill", "the device changes other memory than it is told to"},
	{"order", "the device swaps other bits than it is told to"},
	{"error", "the device answers with an error"},
	{"hang", "the device does not answer"},
};

#define LIES (sizeof(lies) / sizeof(lies[0]))

typedef struct Stage
{
	FabricProcess process;
	uint32_t incarnation;
	uint64_t offset; /* a unit that is granted */
} Stage;

/* Does the memory node's log have the text, at its last start? */
static bool
log_says(const Stage *stage, const char *text)
{
	char log[16384];
	const char *last = NULL;
	int file = open(stage->process.log_path, O_RDONLY | O_CLOEXEC);
	ssize_t bytes = file < 0 ? -1 : read(file, log, sizeof(log) - 1);

	CHECK(bytes >= 0);
	close(file);
	log[bytes] = '\0';
	for (const char *found = log; (found = strstr(found, "native 16-bit swaps: ")) != NULL; found++)
		last = found;
	CHECK(last != NULL);
	return strncmp(last, text, strlen(text)) == 0;
}

static void
start_node(Stage *stage, const char *kind)
{
	setenv("SOFT_DEVICE_SWAPS", kind, 1);
	fabric_process_start(&stage->process);
	unsetenv("SOFT_DEVICE_SWAPS");
}

/* A memory node with a device of that kind, and a cluster attached. */
static void
stage_start(Stage *stage, const char *kind)
{
	memset(stage, 0, sizeof(*stage));
	fabric_process_prepare(&stage->process, NODE_BYTES, MAX_CHANNELS);
	snprintf(stage->process.log_path, sizeof(stage->process.log_path), "%s/log", stage->process.directory);
	fabric_process_listen(&stage->process, false);
	fabric_process_verbs(&stage->process, device);
	start_node(stage, kind);
	/* A machine that stands still for seconds looks like a device that does not answer. */
	for (int i = 0; i < 5 && strcmp(kind, "hang") != 0 &&
	                log_says(stage, "native 16-bit swaps: no (the device does not answer)");
	     i++)
	{
		fabric_process_stop(&stage->process, SIGTERM);
		start_node(stage, kind);
	}
	stage->offset = service_info(stage->process.network_address).first_unit;
	CHECK(service_commit(stage->process.network_address, stage->offset, FABRIC_UNIT_BYTES) == FABRIC_OK);
	stage->incarnation = cluster_attach(stage->process.network_address, 1);
}

/* A client whose own device is of that kind. */
static void
open_client(const Stage *stage, const char *address, const char *kind, TestChannel *channel)
{
	const FabricOptions options = {.operation_timeout_ms =
	                                   strcmp(kind, "hang") == 0 ? SHORT_TIMEOUT_MS : 2 * PATIENCE_MS,
	                               .connect_timeout_ms = PATIENCE_MS};

	setenv("SOFT_DEVICE_SWAPS", kind, 1);
	CHECK(channel_try_open(channel, address, 1, stage->incarnation, &options) == FABRIC_OK);
	unsetenv("SOFT_DEVICE_SWAPS");
}

static bool
has_swaps(const TestChannel *channel)
{
	const FabricCapabilities *capabilities = fabric_capabilities(channel->endpoint);
	bool has = (capabilities->flags & FABRIC_CAP_MASKED_SWAP) != 0;

	CHECK(!has || capabilities->no_masked_swap[0] == '\0');
	return has;
}

static uint64_t
run_atomic(TestChannel *channel, FabricOp op)
{
	CHECK(fabric_execute(channel->endpoint, &op, 1) == FABRIC_OK);
	return op.result;
}

/* All but the swaps of 16 bits works, these are refused, and what was tried has left nothing behind. */
static void
check_without(TestChannel *channel, uint64_t offset)
{
	static const uint64_t zeroes[FABRIC_REDO_BYTES / 8];
	FabricOp swap = op_masked_swap(FABRIC_LOCKS, LANE_WORD, 0, 0, 1);
	uint64_t slot[FABRIC_STRIPE_BYTES / 8];
	uint64_t word = 0x77;

	CHECK(fabric_execute(channel->endpoint, &swap, 1) == FABRIC_NOT_SUPPORTED);
	CHECK(run_atomic(channel, op_compare_swap(FABRIC_LOCKS, LANE_WORD, 0, 5)) == 0);
	CHECK(run_atomic(channel, op_compare_swap(FABRIC_LOCKS, LANE_WORD, 5, 0)) == 5);
	channel_write(channel, offset, &word, 8);
	word = 0;
	channel_read(channel, offset, &word, 8);
	CHECK(word == 0x77);
	channel_read(channel, fabric_capabilities(channel->endpoint)->redo_offset, slot, sizeof(slot));
	CHECK(memcmp(slot, zeroes, sizeof(slot)) == 0);
}

/* ---- good ---- */

/* A device that keeps its word: all clients have it, those in frames too. */
static void
case_good(void)
{
	Stage stage;
	TestChannel channels[3];
	char tcp[sizeof(stage.process.network_address)];

	stage_start(&stage, "good");
	CHECK(log_says(&stage, "native 16-bit swaps: yes"));
	snprintf(tcp, sizeof(tcp), "tcp:%s", stage.process.listen);
	open_client(&stage, stage.process.network_address, "good", &channels[0]);
	open_client(&stage, tcp, "good", &channels[1]);
	open_client(&stage, stage.process.address, "good", &channels[2]);
	for (uint64_t i = 0; i < 3; i++)
	{
		CHECK(has_swaps(&channels[i]));
		CHECK(run_atomic(&channels[i], op_masked_swap(FABRIC_LOCKS, LANE_WORD, 2, i, i + 1)) == i << 32);
	}
	CHECK(run_atomic(&channels[0], op_masked_swap(FABRIC_LOCKS, LANE_WORD, 2, 3, 0)) == 3ull << 32);
	/* A new channel is tried again. */
	CHECK(fabric_reset(channels[0].endpoint) == FABRIC_OK);
	CHECK(has_swaps(&channels[0]));
	for (int i = 0; i < 3; i++)
		channel_close(&channels[i]);
	fabric_process_remove(&stage.process);
}

/* ---- node ---- */

/* A client in frames that sends one all the same is refused, and no worse off than with any other bad chain. */
static void
send_unasked(TestChannel *channel)
{
	FabricCapabilities *capabilities =
		(FabricCapabilities *) (uintptr_t) fabric_capabilities(channel->endpoint);
	FabricOp swap = op_masked_swap(FABRIC_LOCKS, LANE_WORD, 0, 0, 1);

	capabilities->flags |= FABRIC_CAP_MASKED_SWAP;
	CHECK(fabric_execute(channel->endpoint, &swap, 1) == FABRIC_NOT_SUPPORTED);
	CHECK(fabric_reset(channel->endpoint) == FABRIC_OK);
	CHECK(!has_swaps(channel));
}

/* A memory node whose device does not keep its word offers nothing, and says why; the clients' devices are as they should be. */
static void
case_node(void)
{
	for (size_t i = 0; i < LIES; i++)
	{
		Stage stage;
		TestChannel channels[2];
		char expected[160];
		char tcp[sizeof(stage.process.network_address)];

		stage_start(&stage, lies[i].kind);
		snprintf(expected, sizeof(expected), "native 16-bit swaps: no (%s)", lies[i].reason);
		CHECK(log_says(&stage, expected));
		snprintf(tcp, sizeof(tcp), "tcp:%s", stage.process.listen);
		open_client(&stage, stage.process.network_address, "good", &channels[0]);
		open_client(&stage, tcp, "good", &channels[1]);
		for (int k = 0; k < 2; k++)
		{
			CHECK(!has_swaps(&channels[k]));
			check_without(&channels[k], stage.offset);
			if (k == 1)
				send_unasked(&channels[k]);
			channel_close(&channels[k]);
		}
		fabric_process_remove(&stage.process);
	}
}

/* ---- absent ---- */

/* A device that nobody claims it of: libmlx5 is not there, or drives another one. */
static void
case_absent(void)
{
	static const char *const kinds[] = {"none", "good"};

	for (int i = 0; i < 2; i++)
	{
		Stage stage;
		TestChannel channel;

		stage_start(&stage, kinds[i]);
		CHECK(log_says(&stage, "native 16-bit swaps: no (the device has none)"));
		open_client(&stage, stage.process.network_address, kinds[i], &channel);
		CHECK(!has_swaps(&channel));
		check_without(&channel, stage.offset);
		channel_close(&channel);
		fabric_process_remove(&stage.process);
	}
}

/* ---- client ---- */

/* A client whose device does not keep its word does without, whatever the memory node offers, and knows why. */
static void
case_client(void)
{
	Stage stage;

	stage_start(&stage, "good");
	CHECK(log_says(&stage, "native 16-bit swaps: yes"));
	for (size_t i = 0; i < LIES; i++)
	{
		TestChannel channel;

		open_client(&stage, stage.process.network_address, lies[i].kind, &channel);
		CHECK(!has_swaps(&channel));
		CHECK(strcmp(fabric_capabilities(channel.endpoint)->no_masked_swap, lies[i].reason) == 0);
		check_without(&channel, stage.offset);
		/* A reset tries nothing again, and so costs no second wait. */
		CHECK(fabric_reset(channel.endpoint) == FABRIC_OK);
		CHECK(!has_swaps(&channel));
		check_without(&channel, stage.offset);
		channel_close(&channel);
	}
	fabric_process_remove(&stage.process);
}

/* ---- mixed ---- */

/* Counts one lane of a word up: by swaps of 16 bits, or by swaps of all of it. */
static void
count_lane(const Stage *stage, const char *kind, uint8_t lane)
{
	uint64_t unit = 1ull << lane * FABRIC_LANE_BITS;
	uint64_t known = 0;
	TestChannel channel;

	open_client(stage, stage->process.network_address, kind, &channel);
	for (uint64_t i = 0; i < COUNTS && has_swaps(&channel); i++)
		CHECK((run_atomic(&channel, op_masked_swap(FABRIC_LOCKS, LANE_WORD, lane, i, i + 1)) / unit &
		       0xffff) == i);
	for (uint64_t i = 0; i < COUNTS && !has_swaps(&channel);)
	{
		uint64_t found = run_atomic(&channel, op_compare_swap(FABRIC_LOCKS, LANE_WORD, known, known + unit));

		i += found == known;
		known = found == known ? known + unit : found;
	}
	channel_close(&channel);
	_exit(0);
}

/* Who has them and who has not are atomic together, as both go through the device. */
static void
case_mixed(void)
{
	static const char *const kinds[] = {"good", "none", "good"};
	Stage stage;
	TestChannel channel;
	pid_t children[3];
	uint64_t word = 0;

	stage_start(&stage, "good");
	for (uint8_t i = 0; i < 3; i++)
	{
		children[i] = start_child();
		if (children[i] == 0)
			count_lane(&stage, kinds[i], i);
		word = word << 16 | COUNTS;
	}
	for (int i = 0; i < 3; i++)
		CHECK(wait_for_child(children[i]) == 0);
	open_client(&stage, stage.process.network_address, "good", &channel);
	CHECK(run_atomic(&channel, op_fetch_add(FABRIC_LOCKS, LANE_WORD, 0)) == word);
	channel_close(&channel);
	fabric_process_remove(&stage.process);
}

/* ---- own ---- */

/* The trial is made where the lock words are: in the device's own memory. */
static void
case_own(void)
{
	Stage stage;
	TestChannel channel;

	setenv("SOFT_DEVICE_LOCKS", "1", 1);
	stage_start(&stage, "good");
	CHECK(log_says(&stage, "native 16-bit swaps: yes"));
	open_client(&stage, stage.process.network_address, "good", &channel);
	CHECK(has_swaps(&channel));
	CHECK(fabric_capabilities(channel.endpoint)->flags & FABRIC_CAP_DEVICE_LOCKS);
	CHECK(run_atomic(&channel, op_masked_swap(FABRIC_LOCKS, 0, 0, 0, 1)) == 0);
	CHECK(run_atomic(&channel, op_fetch_add(FABRIC_LOCKS, 0, 0)) == 1);
	CHECK(run_atomic(&channel, op_fetch_add(FABRIC_LOCKS, 8, 0)) == 0);
	channel_close(&channel);
	fabric_process_remove(&stage.process);
	unsetenv("SOFT_DEVICE_LOCKS");
}

static const TestCase cases[] = {
	{"good", case_good},   {"node", case_node}, {"client", case_client},
	{"mixed", case_mixed}, {"own", case_own},   {"absent", case_absent},
};

int
main(int argc, char **argv)
{
	int first;

	device = test_device(argc, argv, &first);
	return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argv + first);
}
