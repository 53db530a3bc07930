/*
 * soft_device.c
 *		A driver of the verbs transport without a device: queue pairs are threads that talk over sockets, so that all of
 * the transport can be tested where there is no RDMA, over processes.  Built as a sherman_verbs.so of its own.
 *
 * What a real device keeps, this one keeps: the domain of a queue pair and of the memory must be one, keys and bounds are
 * checked, an error ends the queue pair, and nothing lands once it is destroyed.  What a real one does not promise, this one does
 * not do: bytes are copied while others copy, and an atomic is not atomic against the processor.
 *
 * $SOFT_DEVICE_LOCKS: it has memory of its own.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "rdma/verbs/verbs_driver.h"

/* FABRIC_DETAIL_BYTES of fabric.h, which a driver does not know. */
#define DETAIL_BYTES 256
#define DEVICE_NAME "soft0"
#define PACKET_BYTES 1024u
#define MAX_REGIONS 1024u
#define FIRST_KEY 0x5000u
/* A post that waits, with all its requests. */
#define MAX_POSTS 512u
#define OWN_MEMORY (16u * 128u * 1024u)
/* Atomics that add this are orders to fail: the request never ends, or it is lost. */
#define STALL 0x5011d57a11ull
#define LOSE 0x5011d1057ull
/* The largest READ or WRITE. */
#define LONGEST (64u << 10)

struct VerbsDevice
{
	uint32_t domain;
	VerbsProperties properties;
};

struct VerbsMemory
{
	VerbsDevice *device;
	uint8_t *start;
	uint64_t base; /* what its first byte is called from outside */
	uint64_t bytes;
	uint32_t key;
	VerbsAccess access;
	bool own; /* of the device */
};

typedef struct SoftPost
{
	uint64_t id;
	int count;
	VerbsRequest requests[VERBS_MAX_POST];
} SoftPost;

typedef struct SoftCompletion
{
	uint64_t id;
	VerbsOutcome outcome;
} SoftCompletion;

struct VerbsQueue
{
	VerbsDevice *device;
	uint32_t number;
	uint32_t depth;
	int listener; /* where a peer's requests come in */
	int socket;   /* to the peer, for ours */
	int event;
	bool serving, sending;
	atomic_bool reads_only; /* the peer may not change anything */
	atomic_bool stop;
	atomic_int served; /* the accepted socket, or -1 */
	pthread_t server, sender;
	sem_t begun;   /* one of the two is there */
	uint8_t *data; /* the server's, LONGEST bytes */
	pthread_mutex_t lock;
	pthread_cond_t posted;
	uint64_t first_post, next_post; /* positions in posts */
	uint64_t first_done, next_done;
	bool broken;
	SoftPost posts[MAX_POSTS];
	SoftCompletion done[MAX_POSTS];
};

/* A request on its way; a WRITE's bytes follow. The answer is an outcome of 4 bytes, and what was read. */
typedef struct SoftMessage
{
	uint32_t opcode;
	uint32_t length;
	uint32_t key;
	uint32_t unused;
	uint64_t address;
	uint64_t compare;
	uint64_t operand;
} SoftMessage;

