/*
 * status.c
 *		What a call ends with: names of its status, and a line of detail that the fabric keeps.
 */
#define _GNU_SOURCE 1
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/base/detail.h"
#include "rdma/base/transport.h"

/* What is left of a text in quotes, at least: something of both its ends. */
#define QUOTED_LEAST 43u

/* What stands for its middle. */
#define QUOTED_GAP "..."
#define QUOTED_GAP_BYTES 3u

/* The longest text in quotes of a line; NULL: there is none. */
static char *
longest_quoted(char *line, size_t *bytes)
{
	char *longest = NULL;
	char *end;

	*bytes = 0;
	for (char *begin = strchr(line, '"'); begin != NULL; begin = strchr(end + 1, '"'))
	{
		end = strchr(begin + 1, '"');
		if (end == NULL)
			break;
		if ((size_t) (end - begin) > *bytes)
		{
			longest = begin + 1;
			*bytes = (size_t) (end - begin) - 1;
		}
	}
	return longest;
}

/* Is it a byte of a UTF-8 character, but not its first one? */
static bool
is_continuation(char byte)
{
	return ((unsigned char) byte & 0xc0) == 0x80;
}

/* Takes so many bytes out of the middle of a text that has more, or a few more, so that no character is cut. */
static void
cut_middle(char *text, size_t bytes, size_t cut)
{
	char *begin = text + (bytes - cut) / 2;
	char *end = begin + cut;

	while (begin > text && is_continuation(*begin))
		begin--;
	while (end < text + bytes && is_continuation(*end))
		end++;
	memcpy(begin, QUOTED_GAP, QUOTED_GAP_BYTES);
	memmove(begin + QUOTED_GAP_BYTES, end, strlen(end) + 1);
}

/*
 * Makes a line shorter than `room`, if it can, at the cost of the middles of what it has in quotes: paths are long, and the cause
 * stands behind them.
 */
static void
shorten(char *line, size_t room)
{
	size_t length;

	while ((length = strlen(line)) >= room)
	{
		size_t bytes, cut;
		char *text = longest_quoted(line, &bytes);

		if (text == NULL || bytes <= QUOTED_LEAST)
			return;
		/* Of several long ones in turn, so that something is left of each. */
		cut = length - room + 1 + QUOTED_GAP_BYTES;
		if (cut > bytes / 2)
			cut = bytes / 2;
		if (cut > bytes - QUOTED_LEAST + QUOTED_GAP_BYTES)
			cut = bytes - QUOTED_LEAST + QUOTED_GAP_BYTES;
		cut_middle(text, bytes, cut);
	}
}

/* A line of detail, which has room for FABRIC_DETAIL_BYTES. */
static void __attribute__((format(printf, 2, 0)))
detail_format(char *detail, const char *format, va_list arguments)
{
	va_list again;
	char *line = NULL;

	va_copy(again, arguments);
	if (vsnprintf(detail, FABRIC_DETAIL_BYTES, format, arguments) >= (int) FABRIC_DETAIL_BYTES &&
	    vasprintf(&line, format, again) >= 0)
	{
		shorten(line, FABRIC_DETAIL_BYTES);
		snprintf(detail, FABRIC_DETAIL_BYTES, "%s", line);
		free(line);
	}
	va_end(again);
}

void
fabric_set_detail(Fabric *fabric, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	detail_format(fabric->detail, format, arguments);
	va_end(arguments);
}

const char *
fabric_status_name(FabricStatus status)
{
	static const char *const names[] = {
		[FABRIC_OK] = "ok",
		[FABRIC_BUSY] = "busy",
		[FABRIC_TIMED_OUT] = "timed out",
		[FABRIC_STOPPED] = "stopped",
		[FABRIC_LOST] = "connection lost",
		[FABRIC_FENCED] = "fenced",
		[FABRIC_DENIED] = "permission denied",
		[FABRIC_RANGE] = "out of range",
		[FABRIC_PROTOCOL] = "protocol violation",
		[FABRIC_NOT_SUPPORTED] = "not supported",
		[FABRIC_NO_MEMORY] = "out of memory",
		[FABRIC_DRAINING] = "shutting down",
		[FABRIC_UNREACHABLE] = "unreachable",
		[FABRIC_NOT_FOUND] = "not found",
		[FABRIC_EXISTS] = "already exists",
		[FABRIC_QUOTA] = "quota used up",
		[FABRIC_TOO_MANY] = "too many",
		[FABRIC_HOST_FULL] = "file system full",
	};

	if ((unsigned) status >= sizeof(names) / sizeof(names[0]))
		return "unknown status";
	return names[status];
}

void
detail_set(char *detail, const char *format, ...)
{
	va_list arguments;

	if (detail == NULL)
		return;
	va_start(arguments, format);
	detail_format(detail, format, arguments);
	va_end(arguments);
}
