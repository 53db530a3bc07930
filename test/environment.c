/*
 * environment.c
 *		See environment.h.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "environment.h"
#include "../sim/files.h"
#include "tree/service/service.h"
#include "support/proxy_process.h"
#include "support/require.h"

/* What its clients have after SIGTERM, if a test does not say. */
#define DRAIN_MS 1000

uint32_t test_lock_words = 16384;
uint64_t test_entry_cache_bytes = 65536;
TestLeafCache test_leaf_cache;
const TreeTechniques *test_techniques;
bool test_alone;
const char *test_key_file;
bool test_threads;

static char network_key_file[96]; /* empty: test_use_network() was not called */
static pid_t network_user;

static Service *served; /* in the child that is a memory node */

uint64_t
test_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000u + (uint64_t) now.tv_nsec / 1000u;
}

void
test_sleep_us(uint64_t microseconds)
{
	struct timespec time = {.tv_sec = (time_t) (microseconds / 1000000u),
	                        .tv_nsec = (long) (microseconds % 1000000u) * 1000};

	while (nanosleep(&time, &time) != 0 && errno == EINTR)
		;
}

/* ---- memory nodes ---- */

static void
node_terminate_handler(int signal_number)
{
	(void) signal_number;
	service_stop(served);
}

static void
node_log(void *argument, FabricLogLevel level, const char *message)
{
	(void) argument;
	if (level >= FABRIC_LOG_WARNING && getenv("TEST_VERBOSE") != NULL)
		fprintf(stderr, "node: %s\n", message);
}

/* The child: serves until SIGTERM, never returns. Says by one byte that it is ready. */
static void
node_serve(const TestNode *node, int ready)
{
	static FabricKeys keys;
	ServiceOptions options;
	char detail[FABRIC_DETAIL_BYTES];
	FabricStatus status;

	memset(&options, 0, sizeof(options));
	if (node->listen[0] != '\0')
	{
		listen_enter();
		options.listen = node->listen;
	}
	if (network_key_file[0] != '\0')
	{
		status = fabric_keys_read(network_key_file, &keys, detail);
		REQUIRE(status == FABRIC_OK, "fabric_keys_read: %s", detail);
		options.keys = &keys;
	}
	options.memory_path = node->memory_path;
	options.socket_path = node->socket_path;
	options.node_bytes = node->bytes;
	options.max_trees = node->max_trees;
	options.max_channels = 128;
	options.verbs_device = getenv("FABRIC_TEST_VERBS");
	options.insecure_loopback = true;
	options.quotas.count = node->local_quota != 0;
	strcpy(options.quotas.quotas[0].tenant, SERVICE_LOCAL_TENANT);
	options.quotas.quotas[0].bytes = node->local_quota;
	options.log = node_log;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	status = service_open(&options, &served, detail);
	REQUIRE(status == FABRIC_OK, "service_open: %s", detail);
	signal(SIGTERM, node_terminate_handler);
	REQUIRE(write(ready, "r", 1) == 1, "no reader");
	close(ready);
	status = service_run(served);
	REQUIRE(status == FABRIC_OK, "service_run: %s", fabric_status_name(status));
	service_close(served, node->drain_ms, false);
	_exit(0);
}

void
test_node_restart(TestNode *node)
{
	int ready[2];
	char byte;

	REQUIRE(pipe(ready) == 0, "pipe");
	fflush(NULL);
	node->pid = fork();
	REQUIRE(node->pid >= 0, "fork");
	if (node->pid == 0)
	{
		close(ready[0]);
		node_serve(node, ready[1]);
	}
	close(ready[1]);
	REQUIRE(read(ready[0], &byte, 1) == 1, "the memory node did not start");
	close(ready[0]);
}

/* Directories that a test which fails or exits early leaves behind are removed when its process ends. */
#define NODES_REMEMBERED 256

