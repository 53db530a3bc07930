/*
 * fabric_process.c
 *		A memory node in a process of its own for the tests of the fabric, and clients of it.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "../../sim/files.h"
#include "fabric_process.h"
#include "listen.h"

#define SERVICE_AREA_BYTES 8192u
#define NANOSECONDS_PER_MS 1000000
/* Clients have so long after SIGTERM, if a test does not say. */
#define DRAIN_MS 500

typedef struct TestService
{
	int log; /* file of the log, or -1 */
	FabricServer *server;
	ServiceInfo info;
} TestService;

/* For the signal handler of a serving process, which can be given nothing. */
static FabricServer *serving;

/* channel_defaults() */
static const char *client_key_file;
static const FabricFaultPlan *client_plan;
static const struct FabricTransport *client_transport;

/* What the server says of the caller; what lies between the fields is zero. */
static void
tell_peer(const FabricPeer *peer, FabricPeer *reply)
{
	memset(reply, 0, sizeof(*reply));
	memcpy(reply->cluster, peer->cluster, sizeof(reply->cluster));
	reply->instance = peer->instance;
	reply->incarnation = peer->incarnation;
	reply->channel = peer->channel;
	reply->reader = peer->reader;
	reply->tenant = peer->tenant;
}

static FabricStatus
service_call(void *argument, const FabricPeer *peer, uint16_t method, const void *request,
             uint32_t request_bytes, void *reply, uint32_t *reply_bytes)
{
	TestService *service = argument;
	uint64_t words[2] = {0, 0};
	uint64_t area_bytes;
	uint64_t *counted = fabric_server_service_area(service->server, 0, &area_bytes);
	FabricServerFigures figures;

	*reply_bytes = 0;
	memcpy(words, request, request_bytes < sizeof(words) ? request_bytes : sizeof(words));
	switch (method)
	{
		case SERVICE_ECHO:
			memcpy(reply, request, request_bytes);
			*reply_bytes = request_bytes;
			return FABRIC_OK;
		case SERVICE_COMMIT:
			(*counted)++;
			return fabric_server_commit(service->server, peer->tenant, words[0], words[1]);
		case SERVICE_RELEASE:
			fabric_server_release(service->server, words[0], words[1]);
			return FABRIC_OK;
		case SERVICE_INFO:
			if (!fabric_server_part(service->server, peer->tenant, &service->info.first_unit,
			                        &service->info.end))
				return FABRIC_NO_MEMORY;
			service->info.generation = fabric_server_generation(service->server);
			service->info.live_channels = fabric_server_channels(service->server);
			service->info.service_word = *counted;
			fabric_server_figures(service->server, &figures);
			service->info.connections = figures.connections;
			service->info.authentication_failures = figures.authentication_failures;
			service->info.chain_read_bytes = figures.chain_read_bytes;
			service->info.chains_refused = figures.chains_refused;
			memcpy(reply, &service->info, sizeof(service->info));
			*reply_bytes = sizeof(service->info);
			return FABRIC_OK;
		case SERVICE_STATUS:
			return (FabricStatus) words[0];
		case SERVICE_SLEEP:
			sleep_ms((uint32_t) words[0]);
			memcpy(reply, words, 8);
			*reply_bytes = 8;
			return FABRIC_OK;
		case SERVICE_PEER:
			tell_peer(peer, reply);
			*reply_bytes = sizeof(*peer);
			return FABRIC_OK;
		default:
			return FABRIC_NOT_SUPPORTED;
	}
}

static void
service_recover(void *argument, const FabricDeadChannel *dead)
{
	TestService *service = argument;

	service->info.recovered++;
	if (dead->write_offset != UINT64_MAX)
	{
		service->info.recovered_inside++;
		service->info.last_write_offset = dead->write_offset;
		service->info.last_write_bytes = dead->write_bytes;
	}
}

static void
service_fenced(void *argument, uint32_t instance, uint32_t incarnation)
{
	TestService *service = argument;

	(void) instance;
	service->info.fenced++;
	service->info.fenced_incarnation = incarnation;
}

static void
service_log(void *argument, FabricLogLevel level, const char *message)
{
	const TestService *service = argument;

	if (service->log >= 0)
		dprintf(service->log, "%s\n", message);
	if (level >= FABRIC_LOG_INFO && getenv("TEST_VERBOSE") != NULL)
		fprintf(stderr, "memory node %d: %s\n", (int) getpid(), message);
}

