/*
 * server.c
 *		The memory node's server: opening, the event loop, closing.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "rdma/base/detail.h"
#include "rdma/server/server_state.h"
#include "rdma/server/verbs_server.h"

/* Events taken from the kernel in one round. */
#define ROUND_EVENTS 64

/*
 * The default of max_connections: several channels may be behind one address, and calls before there is
 * one.
 */
static uint32_t
default_connections(uint32_t channels)
{
	return 4 * channels + 64;
}

/* Ends all connections, and the places where they come in. */
static void
close_doors(FabricServer *server)
{
	while (!TAILQ_EMPTY(&server->connections))
		connection_close(server, TAILQ_FIRST(&server->connections));
	connections_round(server);
	listen_remove_socket(server);
	if (server->listener >= 0)
		close(server->listener);
	if (server->network_listener >= 0)
		close(server->network_listener);
	server->listener = server->network_listener = -1;
}

/* Gives back all that the server holds, the segment's contents excepted. */
static void
free_server(FabricServer *server)
{
	close_doors(server);
	verbs_server_close(server);
	for (uint32_t i = 0;
	     server->channels != NULL && server->memory.base != NULL && i < server->memory.header->max_channels;
	     i++)
	{
		if (server->channels[i].process >= 0)
			close(server->channels[i].process);
	}
	memory_unmap(&server->memory);
	if (server->events >= 0)
		close(server->events);
	if (server->wake >= 0)
		close(server->wake);
	if (server->lock >= 0)
		close(server->lock);
	if (server->keys != NULL)
		fabric_keys_forget(server->keys);
	free(server->keys);
	stream_context_close(server->tls);
	free(server->channels);
	free(server->memory_path);
	free(server->lock_path);
	free(server->socket_path);
	free(server);
}

/* A server with nothing opened yet, or NULL. */
static FabricServer *
make_server(const FabricServerOptions *options, const FabricService *service)
{
	FabricServer *server = calloc(1, sizeof(FabricServer));

	if (server == NULL)
		return NULL;
	server->options = *options;
	server->service = *service;
	TAILQ_INIT(&server->connections);
	TAILQ_INIT(&server->strangers);
	TAILQ_INIT(&server->closed);
	TAILQ_INIT(&server->due);
	if (server->options.max_connections == 0)
		server->options.max_connections = default_connections(options->max_channels);
	server->lock = server->listener = server->network_listener = server->events = server->wake = -1;
	server->memory.descriptor = -1;
	server->memory_path = strdup(options->memory_path);
	server->socket_path = strdup(options->socket_path);
	if (asprintf(&server->lock_path, "%s.lock", options->memory_path) < 0)
		server->lock_path = NULL;
	if (options->keys != NULL)
	{
		server->keys = malloc(sizeof(FabricKeys));
		if (server->keys != NULL)
			*server->keys = *options->keys;
		server->tls = stream_context_open();
	}
	if (server->memory_path == NULL || server->socket_path == NULL || server->lock_path == NULL ||
	    (options->keys != NULL && (server->keys == NULL || server->tls == NULL)))
	{
		free_server(server);
		return NULL;
	}
	return server;
}

/* Fixes the access class: by processors, or through a device. */
static FabricStatus
open_class(FabricServer *server, char *detail)
{
	FabricStatus status = FABRIC_OK;

	if (server->options.verbs_device != NULL)
		status = verbs_server_open(server, detail);
	if (status == FABRIC_OK)
		server->memory.header->through_device = server->verbs != NULL;
	return status;
}

/* Ends the channels of an earlier server. FABRIC_BUSY: a process that has one does not end. */
static FabricStatus
recover(FabricServer *server, char *detail)
{
	FabricStatus status = channels_recover(server);

	if (status != FABRIC_OK)
		detail_set(detail, "a process that maps \"%s\" cannot be stopped", server->memory_path);
	return status;
}

/* Takes over the segment that is there, or loads it, or makes a new one. */
static FabricStatus
open_segment(FabricServer *server, FabricMemoryState *state, char *detail)
{
	const MemorySizes asked = segment_asked(server);
	bool kept = false;
	bool loaded = false;
	FabricStatus status = segment_open(server, &kept, detail);

	/* By the sizes that it had when its channels died. */
	if (status == FABRIC_OK && kept)
		status = recover(server, detail);
	if (status != FABRIC_OK)
		return status;
	if (kept)
	{
		*state = server->memory.header->clean ? FABRIC_MEMORY_CLEAN : FABRIC_MEMORY_RECOVERED;
		status = saved_forget(server, detail);
		return status == FABRIC_OK ? segment_resize(server, detail) : status;
	}
	status = saved_load(server, &loaded, detail);
	*state = loaded ? FABRIC_MEMORY_LOADED : FABRIC_MEMORY_NEW;
	if (status != FABRIC_OK)
		return status;
	return loaded ? segment_resize(server, detail) : segment_create(server, &asked, true, detail);
}

