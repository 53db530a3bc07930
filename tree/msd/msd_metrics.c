/*
 * msd_metrics.c
 *		See msd_metrics.h.  The page itself is msd_page.c.
 */
#include "tree/msd/msd_metrics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>

#include "tree/msd/msd_config.h"

/* The least time between snapshots: scrapers do not ask more often. */
#define PUBLISH_US 100000u

/*
 * The most connections: one scraper or two. Of more the oldest is closed: so a new one is always served, and idle
 * ones cannot keep others out.
 */
#define CONNECTIONS_MAX 16u
/* Including connections that were closed but have not ended yet. */
#define CONNECTIONS_HELD (4 * CONNECTIONS_MAX)
#define CONNECTION_TIMEOUT_SECONDS 10u
#define CONNECTION_BYTES 16384u

#define SNAPSHOT_WORDS (sizeof(MsdSnapshot) / sizeof(uint64_t))

_Static_assert(sizeof(MsdSnapshot) % sizeof(uint64_t) == 0, "a snapshot is whole words");

/* One that libmicrohttpd has. */
typedef struct Scrape
{
	TAILQ_ENTRY(Scrape) all;
	int descriptor;
} Scrape;

struct MsdMetrics
{
	struct MHD_Daemon *http;
	/* Of libmicrohttpd's thread alone; the oldest first. */
	TAILQ_HEAD(, Scrape) scrapes;
	uint32_t scrape_count;
	const char *version;
	uint64_t next_us; /* of the publisher */
	_Atomic uint64_t sequence;
	_Atomic uint64_t words[SNAPSHOT_WORDS];
};

static uint64_t
metrics_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000u + (uint64_t) now.tv_nsec / 1000u;
}

/* ---- the snapshot ---- */

bool
msd_metrics_due(const MsdMetrics *metrics)
{
	return metrics != NULL && metrics_now_us() >= metrics->next_us;
}

void
msd_metrics_publish(MsdMetrics *metrics, const MsdSnapshot *snapshot)
{
	uint64_t words[SNAPSHOT_WORDS];
	uint64_t sequence;

	if (metrics == NULL)
		return;
	memcpy(words, snapshot, sizeof(words));
	sequence = atomic_load_explicit(&metrics->sequence, memory_order_relaxed);
	atomic_store_explicit(&metrics->sequence, sequence + 1, memory_order_relaxed);
	/* A reader that sees one of these words also sees that the sequence is odd. */
	for (size_t i = 0; i < SNAPSHOT_WORDS; i++)
		atomic_store_explicit(&metrics->words[i], words[i], memory_order_release);
	atomic_store_explicit(&metrics->sequence, sequence + 2, memory_order_release);
	metrics->next_us = metrics_now_us() + PUBLISH_US;
}

/* Reads the last snapshot whole.  The publisher is done in microseconds and comes ten times a second. */
static void
snapshot_read(MsdMetrics *metrics, MsdSnapshot *snapshot)
{
	uint64_t words[SNAPSHOT_WORDS];
	uint64_t before, after;

	do
	{
		before = atomic_load_explicit(&metrics->sequence, memory_order_acquire);
		for (size_t i = 0; i < SNAPSHOT_WORDS; i++)
			words[i] = atomic_load_explicit(&metrics->words[i], memory_order_acquire);
		after = atomic_load_explicit(&metrics->sequence, memory_order_relaxed);
	} while (before != after || (before & 1) != 0);
	memcpy(snapshot, words, sizeof(words));
}

/* ---- HTTP ---- */

static enum MHD_Result
reply_text(struct MHD_Connection *connection, unsigned int status, const char *text)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(strlen(text), (void *) (uintptr_t) text, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result;

	if (response == NULL)
		return MHD_NO;
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result
reply_page(MsdMetrics *metrics, struct MHD_Connection *connection)
{
	MsdSnapshot snapshot;
	struct MHD_Response *response;
	enum MHD_Result result;
	char *text = NULL;
	size_t bytes = 0;
	FILE *page = open_memstream(&text, &bytes);

	if (page == NULL)
		return MHD_NO;
	snapshot_read(metrics, &snapshot);
	msd_metrics_write(page, &snapshot, metrics->version, metrics_now_us());
	if (fclose(page) != 0)
	{
		free(text);
		return MHD_NO;
	}
	response = MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE);
	if (response == NULL)
	{
		free(text);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
	                        "text/plain; version=0.0.4; charset=utf-8");
	result = MHD_queue_response(connection, MHD_HTTP_OK, response);
	MHD_destroy_response(response);
	return result;
}

/* Answers as soon as the head of a request is there; nothing that it carries is of interest. */
static enum MHD_Result
answer(void *argument, struct MHD_Connection *connection, const char *url, const char *method,
       const char *version, const char *upload, size_t *upload_bytes, void **state)
{
	(void) version;
	(void) upload;
	(void) upload_bytes;
	(void) state;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return reply_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "read-only\n");
	if (strcmp(url, "/metrics") != 0)
		return reply_text(connection, MHD_HTTP_NOT_FOUND, "the metrics are at /metrics\n");
	return reply_page(argument, connection);
}