/* All memory of this process that devices know: the one atomic domain. */
static struct
{
	pthread_mutex_t lock;
	uint32_t domains;
	uint32_t queues;
	VerbsMemory *regions[MAX_REGIONS]; /* by key */
	uint32_t next;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void
set_detail(char *detail, const char *text)
{
	snprintf(detail, DETAIL_BYTES, "%s", text);
}

/* ---- devices and memory ---- */

static VerbsDevice *
device_open(const char *name, const struct sockaddr *local, char *detail)
{
	VerbsDevice *device;

	(void) local;
	if (name != NULL && strcmp(name, DEVICE_NAME) != 0)
	{
		set_detail(detail, "there is no RDMA device of that name");
		return NULL;
	}
	device = calloc(1, sizeof(*device));
	if (device == NULL)
		return NULL;
	pthread_mutex_lock(&registry.lock);
	device->domain = ++registry.domains;
	pthread_mutex_unlock(&registry.lock);
	snprintf(device->properties.name, sizeof(device->properties.name), "%s", DEVICE_NAME);
	device->properties.mtu = PACKET_BYTES;
	device->properties.atomics = true;
	device->properties.lock_memory = getenv("SOFT_DEVICE_LOCKS") == NULL ? 0 : OWN_MEMORY;
	return device;
}

static void
device_close(VerbsDevice *device)
{
	free(device);
}

static void
device_properties(const VerbsDevice *device, VerbsProperties *properties)
{
	*properties = device->properties;
}

/* Gives the memory a key that nothing had before. */
static VerbsMemory *
enroll(VerbsMemory *memory, char *detail)
{
	bool found = false;

	pthread_mutex_lock(&registry.lock);
	for (uint32_t tries = 0; tries < MAX_REGIONS && !found; tries++)
	{
		uint32_t number = registry.next++;

		found = registry.regions[number % MAX_REGIONS] == NULL;
		if (found)
		{
			/* Keys of neighbors are not neighbors: a wrong one is to be nobody's. */
			memory->key = FIRST_KEY + number * 16;
			registry.regions[number % MAX_REGIONS] = memory;
		}
	}
	pthread_mutex_unlock(&registry.lock);
	if (found)
		return memory;
	set_detail(detail, "too many regions");
	free(memory);
	return NULL;
}

static VerbsMemory *
memory_register(VerbsDevice *device, void *base, uint64_t bytes, VerbsAccess access, char *detail)
{
	VerbsMemory *memory = calloc(1, sizeof(*memory));

	if (memory == NULL)
		return NULL;
	*memory = (VerbsMemory){
		.device = device, .start = base, .base = (uintptr_t) base, .bytes = bytes, .access = access};
	return enroll(memory, detail);
}

static VerbsMemory *
memory_on_device(VerbsDevice *device, uint64_t bytes, char *detail)
{
	VerbsMemory *memory = calloc(1, sizeof(*memory));
	uint8_t *start = calloc(1, bytes);

	if (memory == NULL || start == NULL || device->properties.lock_memory < bytes)
	{
		free(memory);
		free(start);
		set_detail(detail, "no memory on the device");
		return NULL;
	}
	*memory =
		(VerbsMemory){.device = device, .start = start, .bytes = bytes, .access = VERBS_CHANGES, .own = true};
	return enroll(memory, detail);
}

static void
memory_release(VerbsMemory *memory)
{
	if (memory == NULL)
		return;
	pthread_mutex_lock(&registry.lock);
	registry.regions[(memory->key - FIRST_KEY) / 16 % MAX_REGIONS] = NULL;
	pthread_mutex_unlock(&registry.lock);
	if (memory->own)
		free(memory->start);
	free(memory);
}

static void
memory_keys(const VerbsMemory *memory, VerbsMemoryKeys *keys)
{
	*keys = (VerbsMemoryKeys){memory->key, memory->key, memory->base};
}

/* ---- the side that serves ---- */

/* Where the request's bytes are; NULL: the peer may not touch them. The registry is locked. */
static uint8_t *
find_target(const VerbsQueue *queue, const SoftMessage *message)
{
	const VerbsMemory *memory = registry.regions[(message->key - FIRST_KEY) / 16 % MAX_REGIONS];

	if (message->opcode != VERBS_READ && atomic_load(&queue->reads_only))
		return NULL;
	if (memory == NULL || memory->key != message->key ||
	    memory->access < (message->opcode == VERBS_READ ? VERBS_READS : VERBS_CHANGES) ||
	    memory->device->domain != queue->device->domain)
		return NULL;
	if (message->address < memory->base || message->address - memory->base > memory->bytes ||
	    message->length > memory->bytes - (message->address - memory->base))
		return NULL;
	if (message->opcode != VERBS_READ && message->opcode != VERBS_WRITE && message->address % 8 != 0)
		return NULL;
	return memory->start + (message->address - memory->base);
}

/* By words where it goes: bytes that others store at the same time are no error here. */
__attribute__((no_sanitize("thread"))) static void
copy(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		((volatile uint8_t *) to)[i] = from[i];
}

/* An atomic of the device: it loads, and stores a moment later. */
__attribute__((no_sanitize("thread"))) static uint64_t
run_atomic(volatile uint64_t *word, const SoftMessage *message)
{
	uint64_t old = *word;
	uint64_t new = old + message->operand;

	if (message->opcode == VERBS_COMPARE_SWAP)
		new = old == message->compare ? message->operand : old;
	sched_yield();
	/* A failing swap writes the old word back. */
	*word = new;
	return old;
}

/* Runs one request; what it brings is in `data`. */
static VerbsOutcome
run_request(const VerbsQueue *queue, const SoftMessage *message, uint8_t *data)
{
	uint8_t *target;

	/* Memory that is given back is not touched: the lock is held for all of it. */
	pthread_mutex_lock(&registry.lock);
	target = atomic_load(&queue->stop) ? NULL : find_target(queue, message);
	if (target != NULL && message->opcode == VERBS_READ)
		copy(data, target, message->length);
	else if (target != NULL && message->opcode == VERBS_WRITE)
		copy(target, data, message->length);
	else if (target != NULL)
	{
		uint64_t old = run_atomic((volatile uint64_t *) (void *) target, message);

		memcpy(data, &old, sizeof(old));
	}
	pthread_mutex_unlock(&registry.lock);
	return target == NULL ? VERBS_REFUSED : VERBS_DONE;
}

static bool
receive(int socket, void *data, size_t bytes)
{
	return bytes == 0 || recv(socket, data, bytes, MSG_WAITALL) == (ssize_t) bytes;
}

static bool
transmit(int socket, const void *data, size_t bytes)
{
	for (size_t done = 0; done < bytes;)
	{
		ssize_t part = send(socket, (const char *) data + done, bytes - done, MSG_NOSIGNAL);

		if (part <= 0)
			return false;
		done += (size_t) part;
	}
	return true;
}

static void
wait_for_stop(VerbsQueue *queue)
{
	pthread_mutex_lock(&queue->lock);
	while (!atomic_load(&queue->stop))
		pthread_cond_wait(&queue->posted, &queue->lock);
	pthread_mutex_unlock(&queue->lock);
}

/*
 * Serves the one peer until it goes, errs, or the queue pair is destroyed.  It begins and ends within calls of queue_create() and
 * queue_destroy(), and allocates nothing: tests fork beside it, and the address sanitizer's allocator does not survive that while another
 * thread is in it.
 */
static void *
serve(void *argument)
{
	VerbsQueue *queue = argument;
	uint8_t *data = queue->data;
	SoftMessage message;
	int socket;

	sem_post(&queue->begun);
	socket = accept(queue->listener, NULL, NULL);
	atomic_store(&queue->served, socket);
	while (socket >= 0 && !atomic_load(&queue->stop) && receive(socket, &message, sizeof(message)))
	{
		uint32_t outcome;

		if (message.length > LONGEST || message.opcode > VERBS_FETCH_ADD ||
		    (message.opcode == VERBS_WRITE && !receive(socket, data, message.length)))
			break;
		outcome = run_request(queue, &message, data);
		if (!transmit(socket, &outcome, sizeof(outcome)) || outcome != VERBS_DONE)
			break;
		if (message.opcode != VERBS_WRITE && !transmit(socket, data, message.length))
			break;
	}
	if (socket >= 0)
		shutdown(socket, SHUT_RDWR);
	wait_for_stop(queue);
	return NULL;
}

/* ---- the side that posts ---- */

/* One request to its end. */
static VerbsOutcome
run_remote(const VerbsQueue *queue, const VerbsRequest *request)
{
	int socket = queue->socket;
	SoftMessage message = {
		.opcode = request->opcode,
		.length = request->length,
		.key = request->remote_key,
		.address = request->remote_address,
		.compare = request->compare,
		.operand = request->operand,
	};
	uint32_t outcome;

	if (!transmit(socket, &message, sizeof(message)) ||
	    (request->opcode == VERBS_WRITE && !transmit(socket, request->buffer, request->length)) ||
	    !receive(socket, &outcome, sizeof(outcome)))
		return VERBS_LOST;
	if (outcome != VERBS_DONE || request->opcode == VERBS_WRITE)
		return outcome;
	return receive(socket, request->buffer, request->length) ? VERBS_DONE : VERBS_LOST;
}

/* The same, unless it is an order to fail. */
static VerbsOutcome
run_or_fail(VerbsQueue *queue, const VerbsRequest *request)
{
	bool add = request->opcode == VERBS_FETCH_ADD;
	bool stalls = add && request->operand == STALL;

	if (add && request->operand == LOSE)
		return VERBS_LOST;
	pthread_mutex_lock(&queue->lock);
	while (stalls && !atomic_load(&queue->stop))
		pthread_cond_wait(&queue->posted, &queue->lock);
	pthread_mutex_unlock(&queue->lock);
	return run_remote(queue, request);
}

/* Takes post after post; after an error all end at once, as a real queue is flushed. */
static void *
send_posts(void *argument)
{
	VerbsQueue *queue = argument;
	uint64_t one = 1;

	sem_post(&queue->begun);
	pthread_mutex_lock(&queue->lock);
	for (;;)
	{
		SoftPost *post;
		VerbsOutcome outcome = queue->broken ? VERBS_LOST : VERBS_DONE;

		while (queue->first_post == queue->next_post && !atomic_load(&queue->stop))
			pthread_cond_wait(&queue->posted, &queue->lock);
		if (atomic_load(&queue->stop))
			break;
		post = &queue->posts[queue->first_post % MAX_POSTS];
		pthread_mutex_unlock(&queue->lock);
		for (int i = 0; i < post->count && outcome == VERBS_DONE; i++)
			outcome = run_or_fail(queue, &post->requests[i]);
		pthread_mutex_lock(&queue->lock);
		queue->broken |= outcome != VERBS_DONE;
		queue->done[queue->next_done++ % MAX_POSTS] = (SoftCompletion){post->id, outcome};
		queue->first_post++;
		(void) !write(queue->event, &one, sizeof(one));
	}
	pthread_mutex_unlock(&queue->lock);
	return NULL;
}

static VerbsOutcome
queue_post(VerbsQueue *queue, const VerbsRequest *requests, int count, uint64_t id)
{
	VerbsOutcome outcome = VERBS_NONE;

	pthread_mutex_lock(&queue->lock);
	if (queue->next_post - queue->first_done < MAX_POSTS &&
	    queue->next_post - queue->first_done < queue->depth)
	{
		SoftPost *post = &queue->posts[queue->next_post++ % MAX_POSTS];

		post->id = id;
		post->count = count;
		memcpy(post->requests, requests, sizeof(*requests) * (size_t) count);
		pthread_cond_signal(&queue->posted);
		outcome = VERBS_DONE;
	}
	pthread_mutex_unlock(&queue->lock);
	return outcome;
}

static VerbsOutcome
queue_poll(VerbsQueue *queue, uint64_t *id, const char **reason)
{
	VerbsOutcome outcome = VERBS_NONE;

	pthread_mutex_lock(&queue->lock);
	if (queue->first_done != queue->next_done)
	{
		SoftCompletion *done = &queue->done[queue->first_done++ % MAX_POSTS];

		*id = done->id;
		outcome = done->outcome;
	}
	pthread_mutex_unlock(&queue->lock);
	*reason = outcome == VERBS_REFUSED ? "remote access error" : "the queue pair is gone";
	return outcome;
}

static bool
queue_arm(VerbsQueue *queue)
{
	uint64_t events;

	(void) !read(queue->event, &events, sizeof(events));
	return true;
}

static int
queue_descriptor(const VerbsQueue *queue)
{
	return queue->event;
}

/* ---- queue pairs ---- */

/* The name under which a queue pair of a process is found. */
static socklen_t
name_queue(struct sockaddr_un *name, const VerbsAddress *address)
{
	uint32_t process;
	int length;

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	memcpy(&process, address->gid, sizeof(process));
	/* Abstract: it goes with the socket. */
	length = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "sherman-soft-%u-%u", process,
	                  address->queue);
	return (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) length);
}