/* Begins a run over the segment: from here on clients may come. */
static FabricStatus
begin_service(FabricServer *server, char *detail)
{
	MemoryHeader *header = server->memory.header;
	uint64_t run;
	FabricStatus status;

	if (getrandom(&run, sizeof(run), 0) != (ssize_t) sizeof(run))
	{
		detail_set(detail, "there are no random numbers");
		return FABRIC_UNREACHABLE;
	}
	header->run = run;
	if (server->options.huge_pages != FABRIC_HUGE_OFF)
		server_log(server, FABRIC_LOG_INFO, "the memory has %s", pages_name(&server->pages));
	/* The instances that used it when it was saved have to check it against their own records. */
	if (header->saved)
		instances_fence(server);
	header->saved = 0;
	header->clean = 0;
	__atomic_store_n(&header->draining, 0, __ATOMIC_RELAXED);
	header->generation++;
	server_look_at_room(server, true);
	status = listen_local(server, detail);
	return status == FABRIC_OK ? listen_network(server, detail) : status;
}

FabricStatus
fabric_server_open(const FabricServerOptions *options, const FabricService *service, FabricServer **server,
                   FabricMemoryState *state, char *detail)
{
	FabricServer *opened;
	FabricStatus status;

	detail_set(detail, "%s", "");
	if (options->max_channels == 0 || options->max_channels > MEMORY_MAX_CHANNELS ||
	    options->node_bytes < FABRIC_UNIT_BYTES || options->node_bytes > FABRIC_MAX_NODE_BYTES)
	{
		detail_set(detail, "sizes outside the contract");
		return FABRIC_RANGE;
	}
	opened = make_server(options, service);
	if (opened == NULL)
		return FABRIC_NO_MEMORY;
	*server = opened;
	status = segment_lock(opened, detail);
	if (status == FABRIC_OK)
		status = open_segment(opened, state, detail);
	if (status == FABRIC_OK)
		status = open_class(opened, detail);
	if (status == FABRIC_OK)
		status = begin_service(opened, detail);
	if (status != FABRIC_OK)
	{
		free_server(opened);
		*server = NULL;
	}
	return status;
}

/* One of so many looks while we spin is for all connections, even if one alone was heard of late. */
#define TALKER_LOOKS 16u

/*
 * Looks for something to do, at first where it is most likely to be, which spares epoll's part in it.  True: *count is the number of
 * events that there are, or an error; 0: what there was has been done.
 */
static bool
look_once(FabricServer *server, struct epoll_event *ready, int *count)
{
	*count = 0;
	if (server->talker != NULL && ++server->looks % TALKER_LOOKS != 0)
		return connection_look(server, server->talker);
	*count = epoll_wait(server->events, ready, ROUND_EVENTS, 0);
	return *count != 0;
}

/*
 * Waits for events; looks again for a moment before it sleeps, if the last round had chains to run.  0: none came in time, or what
 * came has been done.
 */
static int
wait_for_events(FabricServer *server, struct epoll_event *ready, int milliseconds)
{
	bool active = server->figures.chains != server->chains_before;
	bool found = false;
	int count = 0;

	server->chains_before = server->figures.chains;
	if (server->options.spin && active && milliseconds > 0)
	{
		do
			found = look_once(server, ready, &count);
		while (!found && spin_again(&server->spin));
		if (found)
			spin_success(&server->spin);
	}
	/* A look may have left something to be gone on with in this round. */
	if (!found)
		count = epoll_wait(server->events, ready, ROUND_EVENTS, connections_patience(server, milliseconds));
	/* A local client has a stripe, and perhaps no processor. */
	if (count == 0 && server->parked > 0)
		sched_yield();
	return count;
}

