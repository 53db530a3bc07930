/*
 * requests.c
 *		What the memory node answers to a client: HELLO, RESET, ATTACH, and the service's calls.
 *
 * A reply that is owed later (ATTACH, while older channels are dying; a call that the service has not done) is made in a later
 * round.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rdma/server/server_state.h"
#include "rdma/server/verbs_server.h"

/* Logs what no client of ours asks for or none may, and that there is no room for one. */
static void
report_refusal(FabricServer *server, const ServerConnection *connection, FabricStatus status)
{
	uint16_t method = connection->request.method;

	if (status != FABRIC_PROTOCOL && status != FABRIC_DENIED && status != FABRIC_NOT_SUPPORTED &&
	    (status != FABRIC_NO_MEMORY || method < CONTROL_FIRST_METHOD))
		return;
	server_complain(server, COMPLAINT_REQUEST,
	                "request %#x of cluster %016llx%016llx, tenant \"%s\", was refused: %s", method,
	                (unsigned long long) connection->cluster[0], (unsigned long long) connection->cluster[1],
	                fabric_server_tenant(server, connection->tenant), fabric_status_name(status));
}

/* Replies to the request being answered, without data. */
static void
reply_status(FabricServer *server, ServerConnection *connection, FabricStatus status)
{
	report_refusal(server, connection, status);
	connection_reply(server, connection, &connection->request, status, 0);
}

/*
 * Replies with what the client has now: the memory node's properties and its channel, if any; `grant` is what a client of verbs
 * gets with it, else NULL.
 */
static void
reply_capabilities(FabricServer *server, ServerConnection *connection, const VerbsGrant *grant)
{
	const MemoryHeader *header = server->memory.header;
	MemoryInstance *instance = instance_find(server, connection->cluster);
	FramePayload payload = {.bytes = FABRIC_MAX_CALL_BYTES};
	FabricCapabilities capabilities = {
		.flags = FABRIC_CAP_LINE_ATOMIC | FABRIC_CAP_OPERATION_ATOMIC | FABRIC_CAP_ORDERED_CAS_READ,
		.max_chain = FABRIC_MAX_CHAIN,
		.max_outstanding = TRANSPORT_TICKETS,
		/*
		 * A dying local client's stores end after any of them: one word.  A network client's WRITE is here
		 * as a whole before it begins, and finished whatever dies (MemoryStage).
		 */
		.one_packet = connection->stream == NULL ? sizeof(uint64_t) : FABRIC_STRIPE_BYTES,
		.lock_words = MEMORY_LOCK_WORDS,
		.channel = connection->channel,
		.region_bytes = {header->region_bytes, MEMORY_LOCK_WORDS * sizeof(uint64_t)},
		.node_uuid = {header->node_uuid[0], header->node_uuid[1]},
		.generation = header->generation,
		.instance = instance == NULL || instance->incarnation == 0 ? 0 : instance_number(server, instance),
		.incarnation = connection->incarnation,
	};
	uint64_t serial = 0;

	if (server->verbs != NULL)
		verbs_server_capabilities(server, connection->tenant, &capabilities);
	if (connection->channel != CONTROL_NO_CHANNEL)
	{
		capabilities.redo_offset = (uint64_t) connection->channel * FABRIC_REDO_BYTES;
		serial = server->memory.channels[connection->channel].state >> MEMORY_STATE_BITS;
	}
	payload.data = connection_reply_place(server, connection, FABRIC_MAX_CALL_BYTES);
	if (payload.data == NULL)
		return;
	frame_put_capabilities(&payload, &capabilities, serial);
	if (grant != NULL)
		verbs_put_grant(&payload, grant);
	connection_reply(server, connection, &connection->request, FABRIC_OK, payload.position);
}

