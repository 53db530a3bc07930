/*
 * msd_top_page.c
 *		A memory node's page of metrics, asked for and read.
 */
#include "tree/msd/msd_top.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A memory node has so long to answer: others are to be shown, too. */
#define ANSWER_MS 1000

static const char prefix[] = "sherman_msd_";
static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";

/* ---- what a page says ---- */

/* A word of another process: what would move a cursor, or is no character, does not go on. */
static void
take_word(char *to, const char *from, size_t length)
{
	size_t i;

	for (i = 0; i < length && i < TOP_WORD_BYTES - 1; i++)
		to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
	to[i] = '\0';
}

/* The value of a label among `name="value",...`; false: it is not there. */
static bool
find_label(const char *labels, const char *name, char *value)
{
	size_t length = strlen(name);

	for (const char *at = labels; at != NULL && *at != '\0'; at = strchr(at, ','))
	{
		at += *at == ',';
		if (strncmp(at, name, length) == 0 && strncmp(at + length, "=\"", 2) == 0)
		{
			at += length + 2;
			take_word(value, at, strcspn(at, "\""));
			return true;
		}
	}
	return false;
}

/* A metric that is one number. */
typedef struct Number
{
	const char *name;
	size_t offset; /* in TopPage */
} Number;

#define NUMBER(name, field)                                                                                  \
	{                                                                                                        \
		name, offsetof(TopPage, field)                                                                       \
	}

/* Those of one field are added up. */
static const Number numbers[] = {
	NUMBER("uptime_seconds", uptime),
	NUMBER("figures_age_seconds", age),
	NUMBER("memory_bytes", memory),
	NUMBER("memory_used_bytes", used),
	NUMBER("memory_quarantined_bytes", quarantined),
	NUMBER("trees", trees),
	NUMBER("connections", connections),
	NUMBER("chains_total", chains),
	NUMBER("chain_operations_total", operations),
	NUMBER("chain_read_bytes_total", read_bytes),
	NUMBER("chain_written_bytes_total", written_bytes),
	NUMBER("chains_refused_total", refused),
	NUMBER("connections_refused_total", refused),
	NUMBER("authentication_failures_total", refused),
};

static void
take_number(TopPage *page, const char *name, double value)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
	{
		if (strcmp(name, numbers[i].name) == 0)
			*(double *) (void *) ((char *) page + numbers[i].offset) += value;
	}
}

static void
take_channels(TopPage *page, const char *transport, double value)
{
	if (strcmp(transport, "shm") == 0)
		page->shm = value;
	else if (strcmp(transport, "tcp") == 0)
		page->tcp = value;
	else if (strcmp(transport, "verbs") == 0)
		page->verbs = value;
}

static void
take_tenant(TopPage *page, const char *name, const char *tenant, double value)
{
	TopTenant *found = NULL;

	for (uint32_t i = 0; i < page->tenant_count && found == NULL; i++)
	{
		if (strcmp(page->tenants[i].name, tenant) == 0)
			found = &page->tenants[i];
	}
	if (found == NULL && page->tenant_count == TOP_TENANTS)
		return;
	if (found == NULL)
	{
		found = &page->tenants[page->tenant_count++];
		strcpy(found->name, tenant);
	}
	if (strcmp(name, "tenant_memory_bytes") == 0)
		found->bytes = value;
	else if (strcmp(name, "tenant_quota_bytes") == 0)
		found->quota = value;
	else if (strcmp(name, "tenant_trees") == 0)
		found->trees = value;
}

/* The calls of a method; NULL: there are too many methods. */
static TopCalls *
calls_of(TopPage *page, const char *method)
{
	for (uint32_t i = 0; i < page->methods; i++)
	{
		if (strcmp(page->calls[i].method, method) == 0)
			return &page->calls[i];
	}
	if (page->methods == TOP_METHODS)
		return NULL;
	strcpy(page->calls[page->methods].method, method);
	return &page->calls[page->methods++];
}

static void
take_calls(TopPage *page, const char *name, const char *method, const char *labels, double value)
{
	TopCalls *calls = calls_of(page, method);
	char limit[TOP_WORD_BYTES];

	if (calls == NULL)
		return;
	if (strcmp(name, "call_duration_seconds_count") == 0)
		calls->count = value;
	else if (strcmp(name, "call_duration_seconds_sum") == 0)
		calls->seconds = value;
	else if (strcmp(name, "call_failures_total") == 0)
		calls->failed = value;
	else if (strcmp(name, "call_duration_seconds_bucket") == 0 && calls->buckets < TOP_BUCKETS &&
	         find_label(labels, "le", limit))
	{
		calls->limit[calls->buckets] = strtod(limit, NULL);
		calls->bucket[calls->buckets++] = value;
	}
}

