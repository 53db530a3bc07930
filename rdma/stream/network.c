/*
 * network.c
 *		See network.h.
 */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/base/detail.h"
#include "rdma/stream/network.h"

/* A host name at most, as in the DNS; and a port's number. */
#define HOST_BYTES 256u
#define PORT_BYTES 6u

/* The longest single sleep: calling the hook more often than the deadline demands does no harm. */
#define SLEEP_MAX_MS 10000u

/* Takes "host:port" or "[host]:port" apart; the port is a number. */
static bool
split_location(const char *location, char host[HOST_BYTES], char port[PORT_BYTES])
{
	const char *colon = strrchr(location, ':');
	size_t length = colon == NULL ? 0 : (size_t) (colon - location);

	if (colon == NULL || strlen(colon + 1) == 0 || strlen(colon + 1) >= PORT_BYTES ||
	    strspn(colon + 1, "0123456789") != strlen(colon + 1) || strtoul(colon + 1, NULL, 10) > UINT16_MAX)
		return false;
	strcpy(port, colon + 1);
	if (length >= 2 && location[0] == '[' && location[length - 1] == ']')
	{
		location++;
		length -= 2;
	}
	else if (memchr(location, ':', length) != NULL)
		return false;
	if (length >= HOST_BYTES)
		return false;
	memcpy(host, location, length);
	host[length] = '\0';
	return true;
}

/* All addresses of a host; NULL is every address of this machine. 0 or an error of getaddrinfo(3). */
static int
resolve(const char *host, const char *port, struct addrinfo **found)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	int error;

	/* Numbers need no resolver, which could make us wait. */
	hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | (host == NULL ? AI_PASSIVE : 0);
	error = getaddrinfo(host, port, &hints, found);
	if (error == 0 || host == NULL)
		return error;
	hints.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG;
	return getaddrinfo(host, port, &hints, found);
}

static bool
is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *) (const void *) address)->sin_addr.s_addr) >> 24 == 127;
	return address->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *) (const void *) address)->sin6_addr);
}

/* A listening socket at the address, or -1 and errno. */
static int
listen_at(const struct addrinfo *address, int backlog)
{
	int one = 1;
	int zero = 0;
	int descriptor =
		socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, address->ai_protocol);
	int saved;

	if (descriptor < 0)
		return -1;
	/* A port whose last connections are still ending may be taken again. */
	setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (address->ai_family == AF_INET6)
		setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	if (bind(descriptor, address->ai_addr, address->ai_addrlen) == 0 && listen(descriptor, backlog) == 0)
		return descriptor;
	saved = errno;
	close(descriptor);
	errno = saved;
	return -1;
}

/* Where a listening socket listens. */
static bool
describe_listener(int descriptor, uint16_t *port, bool *loopback)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);

	if (getsockname(descriptor, (struct sockaddr *) &address, &length) != 0)
		return false;
	*port = ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *) &address)->sin6_port
	                                            : ((struct sockaddr_in *) &address)->sin_port);
	*loopback = is_loopback((struct sockaddr *) &address);
	return true;
}

FabricStatus
network_listen(const char *location, int backlog, int *descriptor, uint16_t *port, bool *loopback,
               char *detail)
{
	char host[HOST_BYTES];
	char number[PORT_BYTES];
	struct addrinfo *found = NULL;
	bool any;
	int error;

	*descriptor = -1;
	if (!split_location(location, host, number))
	{
		detail_set(detail, "\"%s\" is not host:port", location);
		return FABRIC_UNREACHABLE;
	}
	any = host[0] == '\0' || strcmp(host, "*") == 0;
	error = resolve(any ? NULL : host, number, &found);
	if (error != 0)
	{
		detail_set(detail, "no address for \"%s\": %s", location, gai_strerror(error));
		return FABRIC_UNREACHABLE;
	}
	/* A socket for IPv6 takes IPv4 too, if this machine has both. */
	for (const struct addrinfo *at = found; at != NULL && *descriptor < 0 && any; at = at->ai_next)
	{
		if (at->ai_family == AF_INET6)
			*descriptor = listen_at(at, backlog);
	}
	for (const struct addrinfo *at = found; at != NULL && *descriptor < 0; at = at->ai_next)
		*descriptor = listen_at(at, backlog);
	if (*descriptor < 0 || !describe_listener(*descriptor, port, loopback))
		detail_set(detail, "cannot listen at \"%s\": %s", location, strerror(errno));
	freeaddrinfo(found);
	return *descriptor < 0 ? FABRIC_UNREACHABLE : FABRIC_OK;
}

void
network_tune(int descriptor)
{
	int one = 1;
	int idle = NETWORK_IDLE_S;
	int probe = NETWORK_PROBE_S;
	unsigned silence = NETWORK_SILENCE_MS;

	setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &probe, sizeof(probe));
	/* Also for data that are not acknowledged, or a window that stays shut. */
	setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence, sizeof(silence));
}

