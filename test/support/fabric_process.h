/*
 * fabric_process.h
 *		For the tests of the fabric: a memory node in a process of its own, its small service, and clients.
 *
 * The service answers the calls below; `conformance --serve DIRECTORY` offers the same to other programs.
 */
#ifndef SHERMAN_FABRIC_PROCESS_H
#define SHERMAN_FABRIC_PROCESS_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "fabric.h"
#include "fault.h"
#include "proxy_process.h"
#include "server.h"
#include "listen.h"

/* Calls of the test service; integers of 8 bytes in the machine's order. */
#define SERVICE_ECHO 1    /* any bytes -> the same */
#define SERVICE_COMMIT 2  /* offset, bytes -> */
#define SERVICE_RELEASE 3 /* offset, bytes -> */
#define SERVICE_INFO 4    /* -> ServiceInfo */
#define SERVICE_STATUS 5  /* a FabricStatus -> nothing, with that status */
#define SERVICE_SLEEP 6   /* milliseconds -> the same, so much later */
#define SERVICE_PEER 7    /* -> FabricPeer of the caller */

typedef struct ServiceInfo
{
	uint64_t first_unit; /* of node memory */
	uint64_t end;
	uint64_t generation;
	uint64_t memory_state; /* FabricMemoryState at open */
	uint64_t live_channels;
	uint64_t recovered;         /* channels given to recover() since the daemon started */
	uint64_t recovered_inside;  /* of these, with a WRITE in progress */
	uint64_t last_write_offset; /* of the last such */
	uint64_t last_write_bytes;
	uint64_t fenced; /* calls of fenced() */
	uint64_t fenced_incarnation;
	uint64_t connections; /* of all kinds */
	uint64_t authentication_failures;
	uint64_t chain_read_bytes;
	uint64_t chains_refused;
	uint64_t service_word; /* first word of the service area; SERVICE_COMMIT counts it up */
} ServiceInfo;

typedef struct FabricProcess
{
	pid_t pid; /* 0: not running */
	char directory[128];
	char memory_path[160];
	char socket_path[160];
	char address[176];
	uint32_t max_channels;
	uint64_t node_bytes;
	FabricUsers users;          /* who is served beside our own */
	int drain_ms;               /* what its clients have after SIGTERM; for the next start */
	FabricHugePages huge_pages; /* likewise */
	const char *verbs_device;   /* it serves verbs with that; NULL: it does not */
	char listen[LISTEN_BYTES];  /* for network clients; empty: there are none */
	char network_address[LISTEN_BYTES + 16];
	char key_file[160];      /* of the clients and the memory node; empty: network clients need none */
	char log_path[160];      /* everything that it logs goes there; empty: nothing does */
	char snapshot_path[160]; /* it saves its memory there; empty: it does not */
	int reserved;            /* keeps the port ours while the memory node is not running */
} FabricProcess;

/*
 * Makes a directory for the memory node, where files_base() says; fabric_process_start() then starts it
 * there, again and again.
 */
extern void fabric_process_prepare(FabricProcess *process, uint64_t node_bytes, uint32_t max_channels);
/* Between the two: it serves network clients, too, at ->network_address. With keys: one tenant, "tests". */
extern void fabric_process_listen(FabricProcess *process, bool keys);
/* And between these two: network clients are clients of verbs. */
extern void fabric_process_verbs(FabricProcess *process, const char *device);
extern void fabric_process_start(FabricProcess *process);
/* Ends it by SIGTERM (a clean end) or SIGKILL, and waits for it. */
extern void fabric_process_stop(FabricProcess *process, int signal_number);
/* The two halves of that. */
extern void fabric_process_signal(const FabricProcess *process, int signal_number);
extern void fabric_process_wait(FabricProcess *process, int signal_number);
/* Ends it and removes the directory. */
extern void fabric_process_remove(FabricProcess *process);

/* A memory node that is large enough for most tests. */
#define SMALL_NODE_BYTES (1u << 20)
#define SMALL_NODE_CHANNELS 6u

/*
 * Fixtures of cmocka for tests that have a memory node each: the initial state is the FabricProcess, which is
 * prepared as a small one and started, and removed afterwards.
 */
extern int fabric_process_setup(void **state);
extern int fabric_process_teardown(void **state);

/* How it is served, as far as every memory node has it; paths are the process's own. */
extern FabricServerOptions fabric_process_options(const FabricProcess *process);