static char remembered[NODES_REMEMBERED][sizeof(((TestNode *) NULL)->directory)];
static int remembered_count;
static pid_t remembered_by;

static void
nodes_forget(void)
{
	if (getpid() != remembered_by)
		return; /* a child: its parent still uses them */
	for (int i = 0; i < remembered_count; i++)
		files_remove(remembered[i]);
}

static void
node_remember(const TestNode *node)
{
	if (remembered_by != getpid())
	{
		remembered_by = getpid();
		remembered_count = 0;
		atexit(nodes_forget);
	}
	if (remembered_count < NODES_REMEMBERED)
		strcpy(remembered[remembered_count++], node->directory);
}

static void
network_end(void)
{
	if (getpid() == network_user)
		unlink(network_key_file);
}

void
test_use_network(void)
{
	snprintf(network_key_file, sizeof(network_key_file), "%s/sherman-test-%d.keys", files_base(),
	         (int) getpid());
	unlink(network_key_file);
	listen_write_key(network_key_file);
	test_key_file = network_key_file;
	network_user = getpid();
	atexit(network_end);
}

/*
 * Clients come over tcp, or with $FABRIC_TEST_VERBS, the name of an RDMA device, over verbs; then with $FABRIC_TEST_BESIDE over that
 * transport all the same, tcp or shm.
 */
static void
node_listen(TestNode *node)
{
	const char *beside = getenv("FABRIC_TEST_BESIDE");

	listen_take(node->listen, &node->reserved);
	if (beside != NULL && strcmp(beside, "shm") == 0)
		return;
	snprintf(node->address, sizeof(node->address), "%s:%s",
	         getenv("FABRIC_TEST_VERBS") == NULL || beside != NULL ? "tcp" : "verbs", node->listen);
}

void
test_node_start(TestNode *node, uint64_t bytes)
{
	memset(node, 0, sizeof(*node));
	node->bytes = bytes;
	node->drain_ms = DRAIN_MS;
	REQUIRE(files_make(node->directory, sizeof(node->directory), "sherman-test"), "mkdtemp");
	node_remember(node);
	snprintf(node->memory_path, sizeof(node->memory_path), "%s/memory", node->directory);
	snprintf(node->socket_path, sizeof(node->socket_path), "%s/socket", node->directory);
	snprintf(node->address, sizeof(node->address), "shm:%s", node->socket_path);
	node->reserved = -1;
	if (getenv("FABRIC_TEST_VERBS") != NULL || network_key_file[0] != '\0')
		node_listen(node);
	test_node_restart(node);
}

static void
node_end(TestNode *node, int signal_number)
{
	uint64_t deadline = test_now_us() + TEST_PATIENCE_US;
	int state = 0;

	REQUIRE(node->pid > 0, "the memory node does not run");
	if (signal_number != 0)
		kill(node->pid, signal_number);
	while (waitpid(node->pid, &state, WNOHANG) == 0)
	{
		REQUIRE(test_now_us() < deadline, "the memory node does not end");
		test_sleep_us(500);
	}
	if (signal_number != SIGKILL)
		REQUIRE(WIFEXITED(state) && WEXITSTATUS(state) == 0, "the memory node ended with %x", state);
	node->pid = 0;
}

void
test_node_kill(TestNode *node)
{
	node_end(node, SIGKILL);
}

void
test_node_terminate(TestNode *node)
{
	node_end(node, SIGTERM);
}

void
test_node_drain(TestNode *node)
{
	kill(node->pid, SIGTERM);
}

void
test_node_wait(TestNode *node)
{
	node_end(node, 0);
}

void
test_node_stop(TestNode *node)
{
	if (node->pid > 0)
		test_node_terminate(node);
	if (node->reserved >= 0)
		close(node->reserved);
	files_remove(node->directory);
}

/* ---- the environment of a tree ---- */

static uint64_t
environment_now(void *argument)
{
	(void) argument;
	return test_now_us();
}