/* One sample: `name value`, or `name{labels} value`. */
static void
take_sample(TopPage *page, char *line)
{
	size_t length = strcspn(line, "{ ");
	char *labels = line[length] == '{' ? line + length + 1 : NULL;
	char *end = labels != NULL ? strrchr(labels, '}') : line + length;
	const char *name = line + sizeof(prefix) - 1;
	char word[TOP_WORD_BYTES];
	double value;

	if (strncmp(line, prefix, sizeof(prefix) - 1) != 0 || end == NULL || line[length] == '\0')
		return;
	value = strtod(end + 1, NULL);
	line[length] = '\0';
	*end = '\0';
	if (labels == NULL)
		take_number(page, name, value);
	else if (strcmp(name, "info") == 0)
		page->is_msd = find_label(labels, "version", page->version);
	else if (strcmp(name, "state") == 0 && find_label(labels, "state", word))
		page->draining |= strcmp(word, "draining") == 0 && value > 0;
	else if (strcmp(name, "channels") == 0 && find_label(labels, "transport", word))
		take_channels(page, word, value);
	else if (find_label(labels, "tenant", word))
		take_tenant(page, name, word, value);
	else if (find_label(labels, "method", word))
		take_calls(page, name, word, labels, value);
}

void
top_page_parse(char *text, TopPage *page)
{
	char *rest = NULL;

	memset(page, 0, sizeof(*page));
	for (char *line = strtok_r(text, "\r\n", &rest); line != NULL; line = strtok_r(NULL, "\r\n", &rest))
		take_sample(page, line);
}

void
top_node_take(TopNode *node, const TopPage *page, double seconds)
{
	node->has_before = node->known && page->uptime >= node->page.uptime && page->chains >= node->page.chains;
	if (node->has_before)
		node->before = node->page;
	node->seconds = node->has_before ? seconds : page->uptime;
	node->page = *page;
	node->known = true;
	node->failure[0] = '\0';
}

/* ---- asking ---- */

static uint64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000u + (uint64_t) now.tv_nsec / 1000000u;
}

/* Waits for the socket until then.  False: it is too late, with errno. */
static bool
wait_until(int descriptor, short events, uint64_t until)
{
	for (uint64_t now = now_ms(); now < until; now = now_ms())
	{
		struct pollfd polled = {.fd = descriptor, .events = events};

		if (poll(&polled, 1, (int) (until - now)) > 0)
			return true;
	}
	errno = ETIMEDOUT;
	return false;
}

static bool
connect_within(int descriptor, const struct addrinfo *address, uint64_t until)
{
	socklen_t length = sizeof(errno);
	int error = 0;

	if (connect(descriptor, address->ai_addr, address->ai_addrlen) == 0)
		return true;
	if (errno != EINPROGRESS || !wait_until(descriptor, POLLOUT, until))
		return false;
	if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error != 0)
		errno = error;
	return error == 0;
}

/* Sends the request and reads all that comes, with a 0 behind it. */
static bool
exchange(int descriptor, char *text, uint64_t until)
{
	size_t bytes = 0;
	ssize_t got;

	if (send(descriptor, request, sizeof(request) - 1, MSG_NOSIGNAL) != (ssize_t) sizeof(request) - 1)
		return false;
	do
	{
		if (!wait_until(descriptor, POLLIN, until))
			return false;
		got = recv(descriptor, text + bytes, TOP_PAGE_BYTES - 1 - bytes, 0);
		if (got < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		bytes += got > 0 ? (size_t) got : 0;
	} while (got != 0 && bytes < TOP_PAGE_BYTES - 1);
	text[bytes] = '\0';
	return true;
}

static bool
fetch_from(const struct addrinfo *address, char *text)
{
	uint64_t until = now_ms() + ANSWER_MS;
	int descriptor = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool good =
		descriptor >= 0 && connect_within(descriptor, address, until) && exchange(descriptor, text, until);
	int error = errno;

	if (descriptor >= 0)
		close(descriptor);
	errno = error;
	return good;
}

/* The text of the page.  False: with the reason. */
static bool
fetch(const char *where, char *text, char *failure)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct addrinfo *list;
	char host[MSD_ADDRESS_BYTES];
	char service[8];
	uint16_t port;
	int error;
	bool good;

	if (!msd_config_address(where, host, &port))
	{
		snprintf(failure, TOP_MESSAGE_BYTES, "it is not host:port");
		return false;
	}
	snprintf(service, sizeof(service), "%u", (unsigned) port);
	error = getaddrinfo(host, service, &hints, &list);
	if (error != 0)
	{
		snprintf(failure, TOP_MESSAGE_BYTES, "%s", gai_strerror(error));
		return false;
	}
	good = fetch_from(list, text);
	freeaddrinfo(list);
	if (!good)
		snprintf(failure, TOP_MESSAGE_BYTES, "%s", strerror(errno));
	return good;
}

bool
top_node_read(TopNode *node, double now)
{
	static char text[TOP_PAGE_BYTES];
	static TopPage page;
	char *body;

	if (!fetch(node->address, text, node->failure))
		return false;
	body = strstr(text, "\r\n\r\n");
	memset(&page, 0, sizeof(page));
	if (strncmp(text, "HTTP/1.", 7) == 0 && body != NULL)
		top_page_parse(body, &page);
	if (!page.is_msd)
	{
		snprintf(node->failure, TOP_MESSAGE_BYTES, "what answers there is no msd");
		return false;
	}
	top_node_take(node, &page, now - node->read_at);
	node->read_at = now;
	return true;
}