static void
queue_destroy(VerbsQueue *queue)
{
	if (queue == NULL)
		return;
	/* A request that is being run ends first: after this nothing lands. */
	pthread_mutex_lock(&registry.lock);
	atomic_store(&queue->stop, true);
	pthread_mutex_unlock(&registry.lock);
	pthread_mutex_lock(&queue->lock);
	pthread_cond_broadcast(&queue->posted);
	pthread_mutex_unlock(&queue->lock);
	if (queue->socket >= 0)
		shutdown(queue->socket, SHUT_RDWR);
	if (queue->listener >= 0)
		shutdown(queue->listener, SHUT_RDWR);
	if (atomic_load(&queue->served) >= 0)
		shutdown(atomic_load(&queue->served), SHUT_RDWR);
	if (queue->serving)
		pthread_join(queue->server, NULL);
	if (queue->sending)
		pthread_join(queue->sender, NULL);
	for (int i = 0; i < 4; i++)
	{
		const int descriptors[] = {queue->socket, queue->listener, queue->event, atomic_load(&queue->served)};

		if (descriptors[i] >= 0)
			close(descriptors[i]);
	}
	pthread_mutex_destroy(&queue->lock);
	pthread_cond_destroy(&queue->posted);
	sem_destroy(&queue->begun);
	free(queue->data);
	free(queue);
}

