/*
 * server.c
 *		The memory node's server: the object's files, opening, closing, and the event loop.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "network.h"
#include "server_state.h"

/* Events taken from the kernel in one round. */
#define ROUND_EVENTS 64

/* So many warnings of a kind are written in a while, if others can cause them at will. */
#define COMPLAINTS_SAID 5u
#define COMPLAINTS_WHILE_NS 2000000000u

static const char *const complaint_names[COMPLAINTS] = {
	[COMPLAINT_ACCEPT] = "cannot accept a connection",
	[COMPLAINT_REFUSED] = "a client was refused",
	[COMPLAINT_PROTOCOL] = "a client speaks another protocol",
};

/* Connections that wait for accept: all backends of a server may come at once. */
#define LISTEN_BACKLOG 1024

void
server_log(const FabricServer *server, FabricLogLevel level, const char *format, ...)
{
	char message[FABRIC_DETAIL_BYTES];
	va_list arguments;

	if (server->options.log == NULL)
		return;
	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	server->options.log(server->options.log_argument, level, message);
}

void
server_complain(FabricServer *server, ServerComplaint kind, const char *format, ...)
{
	ServerComplaints *complaints = &server->complaints[kind];
	char message[FABRIC_DETAIL_BYTES];
	va_list arguments;

	if (complaints->said == 0)
		complaints->since = fabric_now();
	if (complaints->said >= COMPLAINTS_SAID)
	{
		complaints->unsaid++;
		return;
	}
	complaints->said++;
	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	server_log(server, FABRIC_LOG_WARNING, "%s", message);
}

void
server_complaints_round(FabricServer *server)
{
	for (int kind = 0; kind < COMPLAINTS; kind++)
	{
		ServerComplaints *complaints = &server->complaints[kind];

		if (complaints->said == 0 || fabric_now() - complaints->since < COMPLAINTS_WHILE_NS)
			continue;
		if (complaints->unsaid > 0)
			server_log(server, FABRIC_LOG_WARNING, "%s: %u more of this kind", complaint_names[kind],
			           complaints->unsaid);
		*complaints = (ServerComplaints){0};
	}
}

/* Writes an error's text for the caller of fabric_server_open(). */
static __attribute__((format(printf, 2, 3))) void
set_detail(char *detail, const char *format, ...)
{
	va_list arguments;

	if (detail == NULL)
		return;
	va_start(arguments, format);
	vsnprintf(detail, FABRIC_DETAIL_BYTES, format, arguments);
	va_end(arguments);
}

