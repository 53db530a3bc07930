/*
 * control_client.c
 *		The client's end of a memory node's control socket, and ATTACH over any connection.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rdma/base/control.h"
#include "rdma/base/wire.h"

/* Sleep between attempts when the socket takes no more: rare, so a short fixed time does. */
#define RETRY_MS 1

bool
control_address(const char *path, struct sockaddr_un *address, socklen_t *length, int *directory)
{
	const char *slash = strrchr(path, '/');
	char parent[PATH_MAX];
	int written;

	*directory = -1;
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	if (strlen(path) < sizeof(address->sun_path))
		written = snprintf(address->sun_path, sizeof(address->sun_path), "%s", path);
	else
	{
		if (slash == NULL || (size_t) (slash - path) >= sizeof(parent))
		{
			errno = ENAMETOOLONG;
			return false;
		}
		memcpy(parent, path, (size_t) (slash - path));
		parent[slash - path] = '\0';
		*directory = open(parent[0] == '\0' ? "/" : parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (*directory < 0)
			return false;
		written = snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/%s", *directory,
		                   slash + 1);
		if (written < 0 || (size_t) written >= sizeof(address->sun_path))
		{
			close(*directory);
			*directory = -1;
			errno = ENAMETOOLONG;
			return false;
		}
	}
	*length = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + (size_t) written + 1);
	return true;
}

FabricStatus
control_connect(ControlClient *client, Fabric *fabric, const char *path)
{
	uint64_t deadline = fabric_deadline(fabric, FABRIC_WAIT_CONNECT);
	struct sockaddr_un address;
	socklen_t length;
	int directory;
	FabricStatus status = FABRIC_UNREACHABLE;

	client->fabric = fabric;
	client->received = 0;
	client->descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (client->descriptor < 0 || !control_address(path, &address, &length, &directory))
	{
		fabric_set_detail(fabric, "no socket for \"%s\": %s", path, strerror(errno));
		control_disconnect(client);
		return FABRIC_UNREACHABLE;
	}
	for (;;)
	{
		if (connect(client->descriptor, (struct sockaddr *) &address, length) == 0)
		{
			status = FABRIC_OK;
			break;
		}
		if (errno == EACCES || errno == EPERM)
			status = FABRIC_DENIED;
		/* EAGAIN: the memory node's queue of connections is full. */
		if ((errno != EAGAIN && errno != EINTR) || fabric_now() > deadline)
		{
			fabric_set_detail(fabric, "cannot connect to \"%s\": %s", path, strerror(errno));
			break;
		}
		if (fabric_sleep(fabric, NULL, 0, RETRY_MS) < 0)
		{
			status = FABRIC_STOPPED;
			break;
		}
	}
	if (directory >= 0)
		close(directory);
	if (status != FABRIC_OK)
		control_disconnect(client);
	return status;
}

void
control_disconnect(ControlClient *client)
{
	if (client->descriptor >= 0)
		close(client->descriptor);
	client->descriptor = -1;
	client->received = 0;
}