/* Whether an ATTACH waits for the death of the cluster's channels. */
static bool
cluster_is_attaching(const FabricServer *server, const uint64_t cluster[2])
{
	const ServerConnection *other;

	if (server->attaching == 0)
		return false;
	TAILQ_FOREACH(other, &server->connections, all)
	{
		if (other->attaching && memcmp(other->cluster, cluster, sizeof(other->cluster)) == 0)
			return true;
	}
	return false;
}

/*
 * The incarnation whose channel the client asks for; 0: it asks for none, or reads what nobody has attached since the memory was loaded: it
 * may be older than what its owner knows.
 */
static uint32_t
asked_incarnation(const FabricServer *server, const FrameHello *hello)
{
	const MemoryInstance *instance;

	if (hello->incarnation != CONTROL_READER)
		return hello->incarnation;
	instance = instance_find(server, hello->cluster);
	return instance == NULL || instance->launcher_nonce == 0 ? 0 : instance->incarnation;
}

/* May this connection have a data channel now? */
static FabricStatus
check_incarnation(FabricServer *server, const ServerConnection *connection)
{
	MemoryInstance *instance = instance_find(server, connection->cluster);

	if (server->draining)
		return FABRIC_DRAINING;
	if (instance == NULL || instance->incarnation == 0 || instance->incarnation != connection->incarnation)
		return FABRIC_FENCED;
	/* While the next incarnation waits for this one's death, nothing of it may start. */
	return cluster_is_attaching(server, connection->cluster) ? FABRIC_FENCED : FABRIC_OK;
}

/*
 * Kills the channel that a reconnecting client names, if it is still there. FABRIC_TIMED_OUT: it would not
 * die.
 */
static FabricStatus
kill_old_channel(FabricServer *server, const FrameHello *hello)
{
	bool reader = hello->incarnation == CONTROL_READER;
	const MemoryHeader *header = server->memory.header;
	MemoryChannel *record;
	ServerConnection *old;

	if (hello->old_channel >= header->max_channels ||
	    memcmp(hello->old_node_uuid, header->node_uuid, 16) != 0)
		return FABRIC_OK;
	record = &server->memory.channels[hello->old_channel];
	if (record->state >> MEMORY_STATE_BITS != hello->old_serial)
		return FABRIC_OK;
	old = server->channels[hello->old_channel].connection;
	/* A channel is killed by its own instance only. */
	if (old != NULL && memcmp(old->cluster, hello->cluster, sizeof(old->cluster)) != 0)
		return FABRIC_DENIED;
	/* And by its readers only if it is a reader's. */
	if (old != NULL && reader && !server->channels[hello->old_channel].reader)
		return FABRIC_DENIED;
	channel_kill(server, hello->old_channel);
	if (old != NULL)
		connection_close(server, old);
	return channel_settle(server, hello->old_channel) ? FABRIC_OK : FABRIC_TIMED_OUT;
}

/* A descriptor of the memory segment that shares nothing with ours: the client's own, with its own lock. */
static int
open_for_client(const FabricServer *server)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", server->memory.descriptor);
	return open(path, O_RDWR | O_CLOEXEC);
}

/*
 * Takes the rest of the request, which says how the client's chains come: the address of its queue pair (*verbs), or for a local
 * client that it sends them.  FABRIC_NOT_SUPPORTED: not here: there is no device; or the memory is a device's, and not to be
 * mapped; or it is to be mapped.
 */
static FabricStatus
take_client(const FabricServer *server, const ServerConnection *connection, FramePayload *request,
            VerbsAddress *client, bool *verbs)
{
	bool more = request->position < request->bytes;
	bool frames = more && connection->stream == NULL && frame_get32(request) == CONTROL_FRAMES;

	*verbs = more && connection->stream != NULL;
	if (*verbs)
		verbs_get_address(request, client);
	if (request->failed || request->position != request->bytes)
		return FABRIC_PROTOCOL;
	if (connection->stream == NULL)
		return frames == (server->verbs != NULL) ? FABRIC_OK : FABRIC_NOT_SUPPORTED;
	return *verbs && server->verbs == NULL ? FABRIC_NOT_SUPPORTED : FABRIC_OK;
}