/* Takes the lock that says: this daemon serves the object.  It lasts as long as the process. */
static FabricStatus
lock_object(FabricServer *server, char *detail)
{
	for (;;)
	{
		struct stat locked;
		struct stat named;

		server->lock = open(server->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (server->lock < 0)
		{
			set_detail(detail, "cannot open \"%s\": %s", server->lock_path, strerror(errno));
			return FABRIC_UNREACHABLE;
		}
		if (flock(server->lock, LOCK_EX | LOCK_NB) != 0)
		{
			set_detail(detail, "another daemon serves \"%s\"", server->memory_path);
			return FABRIC_EXISTS;
		}
		/* A daemon that discarded its object may have removed the file between open and lock. */
		if (fstat(server->lock, &locked) == 0 && stat(server->lock_path, &named) == 0 &&
		    locked.st_ino == named.st_ino)
			return FABRIC_OK;
		close(server->lock);
		server->lock = -1;
	}
}

/* Is this the object that the options ask for?  More channels than asked for do no harm. */
static bool
object_fits(const FabricServer *server, const MemoryHeader *header)
{
	MemoryHeader plan;

	if (header->max_channels < server->options.max_channels)
		return false;
	memory_plan(&plan, server->options.node_bytes, server->options.service_bytes, header->max_channels,
	            server->pages.bytes);
	return header->object_bytes == plan.object_bytes && header->service_bytes == plan.service_bytes &&
	       header->region_bytes == plan.region_bytes;
}

static bool
allocate_channels(FabricServer *server, uint32_t count)
{
	free(server->channels);
	server->channels = calloc(count, sizeof(ServerChannel));
	for (uint32_t i = 0; server->channels != NULL && i < count; i++)
		server->channels[i].process = -1;
	return server->channels != NULL;
}

/* Learns what the file's pages are. FABRIC_NOT_SUPPORTED: not what the options ask for. */
static FabricStatus
check_pages(FabricServer *server, int descriptor, char *detail)
{
	server->pages = pages_of(descriptor);
	if (server->options.huge_pages != FABRIC_HUGE_ON || pages_are_huge(&server->pages))
		return FABRIC_OK;
	set_detail(detail, "\"%s\" cannot have huge pages: it has %s", server->memory_path,
	           pages_name(&server->pages));
	return FABRIC_NOT_SUPPORTED;
}

/* Are huge pages wanted where the kernel waits to be asked for them? */
static bool
pages_are_asked_for(const FabricServer *server)
{
	return server->options.huge_pages != FABRIC_HUGE_OFF && server->pages.kind == PAGES_TMPFS_ADVISE;
}

/*
 * Takes over the object of an earlier daemon, if there is a sane one: FABRIC_OK with *keep, or not: then its
 * file is of no more use and nobody can change it any more.  FABRIC_BUSY: somebody still can.
 */
static FabricStatus
open_object(FabricServer *server, bool *keep, char *detail)
{
	int descriptor = open(server->memory_path, O_RDWR | O_CLOEXEC);
	FabricStatus status;

	*keep = false;
	if (descriptor < 0 && errno == ENOENT)
		return FABRIC_OK;
	if (descriptor < 0)
	{
		set_detail(detail, "cannot open \"%s\": %s", server->memory_path, strerror(errno));
		return FABRIC_UNREACHABLE;
	}
	status = check_pages(server, descriptor, detail);
	if (status != FABRIC_OK)
	{
		close(descriptor);
		return status;
	}
	status = memory_map(descriptor, &server->memory);
	if (status == FABRIC_PROTOCOL)
	{
		/* Not of this build or boot.  Whoever maps it all the same has channels that we cannot kill. */
		status = flock(descriptor, LOCK_EX | LOCK_NB) == 0 ? FABRIC_OK : FABRIC_BUSY;
		if (status == FABRIC_BUSY)
			set_detail(detail, "\"%s\" is of another build and in use", server->memory_path);
		close(descriptor);
		return status;
	}
	if (status != FABRIC_OK)
	{
		set_detail(detail, "cannot map \"%s\"", server->memory_path);
		close(descriptor);
		return status;
	}
	if (pages_are_asked_for(server))
		memory_advise(&server->memory);
	*keep = object_fits(server, server->memory.header);
	if (!allocate_channels(server, server->memory.header->max_channels))
		return FABRIC_NO_MEMORY;
	return FABRIC_OK;
}

/* Recovers the object that was found; one that does not fit loses its channels and is forgotten. */
static FabricStatus
recover_object(FabricServer *server, bool keep, char *detail)
{
	FabricService service = server->service;
	FabricStatus status;

	if (server->memory.base == NULL)
		return FABRIC_OK;
	/* What is thrown away needs no replay, only nobody who writes to it and believes it is kept. */
	if (!keep)
		server->service = (FabricService){0};
	status = channels_recover(server);
	server->service = service;
	if (status != FABRIC_OK)
		set_detail(detail, "a process that maps \"%s\" cannot be stopped", server->memory_path);
	else if (!keep)
		memory_unmap(&server->memory);
	return status;
}

static FabricStatus
create_object(FabricServer *server, char *detail)
{
	MemoryHeader plan;
	FabricStatus status;
	int descriptor;

	/* A new file, not an emptied one: those who map the old one must not meet SIGBUS. */
	unlink(server->memory_path);
	descriptor = open(server->memory_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (descriptor < 0)
	{
		set_detail(detail, "cannot create \"%s\": %s", server->memory_path, strerror(errno));
		return FABRIC_UNREACHABLE;
	}
	status = check_pages(server, descriptor, detail);
	if (status == FABRIC_OK && server->pages.kind == PAGES_OTHER)
		server_log(server, FABRIC_LOG_WARNING, "\"%s\" is not on tmpfs: it will be slow",
		           server->memory_path);
	if (status == FABRIC_OK)
	{
		memory_plan(&plan, server->options.node_bytes, server->options.service_bytes,
		            server->options.max_channels, server->pages.bytes);
		status = memory_create(descriptor, &plan, pages_are_asked_for(server), &server->memory);
		if (status != FABRIC_OK)
			set_detail(detail, "no room for a memory object of %llu bytes with %u channels at \"%s\", of %s",
			           (unsigned long long) plan.object_bytes, plan.max_channels, server->memory_path,
			           pages_name(&server->pages));
	}
	if (status != FABRIC_OK)
	{
		close(descriptor);
		unlink(server->memory_path);
		return status;
	}
	return allocate_channels(server, plan.max_channels) ? FABRIC_OK : FABRIC_NO_MEMORY;
}

/* Does somebody listen at the control socket's path?  A dead daemon's socket refuses. */
static bool
socket_is_served(const struct sockaddr_un *address, socklen_t length)
{
	int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool served =
		probe >= 0 && (connect(probe, (const struct sockaddr *) address, length) == 0 || errno == EAGAIN);

	if (probe >= 0)
		close(probe);
	return served;
}

static FabricStatus
open_socket(FabricServer *server, char *detail)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = &server->listener};
	struct epoll_event wake = {.events = EPOLLIN, .data.ptr = &server->wake};
	struct sockaddr_un address;
	socklen_t length;
	int directory = -1;
	FabricStatus status = FABRIC_UNREACHABLE;

	server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	server->events = epoll_create1(EPOLL_CLOEXEC);
	server->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (server->listener >= 0 && server->events >= 0 && server->wake >= 0 &&
	    control_address(server->socket_path, &address, &length, &directory))
	{
		if (socket_is_served(&address, length))
		{
			set_detail(detail, "another daemon listens at \"%s\"", server->socket_path);
			close(server->listener);
			server->listener = -1;
			status = FABRIC_EXISTS;
			goto done;
		}
		unlink(server->socket_path);
		if (bind(server->listener, (struct sockaddr *) &address, length) == 0)
		{
			server->socket_made = true;
			if (chmod(server->socket_path, server->options.allow_other_users ? 0666 : 0600) == 0 &&
			    listen(server->listener, LISTEN_BACKLOG) == 0 &&
			    epoll_ctl(server->events, EPOLL_CTL_ADD, server->listener, &event) == 0 &&
			    epoll_ctl(server->events, EPOLL_CTL_ADD, server->wake, &wake) == 0)
				status = FABRIC_OK;
		}
	}
	if (status != FABRIC_OK)
		set_detail(detail, "cannot listen at \"%s\": %s", server->socket_path, strerror(errno));
done:
	if (directory >= 0)
		close(directory);
	return status;
}