static VerbsQueue *
queue_create(VerbsDevice *device, const struct sockaddr *local, uint32_t depth, bool reads_only,
             VerbsAddress *own, char *detail)
{
	VerbsQueue *queue = calloc(1, sizeof(*queue));
	uint32_t process = (uint32_t) getpid();
	struct sockaddr_un name;
	socklen_t length;

	(void) local;
	if (queue == NULL)
		return NULL;
	queue->device = device;
	queue->depth = depth;
	atomic_init(&queue->reads_only, reads_only);
	queue->socket = queue->event = -1;
	atomic_init(&queue->served, -1);
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->posted, NULL);
	sem_init(&queue->begun, 0, 0);
	queue->data = malloc(LONGEST);
	pthread_mutex_lock(&registry.lock);
	queue->number = ++registry.queues;
	pthread_mutex_unlock(&registry.lock);
	*own = (VerbsAddress){.queue = queue->number, .sequence = depth, .mtu = PACKET_BYTES, .reads = 16};
	memcpy(own->gid, &process, sizeof(process));
	length = name_queue(&name, own);
	queue->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	queue->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (queue->data == NULL || queue->listener < 0 || queue->event < 0 ||
	    bind(queue->listener, (struct sockaddr *) &name, length) != 0 || listen(queue->listener, 1) != 0 ||
	    pthread_create(&queue->server, NULL, serve, queue) != 0)
	{
		set_detail(detail, strerror(errno));
		queue_destroy(queue);
		return NULL;
	}
	queue->serving = true;
	sem_wait(&queue->begun);
	return queue;
}

