/*
 * server_snapshot.c
 *		The server's snapshot: loaded at the start if the memory did not outlive the machine, saved at a
 *		planned end.
 *
 * A snapshot is used once. At every start it is removed, durably, before any client is served: from then on the
 * memory may change. If one comes back all the same, as a copy, the instances notice that by their own records; that
 * works because an instance has to attach anew, and so to check, before it uses memory of which there may be a
 * snapshot (MemoryHeader.saved).
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "rdma/base/detail.h"
#include "rdma/memory/set_aside.h"
#include "rdma/server/server_state.h"
#include "rdma/memory/snapshot.h"

/* The log is told so often how far it is. */
#define SAVED_SAY_NS 5000000000ull

/* Saving or loading, as it goes on. */
typedef struct Watched
{
	const FabricServer *server;
	bool saving;
	uint64_t began;
	uint64_t said;
} Watched;

static unsigned long long
megabytes(uint64_t bytes)
{
	return bytes >> 20;
}

/* Of what was done since it began. */
static unsigned long long
megabytes_per_second(const Watched *watched, uint64_t bytes)
{
	uint64_t milliseconds = (fabric_now() - watched->began) / 1000000;

	return megabytes(bytes * 1000 / (milliseconds > 0 ? milliseconds : 1));
}

static bool
watched_go_on(void *argument, uint64_t done, uint64_t total)
{
	Watched *watched = argument;
	const FabricServerOptions *options = &watched->server->options;
	uint64_t now = fabric_now();

	if (now - watched->said >= SAVED_SAY_NS)
	{
		watched->said = now;
		server_log(watched->server, FABRIC_LOG_INFO, "%s the snapshot: %llu of %llu MB, %llu MB/s",
		           watched->saving ? "saving" : "loading", megabytes(done), megabytes(total),
		           megabytes_per_second(watched, done));
	}
	return options->snapshot_go_on == NULL ||
	       options->snapshot_go_on(options->snapshot_argument, watched->saving, done, total);
}

static void
watch_begin(Watched *watched, const FabricServer *server, bool saving, SnapshotWatch *watch)
{
	*watched = (Watched){.server = server, .saving = saving, .began = fabric_now(), .said = fabric_now()};
	*watch = (SnapshotWatch){watched_go_on, watched};
}

/* ---- at the start ---- */

/* The snapshot cannot be used: it is set aside, and there is new memory. */
static FabricStatus
refuse(const FabricServer *server, const char *short_why, const char *why, char *detail)
{
	const char *path = server->options.snapshot_path;
	char kept[PATH_MAX];
	FabricStatus status = set_aside_file(path, short_why, kept, detail);

	if (status != FABRIC_OK)
		return status;
	server_log(server, FABRIC_LOG_WARNING,
	           "the snapshot \"%s\" is refused: %s; it is kept as \"%s\", and the memory begins empty: the "
	           "indexes that were in it must be rebuilt",
	           path, why, kept);
	server_log_set_aside_hint(server);
	return FABRIC_OK;
}

/* It must never be loaded again: memory that is served changes. */
static FabricStatus
consume(const FabricServer *server, char *detail)
{
	const char *path = server->options.snapshot_path;

	if (snapshot_remove(path) || errno == ENOENT)
		return FABRIC_OK;
	detail_set(detail, "the snapshot \"%s\" cannot be removed, as it must be before anybody is served: %s",
	           path, strerror(errno));
	return FABRIC_UNREACHABLE;
}

/* Makes the segment and fills it; without the segment if that fails.  FABRIC_PROTOCOL: *short_why for its name. */
static FabricStatus
load_segment(FabricServer *server, SnapshotFile *file, const char **short_why, char *why)
{
	const MemorySizes sizes = memory_sizes(&file->header.memory);
	SnapshotWatch watch;
	Watched watched;
	FabricStatus status;

	*short_why = "damaged";
	/* As it was saved: other sizes are given to it when it is whole. */
	status = segment_create(server, &sizes, false, why);
	if (status != FABRIC_OK)
		return status;
	watch_begin(&watched, server, false, &watch);
	status = snapshot_load(file, &server->memory, &watch, why);
	if (status == FABRIC_OK)
		server_log(server, FABRIC_LOG_INFO, "the snapshot \"%s\" is loaded: %llu MB, %llu MB/s",
		           server->options.snapshot_path, megabytes(file->header.file_bytes),
		           megabytes_per_second(&watched, file->header.file_bytes));
	else
	{
		memory_unmap(&server->memory);
		unlink(server->memory_path);
	}
	return status;
}