/* A connection begins: of too many the oldest is ended.  Without memory for a note of it, it cannot be ended for others. */
static void
scrape_begin(MsdMetrics *metrics, struct MHD_Connection *connection, void **place)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	Scrape *scrape = info == NULL ? NULL : malloc(sizeof(*scrape));
	Scrape *oldest = TAILQ_FIRST(&metrics->scrapes);

	*place = scrape;
	if (scrape == NULL)
		return;
	scrape->descriptor = info->connect_fd;
	TAILQ_INSERT_TAIL(&metrics->scrapes, scrape, all);
	if (++metrics->scrape_count <= CONNECTIONS_MAX)
		return;
	/* libmicrohttpd finds that its peer is gone, and says so. */
	shutdown(oldest->descriptor, SHUT_RDWR);
	TAILQ_REMOVE(&metrics->scrapes, oldest, all);
	metrics->scrape_count--;
	oldest->descriptor = -1;
}

static void
scrape_end(MsdMetrics *metrics, Scrape *scrape)
{
	if (scrape != NULL && scrape->descriptor >= 0)
	{
		TAILQ_REMOVE(&metrics->scrapes, scrape, all);
		metrics->scrape_count--;
	}
	free(scrape);
}

static void
notice_connection(void *argument, struct MHD_Connection *connection, void **place,
                  enum MHD_ConnectionNotificationCode what)
{
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		scrape_begin(argument, connection, place);
	else
		scrape_end(argument, *place);
}

static bool
is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return (ntohl(((const struct sockaddr_in *) address)->sin_addr.s_addr) >> 24) == 127;
	return address->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *) address)->sin6_addr);
}

/* The socket address of "host:port", if it is one of this machine's alone. */
static bool
find_address(const char *address, struct sockaddr_storage *found, char *message, size_t bytes)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct addrinfo *list;
	char host[MSD_ADDRESS_BYTES];
	char service[8];
	uint16_t port;
	int error;
	bool loopback;

	if (!msd_config_address(address, host, &port))
	{
		snprintf(message, bytes, "\"%.200s\" is not host:port", address);
		return false;
	}
	snprintf(service, sizeof(service), "%u", (unsigned) port);
	error = getaddrinfo(host, service, &hints, &list);
	if (error != 0)
	{
		snprintf(message, bytes, "host \"%.200s\" is not known: %s", host, gai_strerror(error));
		return false;
	}
	loopback = is_loopback(list->ai_addr);
	if (loopback)
		memcpy(found, list->ai_addr, list->ai_addrlen);
	else
		snprintf(message, bytes, "\"%.200s\" is no loopback address", host);
	freeaddrinfo(list);
	return loopback;
}

/* Starts libmicrohttpd's thread with all signals blocked: they are the main thread's. */
static struct MHD_Daemon *
start_http(MsdMetrics *metrics, const struct sockaddr *address)
{
	/* By epoll: select() knows no descriptor beyond 1,023, and the clients of msd have more. */
	unsigned int flags = MHD_USE_EPOLL_INTERNAL_THREAD;
	struct MHD_Daemon *http;
	sigset_t all, before;

	if (address->sa_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	http = MHD_start_daemon(flags, 0, NULL, NULL, answer, metrics, MHD_OPTION_SOCK_ADDR, address,
	                        MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_HELD, MHD_OPTION_NOTIFY_CONNECTION,
	                        notice_connection, metrics, MHD_OPTION_CONNECTION_TIMEOUT,
	                        CONNECTION_TIMEOUT_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	                        (size_t) CONNECTION_BYTES, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return http;
}

bool
msd_metrics_open(const char *address, const char *version, MsdMetrics **result, char *message, size_t bytes)
{
	struct sockaddr_storage storage;
	MsdMetrics *metrics;

	*result = NULL;
	if (!find_address(address, &storage, message, bytes))
		return false;
	metrics = calloc(1, sizeof(*metrics));
	if (metrics == NULL)
	{
		snprintf(message, bytes, "out of memory");
		return false;
	}
	metrics->version = version;
	TAILQ_INIT(&metrics->scrapes);
	metrics->http = start_http(metrics, (const struct sockaddr *) &storage);
	if (metrics->http == NULL)
	{
		snprintf(message, bytes, "cannot listen at %.200s: %s", address, strerror(errno));
		free(metrics);
		return false;
	}
	*result = metrics;
	return true;
}

uint16_t
msd_metrics_port(const MsdMetrics *metrics)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(metrics->http, MHD_DAEMON_INFO_BIND_PORT);

	return info == NULL ? 0 : info->port;
}

void
msd_metrics_close(MsdMetrics *metrics)
{
	if (metrics == NULL)
		return;
	MHD_stop_daemon(metrics->http);
	free(metrics);
}