/* Makes the queue pair of a channel that was just granted; gives the channel back if there is none. */
static FabricStatus
grant_queue(FabricServer *server, ServerConnection *connection, const VerbsAddress *client, VerbsGrant *grant)
{
	uint32_t channel = connection->channel;
	FabricStatus status = connection->verbs ? verbs_server_connect(server, channel, client, grant)
	                                        : verbs_server_loop(server, channel);

	if (status != FABRIC_OK)
	{
		channel_kill(server, channel);
		channel_settle(server, channel);
	}
	return status;
}

/* Makes a channel for the connection; what is needed for that is undone if there is none. */
static FabricStatus
grant_channel(FabricServer *server, ServerConnection *connection, const VerbsAddress *client,
              VerbsGrant *grant)
{
	bool chains = !connection->verbs && (connection->stream != NULL || server->verbs != NULL);
	FabricStatus status = check_incarnation(server, connection);

	if (status == FABRIC_OK && chains && !chains_prepare(connection))
		status = FABRIC_NO_MEMORY;
	if (status == FABRIC_OK)
		status = channel_grant(server, connection,
		                       instance_number(server, instance_find(server, connection->cluster)),
		                       connection->incarnation);
	if (status == FABRIC_OK && chains)
		chains_begin(server, connection);
	if (status == FABRIC_OK && server->verbs != NULL)
		status = grant_queue(server, connection, client, grant);
	return status;
}

/* May clients of this connection's tenant speak for the cluster? */
static FabricStatus
check_tenant(const FabricServer *server, const ServerConnection *connection)
{
	const MemoryInstance *instance = instance_find(server, connection->cluster);

	return instance == NULL || instance->tenant == connection->tenant ? FABRIC_OK : FABRIC_DENIED;
}

/* May they come here?  Local clients that only call need no memory. */
static FabricStatus
admit_tenant(FabricServer *server, const ServerConnection *connection)
{
	FabricStatus status = FABRIC_OK;

	if (connection->stream != NULL || connection->incarnation != 0)
		status = verbs_server_admit(server, connection->tenant);
	if (status == FABRIC_DENIED)
		server_complain(
			server, COMPLAINT_REFUSED,
			"tenant %u (\"%s\") is refused: of the node memory, which verbs is served from, no part is "
			"left for it until the next start",
			connection->tenant, server->memory.header->tenants[connection->tenant]);
	return status == FABRIC_OK ? check_tenant(server, connection) : status;
}

static void
handle_hello(FabricServer *server, ServerConnection *connection, FramePayload *request)
{
	FrameHello hello;
	VerbsAddress client = {0};
	VerbsGrant grant;
	FabricStatus status = FABRIC_OK;
	bool verbs = false;

	frame_get_hello(request, &hello);
	if (request->failed || connection->introduced)
		status = FABRIC_PROTOCOL;
	/* What a local client has, it could change. */
	else if (hello.incarnation == CONTROL_READER && connection->stream == NULL)
		status = FABRIC_NOT_SUPPORTED;
	else if (hello.incarnation != 0)
		status = take_client(server, connection, request, &client, &verbs);
	else if (request->position != request->bytes)
		status = FABRIC_PROTOCOL;
	if (status != FABRIC_OK)
	{
		reply_status(server, connection, status);
		return;
	}
	memcpy(connection->cluster, hello.cluster, sizeof(connection->cluster));
	connection->incarnation = asked_incarnation(server, &hello);
	connection->reader = hello.incarnation == CONTROL_READER;
	connection->verbs = verbs;
	status = server->draining ? FABRIC_DRAINING : admit_tenant(server, connection);
	if (status == FABRIC_OK && connection->stream != NULL && !connection->counted &&
	    server->network_connections >= server->options.max_connections)
		status = FABRIC_NO_MEMORY;
	if (status == FABRIC_OK && hello.old_channel != CONTROL_NO_CHANNEL)
		status = kill_old_channel(server, &hello);
	if (status == FABRIC_OK && hello.incarnation != 0)
	{
		bool maps = connection->stream == NULL && server->verbs == NULL;

		if (maps)
			connection->passed = open_for_client(server);
		status = maps && connection->passed < 0 ? FABRIC_NO_MEMORY
		                                        : grant_channel(server, connection, &client, &grant);
	}
	if (status != FABRIC_OK)
	{
		if (connection->passed >= 0)
			close(connection->passed);
		connection->passed = -1;
		chains_forget(connection);
		server->figures.connections_refused++;
		reply_status(server, connection, status);
		return;
	}
	connection_introduced(server, connection);
	reply_capabilities(server, connection, verbs ? &grant : NULL);
}