FabricStatus
fabric_server_step(FabricServer *server, int milliseconds)
{
	struct epoll_event ready[ROUND_EVENTS];
	int count;

	milliseconds = connections_patience(server, milliseconds);
	if ((server->dying > 0 || server->attaching > 0) && milliseconds > SERVER_DYING_ROUND_MS)
		milliseconds = SERVER_DYING_ROUND_MS;
	server->handshakes = 0;
	server->round++;
	count = wait_for_events(server, ready, milliseconds);
	if (count < 0 && errno != EINTR)
		return FABRIC_LOST;
	for (int i = 0; i < count; i++)
	{
		if (ready[i].data.ptr == &server->listener)
			connection_accept(server, server->listener);
		else if (ready[i].data.ptr == &server->network_listener)
			connection_accept(server, server->network_listener);
		else if (ready[i].data.ptr == &server->wake)
		{
			uint64_t woken;

			(void) !read(server->wake, &woken, sizeof(woken));
		}
		else if (is_process_tag(ready[i].data.ptr))
			connection_close(server, connection_of_process_tag(ready[i].data.ptr));
		else
		{
			server->talker = count == 1 ? ready[i].data.ptr : NULL;
			connection_ready(server, ready[i].data.ptr, ready[i].events);
		}
	}
	channels_round(server);
	connections_round(server);
	server_complaints_round(server);
	if (server->listener_paused && fabric_now() > server->listener_resume)
		listen_resume(server);
	if (count == 0 || ++server->steps % SERVER_LOOK_STEPS == 0)
		return segment_is_whole(server) ? FABRIC_OK : FABRIC_LOST;
	return FABRIC_OK;
}

FabricStatus
fabric_server_run(FabricServer *server)
{
	while (!atomic_load(&server->stop))
	{
		FabricStatus status;

		if (server->options.should_stop != NULL &&
		    server->options.should_stop(server->options.should_stop_argument))
			break;
		status = fabric_server_step(server, SERVER_ROUND_MS);
		if (status != FABRIC_OK)
			return status;
	}
	return FABRIC_OK;
}

void
fabric_server_stop(FabricServer *server)
{
	uint64_t one = 1;
	int saved = errno;

	atomic_store(&server->stop, true);
	(void) !write(server->wake, &one, sizeof(one));
	errno = saved;
}

static void
end_service(FabricServer *server, int drain_ms)
{
	if (server->drained)
		return;
	server->quiet = server_drain(server, fabric_server_step, drain_ms);
	server->drained = true;
	close_doors(server);
}

FabricStatus
fabric_server_save(FabricServer *server, int drain_ms)
{
	if (server->options.snapshot_path == NULL)
		return FABRIC_NOT_SUPPORTED;
	end_service(server, drain_ms);
	return saved_save(server);
}

void
fabric_server_close(FabricServer *server, int drain_ms, bool discard)
{
	if (server == NULL)
		return;
	end_service(server, drain_ms);
	server->memory.header->clean = server->quiet ? 1 : 0;
	server_log(server, FABRIC_LOG_INFO, "closed%s", server->quiet ? "" : " in the middle of operations");
	if (discard)
	{
		unlink(server->memory_path);
		unlink(server->lock_path);
	}
	free_server(server);
}

uint16_t
fabric_server_port(const FabricServer *server)
{
	return server->network_port;
}

FabricStatus
fabric_server_set_keys(FabricServer *server, const FabricKeys *keys)
{
	ServerConnection *connection;
	ServerConnection *next;

	if (server->keys == NULL)
		return FABRIC_NOT_SUPPORTED;
	*server->keys = *keys;
	for (connection = TAILQ_FIRST(&server->connections); connection != NULL; connection = next)
	{
		next = TAILQ_NEXT(connection, all);
		if (connection->stream == NULL || connection->handshake ||
		    fabric_keys_find(keys, connection->identity) != NULL)
			continue;
		server_log(server, FABRIC_LOG_INFO,
		           "a key of tenant %u is no longer valid: its client is disconnected", connection->tenant);
		connection_close(server, connection);
	}
	return FABRIC_OK;
}

uint32_t
fabric_server_channels(const FabricServer *server)
{
	return server->live;
}

uint32_t
fabric_server_tenant_channels(const FabricServer *server, uint32_t tenant)
{
	return tenant < MEMORY_MAX_TENANTS ? server->tenants[tenant].channels : 0;
}

void
fabric_server_figures(const FabricServer *server, FabricServerFigures *figures)
{
	const ServerConnection *connection;

	*figures = server->figures;
	figures->channels = server->live;
	TAILQ_FOREACH(connection, &server->connections, all)
	{
		figures->connections++;
		if (connection->channel == CONTROL_NO_CHANNEL)
			continue;
		if (connection->verbs)
			figures->channels_verbs++;
		else if (connection->stream != NULL || server->verbs != NULL)
			figures->channels_tcp++;
	}
}
