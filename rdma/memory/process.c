/*
 * process.c
 *		Other processes, by pidfd and /proc.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rdma/memory/process.h"

/*
 * Position of starttime in /proc/PID/stat, counted from the field behind the command's closing parenthesis.
 */
#define START_TIME_FIELD 20

uint64_t
process_start_time(uint32_t pid)
{
	char path[64];
	char text[1024];
	const char *field;
	ssize_t length;
	int file;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return 0;
	length = read(file, text, sizeof(text) - 1);
	close(file);
	if (length <= 0)
		return 0;
	text[length] = '\0';
	/* The command may hold spaces and parentheses: its end is the last one. */
	field = strrchr(text, ')');
	for (int i = 0; field != NULL && i < START_TIME_FIELD; i++)
	{
		field = strchr(field, ' ');
		if (field != NULL)
			field++;
	}
	return field == NULL ? 0 : strtoull(field, NULL, 10);
}

int
process_open(uint32_t pid, uint64_t start_time)
{
	int handle;

	if (pid == 0)
		return -1;
	handle = (int) syscall(SYS_pidfd_open, (pid_t) pid, 0);
	if (handle >= 0 && process_start_time(pid) != start_time)
	{
		close(handle);
		return -1;
	}
	return handle;
}

bool
process_is_gone(int handle)
{
	struct pollfd polled = {.fd = handle, .events = POLLIN};

	return poll(&polled, 1, 0) > 0 && (polled.revents & POLLIN) != 0;
}

bool
process_kill(int handle)
{
	return syscall(SYS_pidfd_send_signal, handle, SIGKILL, NULL, 0) == 0 || errno == ESRCH;
}
