/*
 * listen.c
 *		Where the memory node listens: its control socket, and the network.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rdma/base/detail.h"
#include "rdma/stream/network.h"
#include "rdma/server/server_state.h"

/* Connections that wait for accept: all backends of a server may come at once. */
#define LISTEN_BACKLOG 1024

/* Whether a process listens at the control socket's path. A dead daemon's socket refuses. */
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

/*
 * Removes an old socket from the path, if no process listens at it. FABRIC_EXISTS: a process listens; FABRIC_DENIED:
 * the file is something else.
 */
static FabricStatus
clear_place(const char *path, const struct sockaddr_un *address, socklen_t length, char *detail)
{
	struct stat there;

	if (socket_is_served(address, length))
	{
		detail_set(detail, "another daemon listens at \"%s\"", path);
		return FABRIC_EXISTS;
	}
	if (lstat(path, &there) != 0)
		return FABRIC_OK;
	if (!S_ISSOCK(there.st_mode))
	{
		detail_set(detail, "\"%s\" is there and is no socket: it is not touched", path);
		return FABRIC_DENIED;
	}
	unlink(path);
	return FABRIC_OK;
}

/* The users that may connect; the server checks for each one whether it is served. */
static mode_t
socket_mode(const FabricServer *server)
{
	const FabricUsers *users = &server->options.users;

	return users->user_count > 0 || users->group_count > 0 ? 0666 : 0600;
}

static void
note_socket(FabricServer *server)
{
	struct stat made;

	if (lstat(server->socket_path, &made) != 0)
		return;
	server->socket_device = made.st_dev;
	server->socket_inode = made.st_ino;
}

void
listen_remove_socket(FabricServer *server)
{
	struct stat there;

	if (server->socket_inode != 0 && lstat(server->socket_path, &there) == 0 && S_ISSOCK(there.st_mode) &&
	    there.st_dev == server->socket_device && there.st_ino == server->socket_inode)
		unlink(server->socket_path);
	server->socket_inode = 0;
}

FabricStatus
listen_local(FabricServer *server, char *detail)
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
		status = clear_place(server->socket_path, &address, length, detail);
		if (status != FABRIC_OK)
		{
			close(server->listener);
			server->listener = -1;
			goto done;
		}
		status = FABRIC_UNREACHABLE;
		if (bind(server->listener, (struct sockaddr *) &address, length) == 0)
		{
			note_socket(server);
			if (chmod(server->socket_path, socket_mode(server)) == 0 &&
			    listen(server->listener, LISTEN_BACKLOG) == 0 &&
			    epoll_ctl(server->events, EPOLL_CTL_ADD, server->listener, &event) == 0 &&
			    epoll_ctl(server->events, EPOLL_CTL_ADD, server->wake, &wake) == 0)
				status = FABRIC_OK;
		}
	}
	if (status != FABRIC_OK)
		detail_set(detail, "cannot listen at \"%s\": %s", server->socket_path, strerror(errno));
done:
	if (directory >= 0)
		close(directory);
	return status;
}

FabricStatus
listen_network(FabricServer *server, char *detail)
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
		detail_set(detail, "%s", failure);
	else if (server->keys == NULL && (!server->options.insecure_loopback || !loopback))
	{
		detail_set(detail, "listening at \"%s\" needs keys%s", server->options.listen,
		           loopback ? ", or the permission to serve this machine without" : "");
		status = FABRIC_DENIED;
	}
	else if (epoll_ctl(server->events, EPOLL_CTL_ADD, server->network_listener, &event) != 0)
	{
		detail_set(detail, "cannot listen at \"%s\": %s", server->options.listen, strerror(errno));
		status = FABRIC_UNREACHABLE;
	}
	return status;
}

void
listen_pause(FabricServer *server, uint32_t milliseconds)
{
	server->listener_paused = true;
	server->listener_resume = fabric_now() + (uint64_t) milliseconds * 1000000;
	epoll_ctl(server->events, EPOLL_CTL_DEL, server->listener, NULL);
	if (server->network_listener >= 0)
		epoll_ctl(server->events, EPOLL_CTL_DEL, server->network_listener, NULL);
}

void
listen_resume(FabricServer *server)
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
