/*
 * verbs_driver.h
 *		What sherman_verbs.so provides: RC queue pairs, registered memory and completions of libibverbs.
 * Private to rdma/.
 *
 * The shared library knows nothing of the fabric and the fabric nothing of libibverbs: a host without it still starts, and
 * verbs_load.c loads it when the first verbs address is connected or a memory node is told to serve verbs.
 * Nothing here waits, prints or keeps state beyond the objects that it hands out.  An object is used by one thread, in
 * the process that made it.
 */
#ifndef SHERMAN_VERBS_DRIVER_H
#define SHERMAN_VERBS_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

struct sockaddr;

#define VERBS_DRIVER_VERSION 5u
/* The one symbol that the shared library exports: a function `const VerbsDriver *(void)`. */
#define VERBS_DRIVER_SYMBOL "sherman_verbs_driver"

#define VERBS_GID_BYTES 16u
#define VERBS_NAME_BYTES 64u
/* Requests in one post: a chain of the fabric. */
#define VERBS_MAX_POST 32u

typedef struct VerbsDevice VerbsDevice; /* an open device with a protection domain */
typedef struct VerbsMemory VerbsMemory; /* registered memory */
typedef struct VerbsQueue VerbsQueue;   /* an RC queue pair with a completion queue of its own */

/* What the other side of a queue pair has to know. */
typedef struct VerbsAddress
{
	uint32_t queue;    /* number of the queue pair */
	uint32_t sequence; /* first packet sequence number */
	uint32_t lid;      /* InfiniBand only, else 0 */
	uint32_t mtu;      /* bytes of a packet's payload */
	uint32_t reads;    /* READs and atomics that it takes at once */
	uint8_t gid[VERBS_GID_BYTES];
} VerbsAddress;

typedef struct VerbsProperties
{
	char name[VERBS_NAME_BYTES];
	uint32_t mtu; /* bytes, of the active port */
	bool atomics;
	bool hardware;        /* it stands on a bus: a software device copies with the processor */
	uint64_t lock_memory; /* bytes of memory on the device, 0 = none */
} VerbsProperties;

typedef struct VerbsMemoryKeys
{
	uint32_t local;
	uint32_t remote;
	uint64_t base; /* remote address of the first byte */
} VerbsMemoryKeys;

/* What a queue pair's peer may do with registered memory. */
typedef enum VerbsAccess
{
	VERBS_NOTHING, /* it is for our own requests */
	VERBS_READS,
	VERBS_CHANGES /* READ, WRITE and swap */
} VerbsAccess;

typedef enum VerbsOpcode
{
	VERBS_READ,
	VERBS_WRITE,
	VERBS_COMPARE_SWAP,
	VERBS_FETCH_ADD
} VerbsOpcode;

typedef struct VerbsRequest
{
	VerbsOpcode opcode;
	bool fence; /* begins only when all READs and atomics before it are done */
	uint32_t length;
	void *buffer; /* in registered memory; atomics: receives the old word */
	uint32_t local_key;
	uint32_t remote_key;
	uint64_t remote_address;
	uint64_t compare; /* COMPARE_SWAP */
	uint64_t operand; /* COMPARE_SWAP: new word; FETCH_ADD: addend */
} VerbsRequest;

/* How a post ended. */
typedef enum VerbsOutcome
{
	VERBS_NONE,    /* nothing has ended yet */
	VERBS_DONE,    /* all requests up to the one named are done */
	VERBS_LOST,    /* the peer does not answer, or the queue was flushed */
	VERBS_REFUSED, /* the peer refused the access: a stale key, a bad address, a foreign domain */
	VERBS_BROKEN   /* anything else: an error of ours */
} VerbsOutcome;

/* Of a tear probe. */
typedef struct VerbsTears
{
	uint64_t reads;
	uint64_t torn_reads; /* READs of more than one line whose lines did not agree */
	uint64_t torn_lines; /* lines of 64 bytes whose words did not agree */
	uint64_t torn_words; /* aligned words of 8 bytes that were never written */
} VerbsTears;

/* Details are texts for a log or an error; they have room for FABRIC_DETAIL_BYTES. */
typedef struct VerbsDriver
{
	uint32_t version;

	/*
	 * Opens the device `name`, or with NULL the one that has the address `local`, or with NULL for both the first that has
	 * an active port.  NULL: there is none, or no memory; detail says why.
	 */
	VerbsDevice *(*device_open)(const char *name, const struct sockaddr *local, char *detail);
	/* Everything made on it is gone by then. */
	void (*device_close)(VerbsDevice *device);
	void (*device_properties)(const VerbsDevice *device, VerbsProperties *properties);

	/* Pins and registers memory of the caller. */
	VerbsMemory *(*memory_register)(VerbsDevice *device, void *base, uint64_t bytes, VerbsAccess access,
	                                char *detail);
	/* Takes zeroed memory on the device itself, which peers may change.  NULL: it has none, or not so much. */
	VerbsMemory *(*memory_on_device)(VerbsDevice *device, uint64_t bytes, char *detail);
	void (*memory_release)(VerbsMemory *memory);
	void (*memory_keys)(const VerbsMemory *memory, VerbsMemoryKeys *keys);

	/*
	 * Makes a queue pair for `depth` requests in flight (0: it only serves its peer); `local`, if not NULL, chooses the
	 * GID among the device's; `reads_only`: the peer may READ, and neither WRITE nor swap, whatever memory it knows of.
	 * queue_connect() then makes it ready to send and to serve.
	 */
	VerbsQueue *(*queue_create)(VerbsDevice *device, const struct sockaddr *local, uint32_t depth,
	                            bool reads_only, VerbsAddress *own, char *detail);
	bool (*queue_connect)(VerbsQueue *queue, const VerbsAddress *peer, char *detail);
	/* After this returned nothing that the peer or the owner sent can land any more. */
	void (*queue_destroy)(VerbsQueue *queue);

	/*
	 * Posts the requests with one doorbell; the last one's completion carries `id`.  VERBS_DONE: posted; VERBS_NONE: no
	 * room, nothing was posted; VERBS_BROKEN: some may have been.
	 */
	VerbsOutcome (*queue_post)(VerbsQueue *queue, const VerbsRequest *requests, int count, uint64_t id);
	/* The next completion; after any but DONE and NONE the queue is of no more use, and *reason names the error. */
	VerbsOutcome (*queue_poll)(VerbsQueue *queue, uint64_t *id, const char **reason);
	/* Asks that the descriptor become readable with the next completion; then poll once more before sleeping. */
	bool (*queue_arm)(VerbsQueue *queue);
	int (*queue_descriptor)(const VerbsQueue *queue);

	/* READs and WRITEs one line pattern through two queue pairs, from two threads, for so long. */
	bool (*device_probe_tears)(VerbsDevice *device, uint32_t milliseconds, VerbsTears *tears, char *detail);
} VerbsDriver;

typedef const VerbsDriver *(*VerbsDriverFunction)(void);

#endif /* SHERMAN_VERBS_DRIVER_H */