/* A server in this process, with the files of a memory node that is not running, and without a service. */
typedef struct LocalServer
{
	FabricServerOptions options;
	FabricServer *server; /* NULL: it was not opened */
	FabricMemoryState memory_state;
	char detail[FABRIC_DETAIL_BYTES]; /* why not */
} LocalServer;

/* One that is not open yet, for whoever changes its options first. */
extern LocalServer local_server(const FabricProcess *process);
extern FabricStatus local_server_open(LocalServer *local);

/* Serves in this process until SIGTERM; reports readiness by closing `ready`, if that is not -1. */
extern int fabric_process_serve(const FabricProcess *process, int ready);

/* What a check that fails in a child process does; the parent sees the status. */
#define CHECK(condition)                                                                                     \
	do                                                                                                       \
	{                                                                                                        \
		if (!(condition))                                                                                    \
		{                                                                                                    \
			fprintf(stderr, "%s:%d: process %d: %s\n", __FILE__, __LINE__, (int) getpid(), #condition);      \
			_exit(1);                                                                                        \
		}                                                                                                    \
	} while (0)

/* A client: a fabric with one endpoint. */
typedef struct TestChannel
{
	Fabric *fabric;
	FabricEndpoint *endpoint;
} TestChannel;

/*
 * What channel_try_open() and what stands on it give to all clients from now on: the key file, and a plan
 * of the fault layer; both outlive the clients. NULL: none.
 */
extern void channel_defaults(const char *key_file, const FabricFaultPlan *plan);
/* And FabricOptions.transport. */
extern void channel_transport(const struct FabricTransport *transport);

/* Connects; `options` may be NULL: timeouts of PATIENCE_MS / 2. incarnation 0: control only. */
extern FabricStatus channel_try_open(TestChannel *channel, const char *address, uint64_t cluster,
                                     uint32_t incarnation, const FabricOptions *options);
/* The same, but a failure is the test's failure. */
extern void channel_open(TestChannel *channel, const char *address, uint64_t cluster, uint32_t incarnation);
extern void channel_close(TestChannel *channel);

/*
 * FabricOptions.wait of a client in the thread of its server, which is the wait_argument: each wait is a step of that.
 */
extern int serve_while_waiting(void *argument, const int *descriptors, int count, int milliseconds);

/* Attaches the cluster and returns the granted incarnation. */
extern uint32_t cluster_attach(const char *address, uint64_t cluster);

extern ServiceInfo service_info(const char *address);
extern FabricStatus service_commit(const char *address, uint64_t offset, uint64_t bytes);

/* One operation; CHECKs that it succeeds. */
extern void channel_read(TestChannel *channel, uint64_t offset, void *buffer, uint32_t bytes);
extern void channel_write(TestChannel *channel, uint64_t offset, const void *buffer, uint32_t bytes);

/* Makes operations. */
extern FabricOp op_read(uint64_t offset, void *buffer, uint32_t bytes);
extern FabricOp op_write(uint64_t offset, const void *buffer, uint32_t bytes);
extern FabricOp op_compare_swap(FabricRegion region, uint64_t offset, uint64_t compare, uint64_t operand);
extern FabricOp op_fetch_add(FabricRegion region, uint64_t offset, uint64_t addend);

/* fork(), with a child that does not outlive its parent: a test that is killed for its time leaves nobody. */
extern pid_t start_child(void);

/* Waits for a child: its exit status, or 128 + the signal that ended it. */
extern int wait_for_child(pid_t child);

/* A part of a program that is called by its name. */
typedef struct TestCase
{
	const char *name;
	void (*run)(void);
} TestCase;

/*
 * The device that a test's memory node serves: of `--verbs DEVICE` at the front of the arguments, else $FABRIC_TEST_VERBS; NULL:
 * none. *first: of the arguments behind it.
 */
extern const char *test_device(int argc, char **argv, int *first);

/* Runs the cases that are named, up to a NULL; the program's status: 2 = none is, or there is no such case. */
extern int run_cases(const TestCase *cases, size_t count, char **names);

extern void sleep_ms(uint32_t milliseconds);

/* How long tests wait for what must come: far longer than it takes, as the machine may be busy. */
#define PATIENCE_MS 60000u

/* Milliseconds of a clock that only goes on. */
extern uint64_t now_ms(void);

#endif /* SHERMAN_FABRIC_PROCESS_H */
