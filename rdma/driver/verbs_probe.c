/*
 * verbs_probe.c
 *		The tear probe: which parts of a WRITE a READ on another queue pair may see.
 *
 * A thread WRITEs a block with one value after the other in all of its words, the caller READs it meanwhile. A torn
 * READ proves that the device tears; none proves nothing for a device that copies with the processor, so the probe's
 * result does not count for those (verbs_server.c).
 */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rdma/driver/verbs_device.h"

#define PROBE_BYTES 1024u
#define PROBE_WORDS (PROBE_BYTES / 8)
#define LINE_WORDS 8u
/* A value is one byte, repeated: a word with two different bytes was never written. */
#define REPEAT 0x0101010101010101ull
#define ANSWER_MS 2000u

typedef struct ProbeSide
{
	VerbsQueue *active;  /* posts */
	VerbsQueue *passive; /* its peer, in the same process */
	VerbsMemory *memory; /* the side's own buffer */
	uint64_t buffer[PROBE_WORDS];
} ProbeSide;

typedef struct Probe
{
	ProbeSide writer;
	ProbeSide reader;
	VerbsMemory *target;
	VerbsMemoryKeys keys;
	uint64_t block[PROBE_WORDS] __attribute__((aligned(64)));
	atomic_bool stop;
	atomic_bool failed;
} Probe;

static uint64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

static void
side_close(ProbeSide *side)
{
	verbs_queue_destroy(side->active);
	verbs_queue_destroy(side->passive);
	verbs_memory_release(side->memory);
}

static bool
side_open(VerbsDevice *device, ProbeSide *side, char *detail)
{
	VerbsAddress active, passive;

	side->memory = verbs_memory_register(device, side->buffer, PROBE_BYTES, VERBS_NOTHING, detail);
	if (side->memory == NULL)
		return false;
	side->active = verbs_queue_create(device, NULL, 1, false, &active, detail);
	side->passive =
		side->active == NULL ? NULL : verbs_queue_create(device, NULL, 0, false, &passive, detail);
	return side->passive != NULL && verbs_queue_connect(side->active, &passive, detail) &&
	       verbs_queue_connect(side->passive, &active, detail);
}

/* One READ or WRITE of the block. */
static bool
side_run(const Probe *probe, ProbeSide *side, VerbsOpcode opcode)
{
	uint64_t deadline = now_ms() + ANSWER_MS;
	VerbsMemoryKeys own;
	VerbsRequest request;
	VerbsOutcome outcome = VERBS_NONE;
	const char *reason;
	uint64_t id;

	verbs_memory_keys(side->memory, &own);
	request = (VerbsRequest){
		.opcode = opcode,
		.length = PROBE_BYTES,
		.buffer = side->buffer,
		.local_key = own.local,
		.remote_key = probe->keys.remote,
		.remote_address = probe->keys.base,
	};
	if (verbs_queue_post(side->active, &request, 1, 1) != VERBS_DONE)
		return false;
	while (outcome == VERBS_NONE && now_ms() < deadline)
		outcome = verbs_queue_poll(side->active, &id, &reason);
	return outcome == VERBS_DONE;
}

static void *
write_values(void *argument)
{
	Probe *probe = argument;

	for (uint64_t value = 1; !atomic_load(&probe->stop); value = value % 255 + 1)
	{
		for (uint32_t i = 0; i < PROBE_WORDS; i++)
			probe->writer.buffer[i] = value * REPEAT;
		if (!side_run(probe, &probe->writer, VERBS_WRITE))
		{
			atomic_store(&probe->failed, true);
			break;
		}
	}
	return NULL;
}

static void
judge_read(const uint64_t *words, VerbsTears *tears)
{
	bool torn = false;

	tears->reads++;
	for (uint32_t i = 0; i < PROBE_WORDS; i++)
	{
		torn |= words[i] != words[0];
		tears->torn_words += words[i] != (words[i] & 0xff) * REPEAT;
	}
	tears->torn_reads += torn;
	for (uint32_t line = 0; line < PROBE_WORDS; line += LINE_WORDS)
	{
		bool line_torn = false;

		for (uint32_t i = 1; i < LINE_WORDS; i++)
			line_torn |= words[line + i] != words[line];
		tears->torn_lines += line_torn;
	}
}

/* READs while the thread WRITEs. */
static bool
run_probe(Probe *probe, uint32_t milliseconds, VerbsTears *tears)
{
	uint64_t end = now_ms() + milliseconds;
	pthread_t thread;
	bool good = true;

	if (pthread_create(&thread, NULL, write_values, probe) != 0)
		return false;
	while (good && now_ms() < end)
	{
		good = side_run(probe, &probe->reader, VERBS_READ);
		if (good)
			judge_read(probe->reader.buffer, tears);
	}
	atomic_store(&probe->stop, true);
	pthread_join(thread, NULL);
	return good && !atomic_load(&probe->failed);
}

bool
verbs_probe_tears(VerbsDevice *device, uint32_t milliseconds, VerbsTears *tears, char *detail)
{
	Probe *probe = aligned_alloc(64, (sizeof(Probe) + 63) / 64 * 64);
	bool good = false;

	memset(tears, 0, sizeof(*tears));
	if (probe == NULL)
	{
		verbs_detail(detail, "out of memory");
		return false;
	}
	memset(probe, 0, sizeof(*probe));
	probe->target = verbs_memory_register(device, probe->block, PROBE_BYTES, VERBS_CHANGES, detail);
	if (probe->target != NULL && side_open(device, &probe->writer, detail) &&
	    side_open(device, &probe->reader, detail))
	{
		verbs_memory_keys(probe->target, &probe->keys);
		good = run_probe(probe, milliseconds, tears);
		if (!good)
			verbs_detail(detail, "device %s does not answer on a loopback queue pair",
			             device->properties.name);
	}
	side_close(&probe->writer);
	side_close(&probe->reader);
	verbs_memory_release(probe->target);
	free(probe);
	return good;
}
