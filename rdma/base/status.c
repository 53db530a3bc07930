/*
 * status.c
 *		What a call ends with: names of its status, and a line of detail that the fabric keeps.
 */
#define _GNU_SOURCE 1
#include <stdarg.h>
#include <stdio.h>

#include "rdma/base/detail.h"
#include "rdma/base/transport.h"

void
fabric_set_detail(Fabric *fabric, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(fabric->detail, sizeof(fabric->detail), format, arguments);
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
	vsnprintf(detail, FABRIC_DETAIL_BYTES, format, arguments);
	va_end(arguments);
}