static void
handle_reset(FabricServer *server, ServerConnection *connection, FramePayload *request)
{
	uint32_t old = connection->channel;
	VerbsAddress client = {0};
	VerbsGrant grant;
	FabricStatus status;
	bool verbs;

	if (connection->incarnation == 0 ||
	    take_client(server, connection, request, &client, &verbs) != FABRIC_OK || verbs != connection->verbs)
	{
		reply_status(server, connection, FABRIC_PROTOCOL);
		return;
	}
	if (old != CONTROL_NO_CHANNEL)
	{
		/* The client is in this call, and so in no chain: the channel is quiet. */
		channel_kill(server, old);
		if (!channel_settle(server, old))
		{
			reply_status(server, connection, FABRIC_TIMED_OUT);
			return;
		}
	}
	status = grant_channel(server, connection, &client, &grant);
	if (status == FABRIC_OK)
		reply_capabilities(server, connection, verbs ? &grant : NULL);
	else
		reply_status(server, connection, status);
}

static void
reply_attach(FabricServer *server, ServerConnection *connection, const MemoryInstance *instance)
{
	uint8_t *place = connection_reply_place(server, connection, 2 * sizeof(uint32_t));
	FramePayload payload = {.data = place, .bytes = 2 * sizeof(uint32_t)};

	if (place == NULL)
		return;
	frame_put32(&payload, instance_number(server, instance));
	frame_put32(&payload, instance->incarnation);
	connection_reply(server, connection, &connection->request, FABRIC_OK, payload.position);
}

static void
stop_attaching(FabricServer *server, ServerConnection *connection)
{
	connection->attaching = false;
	server->attaching--;
}

void
request_continue_attach(FabricServer *server, ServerConnection *connection)
{
	MemoryInstance *instance = instance_find(server, connection->cluster);

	if (instance_kill_channels(server, instance_number(server, instance)))
	{
		bool advanced = instance_advance(server, instance, incarnation_next(instance->incarnation),
		                                 connection->attach_nonce);

		stop_attaching(server, connection);
		if (advanced)
			reply_attach(server, connection, instance);
		else
			reply_status(server, connection, FABRIC_LOST);
	}
	else if (fabric_now() > connection->attach_deadline)
	{
		server_log(server, FABRIC_LOG_ERROR,
		           "instance %u: an older channel cannot be proven dead, attach refused",
		           instance_number(server, instance));
		stop_attaching(server, connection);
		reply_status(server, connection, FABRIC_BUSY);
	}
}

