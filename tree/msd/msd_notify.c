/*
 * msd_notify.c
 *		See msd_notify.h.
 */
#include "tree/msd/msd_notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Longest message: a status line and a few words. */
#define NOTIFY_BYTES 512

static uint64_t
notify_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000u + (uint64_t) now.tv_nsec / 1000u;
}

/* The number in an environment variable; 0: it is not there, or none. */
static uint64_t
environment_number(const char *name)
{
	const char *text = getenv(name);

	return text == NULL ? 0 : strtoull(text, NULL, 10);
}

void
msd_notify_open(MsdNotify *notify)
{
	const char *path = getenv("NOTIFY_SOCKET");
	uint64_t pid = environment_number("WATCHDOG_PID");
	size_t length = path == NULL ? 0 : strlen(path);

	memset(notify, 0, sizeof(*notify));
	notify->descriptor = -1;
	/* A path, or a name in the abstract space, which '@' stands for. */
	if (length < 2 || length > sizeof(notify->address.sun_path) - 1 || (path[0] != '/' && path[0] != '@'))
		return;
	notify->descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	notify->address.sun_family = AF_UNIX;
	memcpy(notify->address.sun_path, path, length);
	if (path[0] == '@')
		notify->address.sun_path[0] = '\0';
	notify->length = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + length);
	if (pid == 0 || pid == (uint64_t) getpid())
		notify->watchdog_us = environment_number("WATCHDOG_USEC");
}

void
msd_notify_send(const MsdNotify *notify, const char *format, ...)
{
	char text[NOTIFY_BYTES];
	va_list arguments;
	int length;

	if (notify->descriptor < 0)
		return;
	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (length <= 0)
		return;
	if ((size_t) length >= sizeof(text))
		length = sizeof(text) - 1;
	/* A manager that does not listen loses by it, not we. */
	(void) !sendto(notify->descriptor, text, (size_t) length, MSG_NOSIGNAL,
	               (const struct sockaddr *) &notify->address, notify->length);
}

void
msd_notify_alive(MsdNotify *notify)
{
	uint64_t now;

	if (notify->descriptor < 0 || notify->watchdog_us == 0)
		return;
	now = notify_now_us();
	if (now < notify->next_us)
		return;
	notify->next_us = now + notify->watchdog_us / 2;
	msd_notify_send(notify, "WATCHDOG=1");
}

void
msd_notify_close(MsdNotify *notify)
{
	if (notify->descriptor >= 0)
		close(notify->descriptor);
	notify->descriptor = -1;
}
