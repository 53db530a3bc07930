/*
 * partition.c
 *		A client of verbs whose memory node goes out of reach and comes back, time and again.
 *
 *		partition ADDRESS KEY_FILE SECONDS
 *
 * It counts a word up by {FETCH_ADD, WRITE of the same count behind it}, and writes into `stdout` how long its
 * deadlines kept it.  Whatever happens: no call takes longer than its deadline, the word never counts more than was
 * asked for nor less than was acknowledged, a chain in doubt is settled by the reset, and nothing of it lands afterwards.  It
 * ends with 1 if one of these fails, or if it was never cut off, or not connected at the end.
 */
#define _GNU_SOURCE 1
#include "support/fabric_process.h"

#define CHAIN_TIMEOUT_MS 1000u
#define CONNECT_TIMEOUT_MS 2000u
/* What an emulated machine adds to a deadline. */
#define SLACK_MS 5000u
/* Longest that we wait for the network to come back. */
#define RETURN_MS 120000u

typedef struct Count
{
	uint64_t acknowledged; /* chains that succeeded */
	uint64_t doubtful;     /* chains that may have */
	uint64_t losses;
	uint64_t failed_resets;
	uint64_t longest_ms; /* call */
} Count;

/* Notes how long a call took, which has this deadline. */
static void
note_time(Count *count, uint64_t begin, uint32_t deadline_ms)
{
	uint64_t took = now_ms() - begin;

	if (took > count->longest_ms)
		count->longest_ms = took;
	CHECK(took <= deadline_ms + SLACK_MS);
}

/* Resets until it succeeds. */
static void
recover(TestChannel *channel, Count *count)
{
	uint64_t start = now_ms();

	for (;;)
	{
		uint64_t begin = now_ms();
		FabricStatus status = fabric_reset(channel->endpoint);

		/* A call to a memory node out of reach, then a new connection to it. */
		note_time(count, begin, 2 * CONNECT_TIMEOUT_MS);
		if (status == FABRIC_OK)
			return;
		CHECK(status == FABRIC_UNREACHABLE || status == FABRIC_TIMED_OUT || status == FABRIC_LOST);
		count->failed_resets++;
		CHECK(now_ms() - start < RETURN_MS);
		sleep_ms(20);
	}
}

/* One chain; if it is in doubt, the reset and a look at what became of it. */
static void
count_up(TestChannel *channel, uint64_t offset, Count *count)
{
	uint64_t begin = now_ms();
	uint64_t value = count->acknowledged + count->doubtful + 1;
	FabricOp ops[] = {op_write(offset + 8, &value, 8), op_fetch_add(FABRIC_NODES, offset, 1)};
	FabricStatus status = fabric_execute(channel->endpoint, ops, 2);
	uint64_t first, second;

	note_time(count, begin, CHAIN_TIMEOUT_MS);
	if (status == FABRIC_OK)
	{
		CHECK(ops[1].result >= count->acknowledged && ops[1].result <= value - 1);
		count->acknowledged++;
		return;
	}
	CHECK(status == FABRIC_LOST || status == FABRIC_TIMED_OUT);
	count->losses++;
	count->doubtful++;
	recover(channel, count);
	channel_read(channel, offset, &first, 8);
	CHECK(first >= count->acknowledged && first <= count->acknowledged + count->doubtful);
	sleep_ms(300);
	channel_read(channel, offset, &second, 8);
	CHECK(first == second);
}

int
main(int argc, char **argv)
{
	FabricOptions options = {.operation_timeout_ms = CHAIN_TIMEOUT_MS,
	                         .connect_timeout_ms = CONNECT_TIMEOUT_MS};
	Count count = {0};
	TestChannel channel;
	uint32_t incarnation;
	uint64_t offset, end, found[2];

	if (argc != 4)
		return 2;
	channel_defaults(argv[2], NULL);
	offset = service_info(argv[1]).first_unit;
	CHECK(service_commit(argv[1], offset, FABRIC_UNIT_BYTES) == FABRIC_OK);
	incarnation = cluster_attach(argv[1], 1);
	CHECK(channel_try_open(&channel, argv[1], 1, incarnation, &options) == FABRIC_OK);
	end = now_ms() + (uint64_t) atoi(argv[3]) * 1000;
	while (now_ms() < end || count.losses == 0)
	{
		count_up(&channel, offset, &count);
		CHECK(now_ms() < end + RETURN_MS);
	}
	channel_read(&channel, offset, found, sizeof(found));
	CHECK(found[0] >= count.acknowledged && found[0] <= count.acknowledged + count.doubtful);
	printf("%llu chains, %llu in doubt, %llu of them landed; %llu resets failed; longest call %llu ms\n",
	       (unsigned long long) (count.acknowledged + count.doubtful), (unsigned long long) count.doubtful,
	       (unsigned long long) (found[0] - count.acknowledged), (unsigned long long) count.failed_resets,
	       (unsigned long long) count.longest_ms);
	channel_close(&channel);
	return 0;
}