static void
handle_attach(FabricServer *server, ServerConnection *connection, FramePayload *request)
{
	bool resume = frame_get32(request) != 0;
	uint64_t nonce = frame_get64(request);
	MemoryInstance *instance = NULL;
	FabricStatus status = FABRIC_OK;

	if (request->failed || request->position != request->bytes)
		status = FABRIC_PROTOCOL;
	else if (server->draining)
		status = FABRIC_DRAINING;
	else if (connection->reader)
		status = FABRIC_DENIED;
	else if (cluster_is_attaching(server, connection->cluster))
		status = FABRIC_BUSY;
	/* Another tenant may have made it since this client said HELLO. */
	if (status == FABRIC_OK)
		status = check_tenant(server, connection);
	if (status == FABRIC_OK)
	{
		instance = instance_make(server, connection->cluster, connection->tenant);
		status = instance == NULL ? FABRIC_NO_MEMORY : FABRIC_OK;
	}
	if (status != FABRIC_OK)
	{
		reply_status(server, connection, status);
		return;
	}
	if (resume && instance->incarnation != 0 && instance->launcher_nonce == nonce)
	{
		reply_attach(server, connection, instance);
		return;
	}
	connection->attaching = true;
	server->attaching++;
	connection->attach_nonce = nonce;
	connection->attach_deadline = fabric_now() + (uint64_t) SERVER_REFUSE_AFTER_MS * 1000000;
	request_continue_attach(server, connection);
}

/* Runs the call, or goes on with it. */
static void
run_service_call(FabricServer *server, ServerConnection *connection)
{
	MemoryInstance *instance = instance_find(server, connection->cluster);
	FabricPeer peer = {
		.cluster = {connection->cluster[0], connection->cluster[1]},
		.instance = instance == NULL || instance->incarnation == 0 ? 0 : instance_number(server, instance),
		.incarnation = connection->incarnation,
		.channel = connection->channel,
		.reader = connection->reader,
		.tenant = connection->tenant,
		.progress = &connection->call_progress,
	};
	uint8_t *reply = connection_reply_place(server, connection, FABRIC_MAX_CALL_BYTES);
	uint32_t bytes = FABRIC_MAX_CALL_BYTES;
	uint64_t before = connection->call_progress;
	FabricStatus status = FABRIC_NOT_SUPPORTED;

	connection->calling = false;
	if (reply == NULL)
		return;
	/* An older incarnation may change nothing at the memory node, by a call either. */
	if (connection->incarnation != 0 &&
	    (instance == NULL || instance->incarnation != connection->incarnation))
		status = FABRIC_FENCED;
	/* Another tenant may have made the instance since this client said HELLO. */
	else if (instance != NULL && instance->tenant != connection->tenant)
		status = FABRIC_DENIED;
	else if (server->service.call != NULL)
		status = server->service.call(server->service.argument, &peer, connection->request.method,
		                              connection->call_data, connection->call_bytes, reply, &bytes);
	if (status == FABRIC_BUSY)
	{
		connection->calling = true;
		connection->waits = connection->call_progress == before;
		connection_make_due(server, connection);
		return;
	}
	report_refusal(server, connection, status);
	if (status != FABRIC_OK || bytes > FABRIC_MAX_CALL_BYTES)
		bytes = 0;
	connection_reply(server, connection, &connection->request, status, bytes);
}

bool
request_continue(FabricServer *server, ServerConnection *connection)
{
	/* It began in this very round, perhaps. */
	if (connection->calling && connection->asked != server->round)
	{
		connection->asked = server->round;
		run_service_call(server, connection);
	}
	return connection->calling;
}

void
request_handle(FabricServer *server, ServerConnection *connection, uint8_t *data, uint32_t bytes)
{
	FramePayload request = {.data = data, .bytes = bytes};
	uint16_t method = connection->request.method;

	if (connection->denied)
	{
		server->figures.connections_refused++;
		reply_status(server, connection, FABRIC_DENIED);
	}
	else if (method == CONTROL_HELLO)
		handle_hello(server, connection, &request);
	else if (!connection->introduced)
		reply_status(server, connection, FABRIC_PROTOCOL);
	else if (method == CONTROL_ATTACH)
		handle_attach(server, connection, &request);
	else if (method == CONTROL_RESET)
		handle_reset(server, connection, &request);
	else if (method >= CONTROL_FIRST_METHOD)
		reply_status(server, connection, FABRIC_PROTOCOL);
	else
	{
		connection->call_data = data;
		connection->call_bytes = bytes;
		connection->call_progress = 0;
		run_service_call(server, connection);
	}
}