bool
control_is_closed(const ControlClient *client)
{
	uint8_t byte;
	ssize_t count;

	if (client->descriptor < 0)
		return true;
	count = recv(client->descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	return count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* The connection is of no more use. */
static FabricStatus
control_broken(ControlClient *client, const char *what)
{
	fabric_set_detail(client->fabric, "control connection: %s", what);
	control_disconnect(client);
	return FABRIC_LOST;
}

static FabricStatus
send_all(ControlClient *client, const uint8_t *bytes, uint32_t count, uint64_t deadline)
{
	uint32_t sent = 0;

	while (sent < count)
	{
		ssize_t done = send(client->descriptor, bytes + sent, count - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (done >= 0)
			sent += (uint32_t) done;
		else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
			return control_broken(client, strerror(errno));
		else
		{
			int stop = fabric_sleep(client->fabric, NULL, 0, RETRY_MS);

			if (stop < 0 || fabric_now() > deadline)
			{
				/* Half a frame was sent: nothing sensible can follow it. */
				if (sent > 0)
					control_broken(client, "a request was cut");
				return stop < 0 ? FABRIC_STOPPED : FABRIC_TIMED_OUT;
			}
		}
	}
	return FABRIC_OK;
}

/* Takes the descriptor out of a message's ancillary data. */
static void
take_descriptor(struct msghdr *message, int *passed)
{
	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL; part = CMSG_NXTHDR(message, part))
	{
		if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS &&
		    part->cmsg_len == CMSG_LEN(sizeof(int)))
		{
			if (*passed >= 0)
				close(*passed);
			memcpy(passed, CMSG_DATA(part), sizeof(int));
		}
	}
}

/* Receives until the buffer holds `wanted` bytes. */
static FabricStatus
receive_until(ControlClient *client, uint32_t wanted, int *passed, uint64_t deadline)
{
	while (client->received < wanted)
	{
		union
		{
			struct cmsghdr align;
			char bytes[CMSG_SPACE(sizeof(int))];
		} ancillary;
		struct iovec part = {client->buffer + client->received, wanted - client->received};
		struct msghdr message = {.msg_iov = &part,
		                         .msg_iovlen = 1,
		                         .msg_control = ancillary.bytes,
		                         .msg_controllen = sizeof(ancillary.bytes)};
		ssize_t done = recvmsg(client->descriptor, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		uint64_t now;
		int ready;

		if (done > 0)
		{
			take_descriptor(&message, passed);
			client->received += (uint32_t) done;
			continue;
		}
		if (done == 0)
			return control_broken(client, "closed by the memory node");
		if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
			return control_broken(client, strerror(errno));
		now = fabric_now();
		if (now >= deadline)
			return FABRIC_TIMED_OUT;
		ready = fabric_sleep(client->fabric, &client->descriptor, 1, (int) ((deadline - now) / 1000000) + 1);
		if (ready < 0)
			return FABRIC_STOPPED;
	}
	return FABRIC_OK;
}

/* Receives frames until the one that answers `request` is in the buffer, whole. */
static FabricStatus
receive_reply(ControlClient *client, uint16_t method, uint64_t request, int *passed, uint64_t deadline,
              FrameHead *frame)
{
	for (;;)
	{
		FabricStatus status = receive_until(client, FRAME_HEAD_BYTES, passed, deadline);

		if (status != FABRIC_OK)
			return status;
		if (!frame_decode(client->buffer, frame))
		{
			status = control_broken(client, "no reply");
			client->other_version = frame_other_version(client->fabric, frame);
			return status;
		}
		/* A server of no sense could announce a chain. */
		if (frame->length > FRAME_MAX_PAYLOAD)
			return control_broken(client, "a reply too long");
		status = receive_until(client, frame_wire_bytes(frame->length), passed, deadline);
		if (status != FABRIC_OK)
			return status;
		client->received = 0;
		if (frame->request == request && frame->method == method && frame->length >= FRAME_STATUS_BYTES)
			return FABRIC_OK;
		if (frame->request >= request)
			return control_broken(client, "a reply that nobody asked for");
	}
}

FabricStatus
control_call(ControlClient *client, uint16_t method, const void *request, uint32_t request_bytes, void *reply,
             uint32_t *reply_bytes, int *passed)
{
	uint64_t deadline = fabric_deadline(client->fabric, control_wait(method));
	_Alignas(FRAME_ALIGNMENT) uint8_t bytes[FRAME_MAX_BYTES];
	FrameHead frame = {request_bytes, method, FRAME_VERSION, ++client->request};
	uint32_t room = reply_bytes == NULL ? 0 : *reply_bytes;
	uint32_t length;
	uint32_t flags;
	int descriptor = -1;
	FabricStatus status;

	if (reply_bytes != NULL)
		*reply_bytes = 0;
	if (client->descriptor < 0)
	{
		fabric_set_detail(client->fabric, "control connection: not connected");
		return FABRIC_LOST;
	}
	client->other_version = false;
	frame_begin(&frame, bytes);
	if (request_bytes > 0)
		memcpy(bytes + FRAME_HEAD_BYTES, request, request_bytes);
	status = send_all(client, bytes, frame_wire_bytes(request_bytes), deadline);
	if (status == FABRIC_OK)
		status = receive_reply(client, method, client->request, &descriptor, deadline, &frame);
	if (status == FABRIC_TIMED_OUT)
		fabric_set_detail(client->fabric, "control connection: no answer in time");
	if (status == FABRIC_LOST && method == CONTROL_HELLO && client->other_version)
		status = FABRIC_PROTOCOL;
	if (status == FABRIC_OK)
	{
		status = frame_status(client->buffer + FRAME_HEAD_BYTES, &flags);
		length = frame.length - FRAME_STATUS_BYTES;
		if (length > room)
		{
			fabric_set_detail(client->fabric, "a reply of %u bytes does not fit %u", length, room);
			status = FABRIC_PROTOCOL;
		}
		else if (length > 0)
		{
			memcpy(reply, client->buffer + FRAME_HEAD_BYTES + FRAME_STATUS_BYTES, length);
			*reply_bytes = length;
		}
	}
	if (passed != NULL)
		*passed = descriptor;
	else if (descriptor >= 0)
		close(descriptor);
	return status;
}

FabricStatus
control_attach(ControlCall call, void *connection, bool resume, uint64_t launcher_nonce, uint32_t *instance,
               uint32_t *incarnation)
{
	uint8_t request[16];
	uint8_t reply[16];
	uint32_t reply_bytes = sizeof(reply);
	FramePayload payload = {.data = request, .bytes = sizeof(request)};
	FramePayload answer = {.data = reply};
	FabricStatus status;

	frame_put32(&payload, resume ? 1 : 0);
	frame_put64(&payload, launcher_nonce);
	status = call(connection, CONTROL_ATTACH, request, payload.position, reply, &reply_bytes);
	if (status != FABRIC_OK)
		return status;
	answer.bytes = reply_bytes;
	*instance = frame_get32(&answer);
	*incarnation = frame_get32(&answer);
	if (answer.failed || *instance == 0 || *instance > UINT16_MAX || *incarnation == 0 ||
	    *incarnation > UINT16_MAX)
		return FABRIC_PROTOCOL;
	return FABRIC_OK;
}