FabricStatus
network_sleep(const Fabric *fabric, int descriptor, bool writable, uint64_t deadline)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT};
	uint64_t now = fabric_now();
	uint64_t left = now >= deadline ? 0 : (deadline - now) / 1000000 + 1;
	int waiting = descriptor;
	int ready;

	if (now >= deadline)
		return FABRIC_TIMED_OUT;
	/* The hook waits for what becomes readable: an epoll does when the socket takes more. */
	if (writable)
	{
		waiting = epoll_create1(EPOLL_CLOEXEC);
		if (waiting < 0 || epoll_ctl(waiting, EPOLL_CTL_ADD, descriptor, &event) != 0)
			left = 1;
	}
	ready = fabric_sleep(fabric, &waiting, waiting < 0 ? 0 : 1,
	                     (int) (left < SLEEP_MAX_MS ? left : SLEEP_MAX_MS));
	if (writable && waiting >= 0)
		close(waiting);
	return ready < 0 ? FABRIC_STOPPED : FABRIC_OK;
}

/*
 * A connection of a socket with itself, as the kernel makes it if no process listens at a free port.
 */
static bool
is_own_echo(int descriptor)
{
	struct sockaddr_storage own;
	struct sockaddr_storage peer;
	socklen_t own_length = sizeof(own);
	socklen_t peer_length = sizeof(peer);

	memset(&own, 0, sizeof(own));
	memset(&peer, 0, sizeof(peer));
	return getsockname(descriptor, (struct sockaddr *) &own, &own_length) == 0 &&
	       getpeername(descriptor, (struct sockaddr *) &peer, &peer_length) == 0 &&
	       own_length == peer_length && memcmp(&own, &peer, own_length) == 0;
}

/* Connects to one address; FABRIC_TIMED_OUT and FABRIC_UNREACHABLE (errno): try the next. */
static FabricStatus
connect_to(Fabric *fabric, const struct addrinfo *address, uint64_t deadline, int *descriptor)
{
	FabricStatus status = FABRIC_OK;
	int error = 0;
	socklen_t length = sizeof(error);
	struct sockaddr_storage peer;
	socklen_t peer_length = sizeof(peer);

	*descriptor =
		socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, address->ai_protocol);
	if (*descriptor < 0)
		return FABRIC_UNREACHABLE;
	if (connect(*descriptor, address->ai_addr, address->ai_addrlen) != 0)
		error = errno;
	while (status == FABRIC_OK && (error == EINPROGRESS || error == EINTR))
	{
		status = network_sleep(fabric, *descriptor, true, deadline);
		if (getsockopt(*descriptor, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
			error = errno;
		else if (error == 0 && getpeername(*descriptor, (struct sockaddr *) &peer, &peer_length) != 0)
			error = EINPROGRESS;
		else
			break;
	}
	if (status == FABRIC_OK && error == 0 && is_own_echo(*descriptor))
		error = ECONNREFUSED;
	if (status == FABRIC_OK && error != 0)
		status = FABRIC_UNREACHABLE;
	if (status == FABRIC_TIMED_OUT)
		error = ETIMEDOUT;
	if (status != FABRIC_OK)
	{
		close(*descriptor);
		*descriptor = -1;
		errno = error;
	}
	return status;
}

FabricStatus
network_connect(Fabric *fabric, const char *location, uint64_t deadline, int *descriptor)
{
	char host[HOST_BYTES];
	char port[PORT_BYTES];
	struct addrinfo *found = NULL;
	FabricStatus status = FABRIC_UNREACHABLE;
	uint64_t count = 0;
	int error;

	*descriptor = -1;
	if (!split_location(location, host, port) || host[0] == '\0')
	{
		fabric_set_detail(fabric, "\"%s\" is not host:port", location);
		return FABRIC_UNREACHABLE;
	}
	error = resolve(host, port, &found);
	if (error != 0)
	{
		fabric_set_detail(fabric, "no address for \"%s\": %s", location, gai_strerror(error));
		return FABRIC_UNREACHABLE;
	}
	for (const struct addrinfo *at = found; at != NULL; at = at->ai_next)
		count++;
	for (const struct addrinfo *at = found; at != NULL; at = at->ai_next)
	{
		uint64_t now = fabric_now();
		/* An address that does not answer leaves their share to those behind it. */
		uint64_t share = now < deadline ? (deadline - now) / count : 0;

		count--;
		status = connect_to(fabric, at, now + share, descriptor);
		if (status == FABRIC_OK || status == FABRIC_STOPPED)
			break;
		fabric_set_detail(fabric, "cannot connect to \"%s\": %s", location, strerror(errno));
	}
	freeaddrinfo(found);
	if (status == FABRIC_OK)
		network_tune(*descriptor);
	return status == FABRIC_TIMED_OUT ? FABRIC_UNREACHABLE : status;
}
