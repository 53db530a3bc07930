/*
 * bad_network.c
 *		A client of verbs whose network cuts, loses, delays, doubles and reorders frames: what the fabric says is exact all the same.
 *
 *		bad_network ADDRESS KEY_FILE cut SECONDS			so long, and until it was cut off at least once
 *		bad_network ADDRESS KEY_FILE stop SECONDS			the same, and its user loses patience with each chain that stalls
 *		bad_network ADDRESS KEY_FILE chains COUNT DOUBTS	so many chains, of which at most DOUBTS end in doubt
 *
 * It is alone, so that it knows each word: a count that goes up, a word that is written with it, a lock word, and a block of
 * several packets that is written under the lock.  Whatever happens: every result is exactly what the word was, nothing is executed
 * twice, no call takes longer than its deadline, an indeterminate chain is settled by the reset, and nothing of it lands afterwards.
 */
#define _GNU_SOURCE 1
#include <poll.h>
#include <string.h>

#include "support/fabric_process.h"

#define CHAIN_TIMEOUT_MS 3000u
#define CONNECT_TIMEOUT_MS 3000u
/* What an emulated machine on a busy one adds to a deadline. */
#define SLACK_MS 10000u
/* Longest that we wait for the network to come back. */
#define RETURN_MS 120000u
/* Patience of a user, far below what the devices take to give up. */
#define STOP_MS 200u
/* A late chain would land in this time. */
#define LATE_MS 300u

#define BLOCK_WORDS (FABRIC_STRIPE_BYTES / 8)
#define MINE 0x5a5a000000000001ull

/* What of the area is looked at after a doubt. */
typedef struct Image
{
	uint64_t counts[2]; /* the count, and the word that is written with it */
	uint64_t lock;
	uint64_t block[BLOCK_WORDS];
} Image;

typedef struct Client
{
	TestChannel channel;
	uint64_t area;  /* offset: the counts, and one stripe further the block */
	uint64_t count; /* what the words are */
	uint64_t lock;
	uint64_t version;   /* of the block */
	bool block_unknown; /* it may be a mixture of two versions */
	bool stops_early;
	uint64_t stop_at; /* the wait hook says so from then on; 0: never */
	uint64_t chains, doubts, stops, landed;
	uint64_t failed_resets;
	uint64_t longest_ms; /* call */
} Client;

/* Notes how long a call took, which has this deadline. */
static void
note_time(Client *client, uint64_t begin, uint32_t deadline_ms)
{
	uint64_t took = now_ms() - begin;

	if (took > client->longest_ms)
		client->longest_ms = took;
	CHECK(took <= deadline_ms + SLACK_MS);
}

/* The wait hook: a user who cancels. */
static int
wait_or_stop(void *argument, const int *descriptors, int count, int milliseconds)
{
	const Client *client = argument;
	struct pollfd polled[8];

	CHECK(count <= 8);
	for (int i = 0; i < count; i++)
		polled[i] = (struct pollfd){.fd = descriptors[i], .events = POLLIN};
	if (client->stop_at != 0 && now_ms() >= client->stop_at)
		return -1;
	return poll(polled, (nfds_t) count,
	            client->stop_at != 0 && milliseconds > (int) STOP_MS ? (int) STOP_MS : milliseconds);
}

/* Resets until it succeeds. */
static void
recover(Client *client)
{
	uint64_t start = now_ms();

	for (;;)
	{
		uint64_t begin = now_ms();
		FabricStatus status = fabric_reset(client->channel.endpoint);

		/* A call to a memory node out of reach, then a new connection to it. */
		note_time(client, begin, 2 * CONNECT_TIMEOUT_MS);
		if (status == FABRIC_OK)
			return;
		CHECK(status == FABRIC_UNREACHABLE || status == FABRIC_TIMED_OUT || status == FABRIC_LOST);
		client->failed_resets++;
		CHECK(now_ms() - start < RETURN_MS);
		sleep_ms(20);
	}
}