/*
 * The default of max_connections: several channels may be behind one address, and calls before there is
 * one.
 */
static uint32_t
default_connections(uint32_t channels)
{
	return 4 * channels + 64;
}

/* Listens for network clients, if the options say so. */
static FabricStatus
open_network(FabricServer *server, char *detail)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = &server->network_listener};
	char failure[FABRIC_DETAIL_BYTES];
	bool loopback = false;
	FabricStatus status;

	if (server->options.listen == NULL)
		return FABRIC_OK;
	status = network_listen(server->options.listen, LISTEN_BACKLOG, &server->network_listener,
	                        &server->network_port, &loopback, failure);
	if (status != FABRIC_OK)
		set_detail(detail, "%s", failure);
	else if (server->keys == NULL && (!server->options.insecure_loopback || !loopback))
	{
		set_detail(detail, "listening at \"%s\" needs keys%s", server->options.listen,
		           loopback ? ", or the permission to serve this machine without" : "");
		status = FABRIC_DENIED;
	}
	else if (epoll_ctl(server->events, EPOLL_CTL_ADD, server->network_listener, &event) != 0)
	{
		set_detail(detail, "cannot listen at \"%s\": %s", server->options.listen, strerror(errno));
		status = FABRIC_UNREACHABLE;
	}
	return status;
}

void
server_pause_listeners(FabricServer *server, uint32_t milliseconds)
{
	server->listener_paused = true;
	server->listener_resume = fabric_now() + (uint64_t) milliseconds * 1000000;
	epoll_ctl(server->events, EPOLL_CTL_DEL, server->listener, NULL);
	if (server->network_listener >= 0)
		epoll_ctl(server->events, EPOLL_CTL_DEL, server->network_listener, NULL);
}