FabricStatus
saved_load(FabricServer *server, bool *loaded, char *detail)
{
	const char *path = server->options.snapshot_path;
	char why[FABRIC_DETAIL_BYTES] = "";
	const char *short_why = "damaged";
	SnapshotFile file;
	FabricStatus status;

	*loaded = false;
	if (path == NULL)
		return FABRIC_OK;
	snapshot_clean(path);
	status = snapshot_open(path, &file, why);
	if (status == FABRIC_NOT_FOUND)
		return FABRIC_OK;
	if (status == FABRIC_OK)
	{
		server_log(server, FABRIC_LOG_INFO, "loading the snapshot \"%s\": %llu MB", path,
		           megabytes(file.header.file_bytes));
		status = load_segment(server, &file, &short_why, why);
		*loaded = status == FABRIC_OK;
		if (*loaded)
			status = consume(server, why);
		snapshot_close(&file);
	}
	if (status == FABRIC_PROTOCOL)
		return refuse(server, short_why, why, detail);
	if (status != FABRIC_OK)
		detail_set(detail, "the snapshot \"%s\" cannot be loaded: %s", path, why);
	return status;
}

/* Is it of the memory that was kept, as its last daemon left it?  Then there is nothing in it that the memory has not. */
static bool
is_of_memory(const SnapshotFile *file, const MemoryHeader *memory)
{
	const MemoryHeader *saved = &file->header.memory;

	return saved->run == memory->run &&
	       memcmp(saved->node_uuid, memory->node_uuid, sizeof(saved->node_uuid)) == 0;
}

FabricStatus
saved_forget(const FabricServer *server, char *detail)
{
	const char *path = server->options.snapshot_path;
	char why[FABRIC_DETAIL_BYTES] = "";
	char kept[PATH_MAX];
	SnapshotFile file;
	FabricStatus status;

	if (path == NULL)
		return FABRIC_OK;
	snapshot_clean(path);
	status = snapshot_open(path, &file, why);
	if (status == FABRIC_NOT_FOUND)
		return FABRIC_OK;
	if (status == FABRIC_OK)
	{
		bool same = is_of_memory(&file, server->memory.header);

		if (same)
			status = consume(server, detail);
		snapshot_close(&file);
		if (same)
			return status;
	}
	else if (status != FABRIC_PROTOCOL)
	{
		detail_set(detail, "the snapshot \"%s\" cannot be put away: %s", path, why);
		return status;
	}
	status = set_aside_file(path, status == FABRIC_OK ? "other-memory" : "damaged", kept, detail);
	if (status != FABRIC_OK)
		return status;
	server_log(server, FABRIC_LOG_WARNING,
	           "the snapshot \"%s\" is not of the memory that is there, and is kept as \"%s\"", path, kept);
	server_log_set_aside_hint(server);
	return FABRIC_OK;
}

/* ---- at the end ---- */

FabricStatus
saved_save(FabricServer *server)
{
	const char *path = server->options.snapshot_path;
	char why[FABRIC_DETAIL_BYTES] = "";
	SnapshotWatch watch;
	Watched watched;
	uint64_t bytes = 0;
	FabricStatus status = FABRIC_BUSY;

	watch_begin(&watched, server, true, &watch);
	detail_set(why, "a client is in the middle of an operation");
	if (server->dying == 0)
	{
		server_log(server, FABRIC_LOG_INFO, "saving the memory to the snapshot \"%s\"", path);
		/* Before there is one, and it is in there, too. */
		server->memory.header->saved = 1;
		status = snapshot_save(&server->memory, path, &watch, &bytes, why);
	}
	if (status == FABRIC_OK)
		server_log(server, FABRIC_LOG_INFO, "the memory is saved to the snapshot \"%s\": %llu MB, %llu MB/s",
		           path, megabytes(bytes), megabytes_per_second(&watched, bytes));
	else
		server_log(server, FABRIC_LOG_WARNING,
		           "the memory is not saved to the snapshot \"%s\": %s; after a restart of the machine the "
		           "indexes in it must be rebuilt",
		           path, why);
	return status;
}