static bool
queue_connect(VerbsQueue *queue, const VerbsAddress *peer, char *detail)
{
	struct sockaddr_un name;
	socklen_t length = name_queue(&name, peer);

	/* Who posts nothing needs no way there. */
	if (queue->depth == 0)
		return true;
	queue->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (queue->socket < 0 || connect(queue->socket, (struct sockaddr *) &name, length) != 0 ||
	    pthread_create(&queue->sender, NULL, send_posts, queue) != 0)
	{
		set_detail(detail, strerror(errno));
		return false;
	}
	queue->sending = true;
	sem_wait(&queue->begun);
	return true;
}

/* Nothing is found out: a device that is no hardware is not believed anyway. */
static bool
device_probe_tears(VerbsDevice *device, uint32_t milliseconds, VerbsTears *tears, char *detail)
{
	(void) device;
	(void) milliseconds;
	(void) detail;
	memset(tears, 0, sizeof(*tears));
	return true;
}

#ifdef sherman_verbs_driver
/* For soft_verbs.c, which learns it behind queue_create(). */
extern void soft_reads_only(VerbsQueue *queue);

void
soft_reads_only(VerbsQueue *queue)
{
	atomic_store(&queue->reads_only, true);
}
#endif

static const VerbsDriver driver = {
	.version = VERBS_DRIVER_VERSION,
	.device_open = device_open,
	.device_close = device_close,
	.device_properties = device_properties,
	.memory_register = memory_register,
	.memory_on_device = memory_on_device,
	.memory_release = memory_release,
	.memory_keys = memory_keys,
	.queue_create = queue_create,
	.queue_connect = queue_connect,
	.queue_destroy = queue_destroy,
	.queue_post = queue_post,
	.queue_poll = queue_poll,
	.queue_arm = queue_arm,
	.queue_descriptor = queue_descriptor,
	.device_probe_tears = device_probe_tears,
};

extern __attribute__((visibility("default"))) const VerbsDriver *sherman_verbs_driver(void);

const VerbsDriver *
sherman_verbs_driver(void)
{
	return &driver;
}