static void
stop_serving(int signal_number)
{
	(void) signal_number;
	fabric_server_stop(serving);
}

FabricServerOptions
fabric_process_options(const FabricProcess *process)
{
	return (FabricServerOptions){
		.memory_path = process->memory_path,
		.socket_path = process->socket_path,
		.node_bytes = process->node_bytes,
		.users = process->users,
		.max_channels = process->max_channels,
	};
}

LocalServer
local_server(const FabricProcess *process)
{
	return (LocalServer){.options = fabric_process_options(process)};
}

FabricStatus
local_server_open(LocalServer *local)
{
	static const FabricService service;

	return fabric_server_open(&local->options, &service, &local->server, &local->memory_state, local->detail);
}

int
fabric_process_serve(const FabricProcess *process, int ready)
{
	static TestService service;
	static FabricKeys keys;
	char detail[FABRIC_DETAIL_BYTES];
	FabricServerOptions options = fabric_process_options(process);
	FabricService callbacks = {&service, service_call, service_recover, service_fenced, NULL};
	FabricMemoryState state;
	FabricStatus status = FABRIC_OK;

	options.huge_pages = process->huge_pages;
	options.snapshot_path = process->snapshot_path[0] == '\0' ? NULL : process->snapshot_path;
	options.verbs_device = process->verbs_device;
	options.listen = process->listen[0] == '\0' ? NULL : process->listen;
	options.insecure_loopback = true;
	options.spin = true;
	options.log = service_log;
	options.log_argument = &service;
	service.log = process->log_path[0] == '\0'
	                  ? -1
	                  : open(process->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (process->key_file[0] != '\0')
	{
		status = fabric_keys_read(process->key_file, &keys, detail);
		options.keys = &keys;
	}
	if (status == FABRIC_OK)
		status = fabric_server_open(&options, &callbacks, &service.server, &state, detail);
	if (status == FABRIC_OK)
		status = fabric_server_service_resize(service.server, 0, SERVICE_AREA_BYTES);
	if (status != FABRIC_OK)
	{
		fprintf(stderr, "memory node: %s: %s\n", fabric_status_name(status), detail);
		return 1;
	}
	service.info.memory_state = state;
	serving = service.server;
	signal(SIGTERM, stop_serving);
	if (ready >= 0)
	{
		if (write(ready, "", 1) != 1)
			return 1;
		close(ready);
	}
	status = fabric_server_run(service.server);
	if (options.snapshot_path != NULL && fabric_server_save(service.server, process->drain_ms) != FABRIC_OK)
		return 1;
	fabric_server_close(service.server, process->drain_ms, false);
	return status == FABRIC_OK ? 0 : 1;
}

void
fabric_process_prepare(FabricProcess *process, uint64_t node_bytes, uint32_t max_channels)
{
	memset(process, 0, sizeof(*process));
	CHECK(files_make(process->directory, sizeof(process->directory), "sherman-fabric"));
	snprintf(process->memory_path, sizeof(process->memory_path), "%s/memory", process->directory);
	snprintf(process->socket_path, sizeof(process->socket_path), "%s/socket", process->directory);
	snprintf(process->address, sizeof(process->address), "shm:%s", process->socket_path);
	process->node_bytes = node_bytes;
	process->max_channels = max_channels;
	process->drain_ms = DRAIN_MS;
	process->reserved = -1;
}

void
fabric_process_listen(FabricProcess *process, bool keys)
{
	listen_take(process->listen, &process->reserved);
	snprintf(process->network_address, sizeof(process->network_address), "tcp:%s", process->listen);
	if (!keys)
		return;
	snprintf(process->key_file, sizeof(process->key_file), "%s/keys", process->directory);
	listen_write_key(process->key_file);
}

void
fabric_process_verbs(FabricProcess *process, const char *device)
{
	process->verbs_device = device;
	snprintf(process->network_address, sizeof(process->network_address), "verbs:%s", process->listen);
}

void
fabric_process_start(FabricProcess *process)
{
	int pipes[2];
	char byte;

	CHECK(process->pid == 0 && pipe2(pipes, O_CLOEXEC) == 0);
	process->pid = start_child();
	if (process->pid == 0)
	{
		close(pipes[0]);
		listen_enter();
		_exit(fabric_process_serve(process, pipes[1]));
	}
	close(pipes[1]);
	CHECK(read(pipes[0], &byte, 1) == 1);
	close(pipes[0]);
}

void
fabric_process_signal(const FabricProcess *process, int signal_number)
{
	if (process->pid != 0)
		kill(process->pid, signal_number);
}

void
fabric_process_wait(FabricProcess *process, int signal_number)
{
	int status;

	if (process->pid == 0)
		return;
	status = wait_for_child(process->pid);
	CHECK(status == (signal_number == SIGKILL ? 128 + SIGKILL : 0));
	process->pid = 0;
}

void
fabric_process_stop(FabricProcess *process, int signal_number)
{
	fabric_process_signal(process, signal_number);
	fabric_process_wait(process, signal_number);
}

void
fabric_process_remove(FabricProcess *process)
{
	fabric_process_stop(process, SIGTERM);
	if (process->key_file[0] != '\0')
		unlink(process->key_file);
	if (process->log_path[0] != '\0')
		unlink(process->log_path);
	if (process->snapshot_path[0] != '\0')
		unlink(process->snapshot_path);
	files_remove(process->directory);
	if (process->reserved >= 0)
		close(process->reserved);
	process->reserved = -1;
}

void
channel_defaults(const char *key_file, const FabricFaultPlan *plan)
{
	client_key_file = key_file;
	client_plan = plan;
}

void
channel_transport(const struct FabricTransport *transport)
{
	client_transport = transport;
}

int
fabric_process_setup(void **state)
{
	fabric_process_prepare(*state, SMALL_NODE_BYTES, SMALL_NODE_CHANNELS);
	fabric_process_start(*state);
	return 0;
}

int
fabric_process_teardown(void **state)
{
	fabric_process_remove(*state);
	return 0;
}

FabricStatus
channel_try_open(TestChannel *channel, const char *address, uint64_t cluster, uint32_t incarnation,
                 const FabricOptions *options)
{
	const FabricOptions patient = {.operation_timeout_ms = PATIENCE_MS / 2,
	                               .connect_timeout_ms = PATIENCE_MS / 2};
	FabricOptions own = options == NULL ? patient : *options;
	FabricStatus status;

	own.cluster[0] = cluster;
	own.cluster[1] = ~cluster;
	own.incarnation = incarnation;
	if (own.key_file == NULL)
		own.key_file = client_key_file;
	own.proxy = test_proxies == NULL ? NULL : proxy_processes_client(test_proxies);
	own.transport = client_transport;
	channel->endpoint = NULL;
	CHECK(fabric_open(&own, &channel->fabric) == FABRIC_OK);
	status = fabric_connect(channel->fabric, address, &channel->endpoint);
	if (status == FABRIC_OK && client_plan != NULL)
		status = fabric_fault_set(channel->endpoint, client_plan);
	if (status != FABRIC_OK)
		channel_close(channel);
	return status;
}

void
channel_open(TestChannel *channel, const char *address, uint64_t cluster, uint32_t incarnation)
{
	FabricStatus status = channel_try_open(channel, address, cluster, incarnation, NULL);

	if (status != FABRIC_OK)
		fprintf(stderr, "connect to %s: %s\n", address, fabric_status_name(status));
	CHECK(status == FABRIC_OK);
}

void
channel_close(TestChannel *channel)
{
	fabric_close(channel->fabric);
	channel->fabric = NULL;
	channel->endpoint = NULL;
}

int
serve_while_waiting(void *argument, const int *descriptors, int count, int milliseconds)
{
	struct pollfd polled = {.fd = count > 0 ? descriptors[0] : -1, .events = POLLIN};

	(void) milliseconds;
	fabric_server_step(argument, 1);
	return poll(&polled, 1, 0);
}

uint32_t
cluster_attach(const char *address, uint64_t cluster)
{
	TestChannel control;
	uint32_t instance;
	uint32_t incarnation = 0;

	channel_open(&control, address, cluster, 0);
	CHECK(fabric_attach(control.endpoint, false, 1, &instance, &incarnation) == FABRIC_OK);
	CHECK(instance > 0 && incarnation > 0);
	channel_close(&control);
	return incarnation;
}

ServiceInfo
service_info(const char *address)
{
	TestChannel control;
	ServiceInfo info;
	uint32_t bytes = sizeof(info);

	channel_open(&control, address, 1, 0);
	CHECK(fabric_call(control.endpoint, SERVICE_INFO, NULL, 0, &info, &bytes) == FABRIC_OK &&
	      bytes == sizeof(info));
	channel_close(&control);
	return info;
}

FabricStatus
service_commit(const char *address, uint64_t offset, uint64_t bytes)
{
	TestChannel control;
	uint64_t request[2] = {offset, bytes};
	FabricStatus status;

	channel_open(&control, address, 1, 0);
	status = fabric_call(control.endpoint, SERVICE_COMMIT, request, sizeof(request), NULL, NULL);
	channel_close(&control);
	return status;
}

void
channel_read(TestChannel *channel, uint64_t offset, void *buffer, uint32_t bytes)
{
	FabricOp op = op_read(offset, buffer, bytes);
	FabricStatus status = fabric_execute(channel->endpoint, &op, 1);

	if (status != FABRIC_OK)
		fprintf(stderr, "read: %s\n", fabric_detail(channel->fabric));
	CHECK(status == FABRIC_OK);
}

void
channel_write(TestChannel *channel, uint64_t offset, const void *buffer, uint32_t bytes)
{
	FabricOp op = op_write(offset, buffer, bytes);
	FabricStatus status = fabric_execute(channel->endpoint, &op, 1);

	if (status != FABRIC_OK)
		fprintf(stderr, "write: %s\n", fabric_detail(channel->fabric));
	CHECK(status == FABRIC_OK);
}

FabricOp
op_read(uint64_t offset, void *buffer, uint32_t bytes)
{
	return (FabricOp){.opcode = FABRIC_READ, .offset = offset, .buffer = buffer, .length = bytes};
}

FabricOp
op_write(uint64_t offset, const void *buffer, uint32_t bytes)
{
	/* The fabric only reads the buffer of a WRITE. */
	return (FabricOp){
		.opcode = FABRIC_WRITE, .offset = offset, .buffer = (void *) (uintptr_t) buffer, .length = bytes};
}

FabricOp
op_compare_swap(FabricRegion region, uint64_t offset, uint64_t compare, uint64_t operand)
{
	return (FabricOp){.opcode = FABRIC_COMPARE_SWAP,
	                  .region = (uint8_t) region,
	                  .offset = offset,
	                  .length = 8,
	                  .compare = compare,
	                  .operand = operand};
}

FabricOp
op_fetch_add(FabricRegion region, uint64_t offset, uint64_t addend)
{
	return (FabricOp){.opcode = FABRIC_FETCH_ADD,
	                  .region = (uint8_t) region,
	                  .offset = offset,
	                  .length = 8,
	                  .operand = addend};
}

pid_t
start_child(void)
{
	pid_t parent = getpid();
	pid_t child;

	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
	{
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* It may have died before it was asked for. */
		if (getppid() != parent)
			_exit(1);
	}
	return child;
}

int
wait_for_child(pid_t child)
{
	int status;
	pid_t ended;

	do
		ended = waitpid(child, &status, 0);
	while (ended < 0 && errno == EINTR);
	CHECK(ended == child);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

uint64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000 + (uint64_t) (now.tv_nsec / NANOSECONDS_PER_MS);
}

void
sleep_ms(uint32_t milliseconds)
{
	struct timespec left = {.tv_sec = milliseconds / 1000,
	                        .tv_nsec = (long) (milliseconds % 1000) * NANOSECONDS_PER_MS};

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

const char *
test_device(int argc, char **argv, int *first)
{
	bool named = argc > 2 && strcmp(argv[1], "--verbs") == 0;

	*first = named ? 3 : 1;
	return named ? argv[2] : getenv("FABRIC_TEST_VERBS");
}

int
run_cases(const TestCase *cases, size_t count, char **names)
{
	int status = names[0] == NULL ? 2 : 0;

	for (; *names != NULL; names++)
	{
		size_t number = 0;

		while (number < count && strcmp(cases[number].name, *names) != 0)
			number++;
		if (number == count)
			return 2;
		cases[number].run();
		printf("%s: ok\n", *names);
		fflush(stdout);
	}
	return status;
}