/* The words of a version of the block. */
static uint64_t
block_word(uint64_t version, uint32_t position)
{
	return version * 0x9e3779b97f4a7c15ull + position;
}

static bool
block_is(const uint64_t *block, uint64_t version)
{
	for (uint32_t i = 0; i < BLOCK_WORDS; i++)
	{
		if (block[i] != block_word(version, i))
			return false;
	}
	return true;
}

/* Reads everything, over a network that may lose this, too. */
static void
look(Client *client, Image *image)
{
	for (;;)
	{
		FabricOp lock = op_compare_swap(FABRIC_LOCKS, 0, 0, 0);
		FabricOp ops[] = {op_read(client->area, image->counts, sizeof(image->counts)),
		                  op_read(client->area + FABRIC_STRIPE_BYTES, image->block, sizeof(image->block)),
		                  lock};
		uint64_t begin = now_ms();
		FabricStatus status = fabric_execute(client->channel.endpoint, ops, 3);

		note_time(client, begin, CHAIN_TIMEOUT_MS);
		image->lock = ops[2].result;
		if (status == FABRIC_OK)
			return;
		CHECK(status == FABRIC_LOST || status == FABRIC_TIMED_OUT);
		recover(client);
	}
}

/* A chain in doubt: ends the doubt, and sees what became of it.  It was to change the words to these. */
static void
settle(Client *client, uint64_t count, uint64_t lock, uint64_t version)
{
	Image image, later;

	client->doubts++;
	recover(client);
	look(client, &image);
	sleep_ms(LATE_MS);
	look(client, &later);
	CHECK(memcmp(&image, &later, sizeof(image)) == 0);
	CHECK(image.counts[0] == client->count || image.counts[0] == count);
	CHECK(image.lock == client->lock || image.lock == lock);
	/* Where the last operation of the chain landed, all of them did. */
	if (image.counts[0] != client->count)
		CHECK(image.counts[1] == count || image.counts[1] == client->count);
	if (client->lock != 0 && image.lock == 0)
		CHECK(block_is(image.block, version));
	client->landed += image.counts[0] != client->count || image.lock != client->lock;
	client->count = image.counts[0];
	client->lock = image.lock;
	client->block_unknown = !block_is(image.block, client->version) && !block_is(image.block, version);
	if (block_is(image.block, version))
		client->version = version;
}

/* Runs a chain. False: it was in doubt, which is settled. */
static bool
run_chain(Client *client, FabricOp *ops, int count, uint64_t next, uint64_t lock, uint64_t version)
{
	uint64_t begin = now_ms();
	FabricStatus status;

	client->stop_at = client->stops_early ? begin + STOP_MS : 0;
	status = fabric_execute(client->channel.endpoint, ops, count);
	client->stop_at = 0;
	note_time(client, begin, CHAIN_TIMEOUT_MS);
	client->chains++;
	if (status == FABRIC_OK)
		return true;
	CHECK(status == FABRIC_LOST || status == FABRIC_TIMED_OUT ||
	      (client->stops_early && status == FABRIC_STOPPED));
	client->stops += status == FABRIC_STOPPED;
	printf("chain %llu (%s at the end): %s, %s\n", (unsigned long long) client->chains,
	       ops[count - 1].opcode == FABRIC_READ ? "a READ" : "an atomic", fabric_status_name(status),
	       fabric_detail(client->channel.fabric));
	settle(client, next, lock, version);
	return false;
}

/* A WRITE, and an atomic behind it. */
static void
count_with_write(Client *client)
{
	uint64_t next = client->count + 1;
	FabricOp ops[] = {op_write(client->area + 8, &next, 8), op_fetch_add(FABRIC_NODES, client->area, 1)};

	if (!run_chain(client, ops, 2, next, client->lock, client->version))
		return;
	CHECK(ops[1].result == client->count);
	client->count = next;
}

/* An atomic that has to wait for a READ. */
static void
count_with_read(Client *client)
{
	uint64_t found[2] = {0};
	FabricOp ops[] = {op_read(client->area, found, sizeof(found)),
	                  op_fetch_add(FABRIC_NODES, client->area, 1)};

	if (!run_chain(client, ops, 2, client->count + 1, client->lock, client->version))
		return;
	CHECK(found[0] == client->count && ops[1].result == client->count);
	client->count++;
}

