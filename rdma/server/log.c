/*
 * log.c
 *		Messages of the memory node's server: for its log, and for its caller.
 */
#define _GNU_SOURCE 1
#include <stdarg.h>
#include <stdio.h>

#include "rdma/server/server_state.h"

/* So many lines of a kind are written in a while, if others can cause them at will. */
#define COMPLAINTS_SAID 5u
#define COMPLAINTS_WHILE_NS 2000000000u

typedef struct ComplaintKind
{
	const char *name;
	FabricLogLevel level;
} ComplaintKind;

static const ComplaintKind complaint_kinds[COMPLAINTS] = {
	[COMPLAINT_ACCEPT] = {"cannot accept a connection", FABRIC_LOG_WARNING},
	[COMPLAINT_REFUSED] = {"a client was refused", FABRIC_LOG_WARNING},
	[COMPLAINT_PROTOCOL] = {"a client speaks another protocol", FABRIC_LOG_WARNING},
	[COMPLAINT_REQUEST] = {"a request was refused", FABRIC_LOG_WARNING},
	[COMPLAINT_CHAIN] = {"a chain was refused", FABRIC_LOG_WARNING},
	[COMPLAINT_ATTACHED] = {"an incarnation was granted", FABRIC_LOG_INFO},
	[COMPLAINT_SERVICE] = {"the service has warned", FABRIC_LOG_WARNING},
};

static void __attribute__((format(printf, 3, 0)))
write_line(const FabricServer *server, FabricLogLevel level, const char *format, va_list arguments)
{
	char message[FABRIC_LOG_BYTES];

	if (server->options.log == NULL)
		return;
	vsnprintf(message, sizeof(message), format, arguments);
	server->options.log(server->options.log_argument, level, message);
}

void
server_log(const FabricServer *server, FabricLogLevel level, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_line(server, level, format, arguments);
	va_end(arguments);
}

void
server_log_set_aside_hint(const FabricServer *server)
{
	if (server->options.set_aside_hint != NULL)
		server_log(server, FABRIC_LOG_WARNING, "hint: %s", server->options.set_aside_hint);
}

static void __attribute__((format(printf, 3, 0)))
complain(FabricServer *server, ServerComplaint kind, const char *format, va_list arguments)
{
	ServerComplaints *complaints = &server->complaints[kind];

	if (complaints->said == 0)
		complaints->since = fabric_now();
	if (complaints->said >= COMPLAINTS_SAID)
	{
		complaints->unsaid++;
		return;
	}
	complaints->said++;
	write_line(server, complaint_kinds[kind].level, format, arguments);
}

void
server_complain(FabricServer *server, ServerComplaint kind, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	complain(server, kind, format, arguments);
	va_end(arguments);
}

void
fabric_server_warn(FabricServer *server, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	complain(server, COMPLAINT_SERVICE, format, arguments);
	va_end(arguments);
}

void
server_complaints_round(FabricServer *server)
{
	for (int kind = 0; kind < COMPLAINTS; kind++)
	{
		ServerComplaints *complaints = &server->complaints[kind];

		if (complaints->said == 0 || fabric_now() - complaints->since < COMPLAINTS_WHILE_NS)
			continue;
		if (complaints->unsaid > 0)
			server_log(server, complaint_kinds[kind].level, "%s: %u more of this kind",
			           complaint_kinds[kind].name, complaints->unsaid);
		*complaints = (ServerComplaints){0};
	}
}