static void
resume_listeners(FabricServer *server)
{
	struct epoll_event local = {.events = EPOLLIN, .data.ptr = &server->listener};
	struct epoll_event network = {.events = EPOLLIN, .data.ptr = &server->network_listener};

	server->listener_paused = false;
	if (server->listener >= 0 && epoll_ctl(server->events, EPOLL_CTL_ADD, server->listener, &local) != 0)
		server->listener_paused = errno != EEXIST;
	if (server->network_listener >= 0 &&
	    epoll_ctl(server->events, EPOLL_CTL_ADD, server->network_listener, &network) != 0)
		server->listener_paused |= errno != EEXIST;
}

/* Gives back all that the server holds, the object's contents excepted. */
static void
free_server(FabricServer *server)
{
	while (!TAILQ_EMPTY(&server->connections))
		connection_close(server, TAILQ_FIRST(&server->connections));
	connections_round(server);
	if (server->socket_made)
		unlink(server->socket_path);
	for (uint32_t i = 0;
	     server->channels != NULL && server->memory.base != NULL && i < server->memory.header->max_channels;
	     i++)
	{
		if (server->channels[i].process >= 0)
			close(server->channels[i].process);
	}
	memory_unmap(&server->memory);
	if (server->listener >= 0)
		close(server->listener);
	if (server->network_listener >= 0)
		close(server->network_listener);
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

FabricStatus
fabric_server_open(const FabricServerOptions *options, const FabricService *service, FabricServer **server,
                   FabricMemoryState *state, char *detail)
{
	FabricServer *opened;
	FabricStatus status;
	bool keep;

	set_detail(detail, "%s", "");
	if (options->max_channels == 0 || options->max_channels > MEMORY_MAX_CHANNELS ||
	    options->node_bytes < FABRIC_UNIT_BYTES)
	{
		set_detail(detail, "sizes outside the contract");
		return FABRIC_RANGE;
	}
	opened = make_server(options, service);
	if (opened == NULL)
		return FABRIC_NO_MEMORY;
	*server = opened;
	status = lock_object(opened, detail);
	if (status == FABRIC_OK)
		status = open_object(opened, &keep, detail);
	if (status == FABRIC_OK)
		status = recover_object(opened, keep, detail);
	if (status == FABRIC_OK && keep)
		*state = opened->memory.header->clean ? FABRIC_MEMORY_CLEAN : FABRIC_MEMORY_RECOVERED;
	else if (status == FABRIC_OK)
	{
		*state = FABRIC_MEMORY_NEW;
		status = create_object(opened, detail);
	}
	if (status == FABRIC_OK)
	{
		if (options->huge_pages != FABRIC_HUGE_OFF)
			server_log(opened, FABRIC_LOG_INFO, "the memory has %s", pages_name(&opened->pages));
		opened->memory.header->clean = 0;
		__atomic_store_n(&opened->memory.header->draining, 0, __ATOMIC_RELAXED);
		opened->memory.header->generation++;
		status = open_socket(opened, detail);
		if (status == FABRIC_OK)
			status = open_network(opened, detail);
	}
	if (status != FABRIC_OK)
	{
		free_server(opened);
		*server = NULL;
	}
	return status;
}

/* Waits for events; looks again for a moment before it sleeps, if the last round had chains to run. */
static int
wait_for_events(FabricServer *server, struct epoll_event *ready, int milliseconds)
{
	bool active = server->figures.chains != server->chains_before;
	int count = 0;

	server->chains_before = server->figures.chains;
	if (server->options.spin && active && milliseconds > 0)
	{
		do
			count = epoll_wait(server->events, ready, ROUND_EVENTS, 0);
		while (count == 0 && spin_again(&server->spin));
		if (count > 0)
			spin_success(&server->spin);
	}
	return count != 0 ? count : epoll_wait(server->events, ready, ROUND_EVENTS, milliseconds);
}

FabricStatus
fabric_server_step(FabricServer *server, int milliseconds)
{
	struct epoll_event ready[ROUND_EVENTS];
	int count;

	milliseconds = connections_patience(server, milliseconds);
	if ((server->dying > 0 || server->attaching > 0) && milliseconds > SERVER_DYING_ROUND_MS)
		milliseconds = SERVER_DYING_ROUND_MS;
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
			connection_ready(server, ready[i].data.ptr, ready[i].events);
	}
	channels_round(server);
	connections_round(server);
	server_complaints_round(server);
	if (server->listener_paused && fabric_now() > server->listener_resume)
		resume_listeners(server);
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

void
fabric_server_close(FabricServer *server, int drain_ms, bool discard)
{
	bool quiet;

	if (server == NULL)
		return;
	quiet = server_drain(server, drain_ms);
	server->memory.header->clean = quiet ? 1 : 0;
	server_log(server, FABRIC_LOG_INFO, "closed%s", quiet ? "" : " in the middle of operations");
	if (discard)
	{
		unlink(server->memory_path);
		unlink(server->lock_path);
	}
	free_server(server);
}

void *
fabric_server_service_area(FabricServer *server)
{
	return server->memory.service;
}

void *
fabric_server_node(FabricServer *server, uint64_t offset, uint64_t bytes)
{
	uint64_t limit = server->memory.header->region_bytes;

	if (offset > limit || bytes > limit - offset)
		return NULL;
	return server->memory.nodes + offset;
}

void
fabric_server_node_range(FabricServer *server, uint64_t *first, uint64_t *end)
{
	*first = server->memory.header->first_unit;
	*end = server->memory.header->region_bytes;
}

/* Is the range whole units of node memory? */
static bool
range_is_units(const FabricServer *server, uint64_t offset, uint64_t bytes)
{
	const MemoryHeader *header = server->memory.header;

	return offset % FABRIC_UNIT_BYTES == 0 && bytes % FABRIC_UNIT_BYTES == 0 && bytes > 0 &&
	       offset >= header->first_unit && offset < header->region_bytes &&
	       bytes <= header->region_bytes - offset;
}

static void
mark_units(FabricServer *server, uint64_t offset, uint64_t bytes, uint8_t mark)
{
	for (uint64_t unit = offset / FABRIC_UNIT_BYTES; unit < (offset + bytes) / FABRIC_UNIT_BYTES; unit++)
		__atomic_store_n(&server->memory.units[unit], mark, __ATOMIC_RELEASE);
}

/* Gives the pages back, so that they are zero when they come again. */
static void
drop_pages(FabricServer *server, uint64_t offset, uint64_t bytes)
{
	uint64_t start = server->memory.header->nodes_offset + offset;

	/* Units are smaller than the pages there, which stay in their pool's use anyway. */
	if (server->pages.kind == PAGES_HUGETLBFS)
		return;
	if (fallocate(server->memory.descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) start,
	              (off_t) bytes) != 0)
		server_log(server, FABRIC_LOG_WARNING, "cannot give back %llu bytes: %s", (unsigned long long) bytes,
		           strerror(errno));
}