/* A lock, and a READ of several packets behind it. */
static void
lock_and_read(Client *client)
{
	uint64_t block[BLOCK_WORDS];
	FabricOp ops[] = {op_compare_swap(FABRIC_LOCKS, 0, 0, MINE),
	                  op_read(client->area + FABRIC_STRIPE_BYTES, block, sizeof(block))};

	if (!run_chain(client, ops, 2, client->count, MINE, client->version))
		return;
	CHECK(ops[0].result == client->lock);
	CHECK(client->block_unknown || block_is(block, client->version));
	client->lock = MINE;
}

/* A WRITE of several packets, and the unlock behind it. */
static void
write_and_unlock(Client *client)
{
	uint64_t block[BLOCK_WORDS] = {0};
	FabricOp ops[] = {op_write(client->area + FABRIC_STRIPE_BYTES, block, sizeof(block)),
	                  op_compare_swap(FABRIC_LOCKS, 0, MINE, 0)};

	for (uint32_t i = 0; i < BLOCK_WORDS; i++)
		block[i] = block_word(client->version + 1, i);
	if (!run_chain(client, ops, 2, client->count, 0, client->version + 1))
		return;
	CHECK(ops[1].result == client->lock);
	client->version++;
	client->block_unknown = false;
	client->lock = 0;
}

static void
run_turn(Client *client)
{
	count_with_write(client);
	lock_and_read(client);
	count_with_read(client);
	write_and_unlock(client);
}

static void
connect_client(Client *client, const char *address)
{
	FabricOptions options = {.operation_timeout_ms = CHAIN_TIMEOUT_MS,
	                         .connect_timeout_ms = CONNECT_TIMEOUT_MS,
	                         .wait = wait_or_stop,
	                         .wait_argument = client};
	uint32_t incarnation;

	client->area = service_info(address).first_unit;
	CHECK(service_commit(address, client->area, FABRIC_UNIT_BYTES) == FABRIC_OK);
	incarnation = cluster_attach(address, 1);
	CHECK(channel_try_open(&client->channel, address, 1, incarnation, &options) == FABRIC_OK);
	client->block_unknown = true;
}

/* For so long, and until what is to be seen was seen. */
static void
run_seconds(Client *client, uint64_t seconds)
{
	uint64_t end = now_ms() + seconds * 1000;

	while (now_ms() < end || client->doubts == 0 || (client->stops_early && client->stops == 0))
	{
		run_turn(client);
		CHECK(now_ms() < end + RETURN_MS);
	}
}

int
main(int argc, char **argv)
{
	Client client = {0};
	bool counted = argc == 6 && strcmp(argv[3], "chains") == 0;
	uint64_t begin;

	client.stops_early = argc == 5 && strcmp(argv[3], "stop") == 0;
	if (!counted && !client.stops_early && (argc != 5 || strcmp(argv[3], "cut") != 0))
		return 2;
	channel_defaults(argv[2], NULL);
	connect_client(&client, argv[1]);
	begin = now_ms();
	if (!counted)
		run_seconds(&client, (uint64_t) atoi(argv[4]));
	while (counted && client.chains < (uint64_t) atoi(argv[4]))
		run_turn(&client);
	printf("%llu chains in %llu ms; %llu in doubt, %llu of them stopped, %llu landed; %llu resets failed; "
	       "longest call %llu ms\n",
	       (unsigned long long) client.chains, (unsigned long long) (now_ms() - begin),
	       (unsigned long long) client.doubts, (unsigned long long) client.stops,
	       (unsigned long long) client.landed, (unsigned long long) client.failed_resets,
	       (unsigned long long) client.longest_ms);
	fflush(stdout);
	CHECK(!counted || client.doubts <= (uint64_t) atoi(argv[5]));
	channel_close(&client.channel);
	return 0;
}
