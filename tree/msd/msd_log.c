/*
 * msd_log.c
 *		The daemon's log, and its clock.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "tree/msd/msd_state.h"

/* Of a line, before its message and behind it. */
#define STAMP_BYTES 128u

uint64_t
msd_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000u + (uint64_t) now.tv_nsec / 1000u;
}

void
msd_log_line(void *argument, FabricLogLevel level, const char *message)
{
	static const char *const names[] = {"debug", "info", "warning", "error"};
	const Msd *msd = argument;
	char line[FABRIC_LOG_BYTES + STAMP_BYTES];
	char stamp[32];
	struct timespec now;
	struct tm local;
	int length;

	if (level == FABRIC_LOG_DEBUG && !msd->config.verbose)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &local);
	strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &local);
	length = snprintf(line, sizeof(line), "%s.%03ld [%d] %s: %s\n", stamp, now.tv_nsec / 1000000,
	                  (int) getpid(), names[level], message);
	if (length > 0 && write(msd->log, line, (size_t) length) < 0)
		return; /* a full disk must not end the service */
}

void
msd_log(const Msd *msd, FabricLogLevel level, const char *format, ...)
{
	char message[MSD_MESSAGE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	msd_log_line((void *) (uintptr_t) msd, level, message);
}

bool
msd_log_open(Msd *msd)
{
	int opened = STDERR_FILENO;

	if (msd->config.log[0] != '\0')
		/* The loop does not wait for the reader of a full pipe: such lines are lost. */
		opened =
			open(msd->config.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0640);
	if (opened < 0)
		return false;
	if (msd->log != STDERR_FILENO)
		close(msd->log);
	msd->log = opened;
	return true;
}