/* A wake-up sets the word to 1; it is consumed here, and so never lost. */
static void
environment_sleep(void *argument, uint32_t slot, uint32_t milliseconds)
{
	TestSlot *place = &((TestEnvironment *) argument)->slots[slot];
	struct timespec time = {.tv_sec = milliseconds / 1000, .tv_nsec = (long) (milliseconds % 1000) * 1000000};

	place->sleeps++;
	if (__atomic_exchange_n(&place->wakes, 0, __ATOMIC_ACQ_REL) != 0)
		return;
	syscall(SYS_futex, &place->wakes, FUTEX_WAIT, 0, &time, NULL, 0);
	__atomic_store_n(&place->wakes, 0, __ATOMIC_RELEASE);
}

static void
environment_wake(void *argument, uint32_t slot)
{
	TestSlot *place = &((TestEnvironment *) argument)->slots[slot];

	__atomic_store_n(&place->wakes, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &place->wakes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The slot of this process or thread, for callbacks that do not get it. */
static _Thread_local uint32_t environment_slot;

static bool
environment_should_stop(void *argument)
{
	TestEnvironment *environment = argument;

	return __atomic_load_n(&environment->slots[environment_slot].stop, __ATOMIC_ACQUIRE) != 0;
}

static void
environment_hold(void *argument)
{
	((TestEnvironment *) argument)->slots[environment_slot].holds++;
}

static void
environment_resume(void *argument)
{
	TestSlot *place = &((TestEnvironment *) argument)->slots[environment_slot];

	place->holds--;
	REQUIRE(place->holds >= 0, "resume without hold");
}

TreeEnvironment
test_environment(TestInstance *instance)
{
	TreeEnvironment environment = {
		.argument = instance->environment,
		.now_us = environment_now,
		.sleep = environment_sleep,
		.wake = environment_wake,
		.should_stop = environment_should_stop,
		.hold = environment_hold,
		.resume = environment_resume,
	};

	return environment;
}

/* ---- what processes say to each other ---- */

void
test_say(TestInstance *instance, int word, uint64_t value)
{
	__atomic_store_n(&instance->scratch[word], value, __ATOMIC_SEQ_CST);
}

void
test_await(const TestInstance *instance, int word, uint64_t least)
{
	uint64_t deadline = test_now_us() + TEST_PATIENCE_US;

	while (__atomic_load_n(&instance->scratch[word], __ATOMIC_SEQ_CST) < least)
	{
		REQUIRE(test_now_us() < deadline, "waited in vain for word %d", word);
		test_sleep_us(200);
	}
}

void
test_meet(TestInstance *instance, int word, uint64_t count)
{
	__atomic_fetch_add(&instance->scratch[word], 1, __ATOMIC_SEQ_CST);
	test_await(instance, word, count);
}

/* ---- compute instances ---- */

static void *
shared_map(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	REQUIRE(memory != MAP_FAILED, "mmap of %zu bytes", bytes);
	return memory;
}

static Fabric *
control_open(TestInstance *instance, uint32_t incarnation, uint64_t *silence)
{
	FabricOptions options;
	Fabric *fabric;
	FabricStatus status;

	memset(&options, 0, sizeof(options));
	options.operation_timeout_ms = TEST_PATIENCE_US / 2000;
	options.connect_timeout_ms = TEST_PATIENCE_US / 1000;
	options.silence = silence;
	options.cluster[0] = instance->cluster[0];
	options.cluster[1] = instance->cluster[1];
	options.incarnation = incarnation;
	options.key_file = instance->key_file;
	options.proxy = test_proxies == NULL ? NULL : proxy_processes_client(test_proxies);
	status = fabric_open(&options, &fabric);
	REQUIRE(status == FABRIC_OK, "fabric_open: %s", fabric_status_name(status));
	return fabric;
}

static FabricEndpoint *
node_connect(Fabric *fabric, const TestNode *node)
{
	FabricEndpoint *endpoint;
	char address[128];
	FabricStatus status;

	snprintf(address, sizeof(address), "%s%s", test_proxies != NULL ? "proxy:" : "", node->address);
	status = fabric_connect(fabric, address, &endpoint);
	REQUIRE(status == FABRIC_OK, "fabric_connect: %s: %s", fabric_status_name(status), fabric_detail(fabric));
	return endpoint;
}

void
test_instance_attach(TestInstance *instance)
{
	Fabric *fabric = control_open(instance, 0, NULL);

	for (uint32_t i = 0; i < instance->count; i++)
	{
		FabricEndpoint *endpoint = node_connect(fabric, &instance->nodes[i]);
		uint32_t incarnation;
		FabricStatus status =
			fabric_attach(endpoint, false, test_now_us(), &instance->instance, &incarnation);

		REQUIRE(status == FABRIC_OK, "fabric_attach: %s", fabric_detail(fabric));
		REQUIRE(i == 0 || incarnation == instance->incarnation, "incarnations differ between nodes");
		instance->incarnation = incarnation;
	}
	fabric_close(fabric);
	tree_shared_reset(instance->shared);
}

void
test_instance_start(TestInstance *instance, TestNode *nodes, uint32_t count, uint32_t slots,
                    uint64_t cache_bytes)
{
	static uint64_t started;

	REQUIRE(slots <= TEST_MAX_SLOTS, "too many slots");
	memset(instance, 0, sizeof(*instance));
	instance->nodes = nodes;
	instance->count = count;
	instance->cluster[0] = 0x74657374u + ((uint64_t) getpid() << 32);
	instance->cluster[1] = ++started;
	instance->environment = shared_map(sizeof(TestEnvironment));
	instance->scratch = shared_map(TEST_SCRATCH_WORDS * sizeof(uint64_t));
	instance->key_file = test_key_file;
	instance->options.slots = slots;
	instance->options.trees = 16;
	instance->options.cache_bytes = cache_bytes;
	instance->options.lock_words = test_lock_words;
	instance->options.nodes = count;
	instance->options.techniques = test_techniques;
	instance->options.alone = test_alone;
	instance->options.entry_cache_bytes = test_entry_cache_bytes;
	instance->options.leaf_cache_bytes = test_leaf_cache.bytes;
	instance->options.leaf_cache_leaf_bytes = test_leaf_cache.leaf_bytes;
	instance->options.leaf_admission_percent = test_leaf_cache.admission_percent;
	instance->shared =
		tree_shared_initialize(shared_map(tree_shared_bytes(&instance->options)), &instance->options);
	REQUIRE(instance->shared != NULL, "tree_shared_initialize");
	test_instance_attach(instance);
}

void
test_instance_stop(TestInstance *instance)
{
	munmap(instance->shared, tree_shared_bytes(&instance->options));
	munmap(instance->environment, sizeof(TestEnvironment));
	munmap(instance->scratch, TEST_SCRATCH_WORDS * sizeof(uint64_t));
	memset(instance, 0, sizeof(*instance));
}

/* ---- clients ---- */

void
test_client_open(TestClient *client, TestInstance *instance, uint32_t slot)
{
	TreeClientOptions options;
	TreeStatus status;

	REQUIRE(slot < instance->options.slots, "slot %u is not there", slot);
	memset(client, 0, sizeof(*client));
	client->instance = instance;
	client->slot = slot;
	environment_slot = slot;
	client->fabric = control_open(instance, instance->incarnation, &client->silence);
	memset(&options, 0, sizeof(options));
	options.shared = instance->shared;
	options.slot = slot;
	options.environment = test_environment(instance);
	options.nodes = instance->count;
	options.operation_timeout_ms = TEST_PATIENCE_US / 1000;
	options.silence = &client->silence;
	for (uint32_t i = 0; i < instance->count; i++)
		options.endpoints[i] = client->endpoints[i] = node_connect(client->fabric, &instance->nodes[i]);
	status = tree_client_open(&options, &client->tree);
	REQUIRE(status == TREE_OK, "tree_client_open: %s", tree_status_name(status));
}

TreeStatus
test_client_close(TestClient *client)
{
	TreeStatus status = tree_client_close(client->tree);

	fabric_close(client->fabric);
	memset(client, 0, sizeof(*client));
	return status;
}

static void
create(TestClient *client, const TreeFormat *format, uint32_t flags, TreeRecord *record)
{
	TreeStatus status;

	memset(record, 0, sizeof(*record));
	record->flags = flags;
	record->cluster[0] = client->instance->cluster[0];
	record->cluster[1] = client->instance->cluster[1];
	record->database = 1;
	record->format = *format;
	status = tree_create(client->tree, record);
	REQUIRE(status == TREE_OK, "tree_create: %s: %s", tree_status_name(status), tree_detail(client->tree));
}

void
test_tree_create(TestClient *client, const TreeFormat *format, TreeRecord *record)
{
	create(client, format, 0, record);
}

void
test_replicated_create(TestClient *client, const TreeFormat *format, TreeRecord *record)
{
	create(client, format, TREE_RECORD_REPLICATED, record);
}

uint64_t
test_tree_entries(Tree *tree)
{
	TreeScan *scan;
	const TreeBatch *batch;
	uint64_t count = 0;
	TreeStatus status = tree_scan_open(tree, &scan);

	REQUIRE(status == TREE_OK, "tree_scan_open: %s", tree_status_name(status));
	status = tree_scan_seek(scan, TREE_FORWARD, NULL, NULL);
	while (status == TREE_OK && (status = tree_scan_next(scan, &batch)) == TREE_OK)
		count += (uint64_t) batch->count;
	REQUIRE(status == TREE_END, "scan of all entries: %s", tree_status_name(status));
	tree_scan_close(scan);
	return count;
}

/* ---- processes, or threads in their place ---- */

bool
test_threads_wanted(int argc, char **argv)
{
	test_threads = argc == 2 && strcmp(argv[1], "--threads") == 0;
	return test_threads;
}

typedef struct BodyThread
{
	pthread_t thread;
	int number;
	void (*body)(int number, void *argument);
	void *argument;
} BodyThread;

static void *
body_thread(void *argument)
{
	const BodyThread *own = argument;

	own->body(own->number, own->argument);
	return NULL;
}

static void
bodies_as_threads(int count, void (*body)(int number, void *argument), void *argument)
{
	BodyThread threads[TEST_MAX_SLOTS];

	for (int i = 0; i < count; i++)
	{
		threads[i] = (BodyThread){.number = i, .body = body, .argument = argument};
		REQUIRE(pthread_create(&threads[i].thread, NULL, body_thread, &threads[i]) == 0, "pthread_create");
	}
	for (int i = 0; i < count; i++)
		REQUIRE(pthread_join(threads[i].thread, NULL) == 0, "pthread_join");
}

int
test_processes(int count, void (*body)(int number, void *argument), void *argument)
{
	pid_t children[TEST_MAX_SLOTS];
	int failed = 0;

	REQUIRE(count <= TEST_MAX_SLOTS, "too many processes");
	fflush(NULL);
	if (test_threads)
	{
		bodies_as_threads(count, body, argument);
		return 0;
	}
	for (int i = 0; i < count; i++)
	{
		children[i] = fork();
		REQUIRE(children[i] >= 0, "fork");
		if (children[i] == 0)
		{
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			body(i, argument);
			_exit(0);
		}
	}
	for (int i = 0; i < count; i++)
	{
		int state;

		REQUIRE(waitpid(children[i], &state, 0) == children[i], "waitpid");
		if (!WIFEXITED(state) || WEXITSTATUS(state) != 0)
			failed++;
	}
	return failed;
}