FabricStatus
fabric_server_commit(FabricServer *server, uint32_t tenant, uint64_t offset, uint64_t bytes)
{
	FabricStatus status;

	if (!range_is_units(server, offset, bytes) || tenant >= MEMORY_MAX_TENANTS)
		return FABRIC_RANGE;
	mark_units(server, offset, bytes, 0);
	drop_pages(server, offset, bytes);
	status = memory_allocate(&server->memory, memory_stripe(&server->memory, offset),
	                         bytes / FABRIC_STRIPE_BYTES * sizeof(uint64_t));
	if (status == FABRIC_OK)
		status = memory_allocate(&server->memory, server->memory.nodes + offset, bytes);
	if (status == FABRIC_OK && server->pages.kind == PAGES_HUGETLBFS)
		memset(server->memory.nodes + offset, 0, bytes);
	if (status == FABRIC_OK)
		mark_units(server, offset, bytes, memory_unit_mark(tenant));
	else
		drop_pages(server, offset, bytes);
	return status;
}

void
fabric_server_release(FabricServer *server, uint64_t offset, uint64_t bytes)
{
	if (!range_is_units(server, offset, bytes))
		return;
	mark_units(server, offset, bytes, 0);
	drop_pages(server, offset, bytes);
}

uint64_t
fabric_server_generation(const FabricServer *server)
{
	return server->memory.header->generation;
}

void
fabric_server_uuid(const FabricServer *server, uint64_t uuid[2])
{
	uuid[0] = server->memory.header->node_uuid[0];
	uuid[1] = server->memory.header->node_uuid[1];
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

const char *
fabric_server_tenant(const FabricServer *server, uint32_t tenant)
{
	return tenant < MEMORY_MAX_TENANTS ? server->memory.header->tenants[tenant] : "";
}

uint32_t
fabric_server_channels(const FabricServer *server)
{
	return server->live;
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
		figures->channels_network += connection->stream != NULL && connection->channel != CONTROL_NO_CHANNEL;
	}
}
