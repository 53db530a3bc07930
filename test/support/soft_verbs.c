/*
 * soft_verbs.c
 *		libibverbs, as much of it as rdma/verbs_*.c use, over the device that soft_device.c plays: so the driver itself is tested where
 * there is no RDMA.  Linked into a sherman_verbs.so in libibverbs's stead.  There is one device, soft1.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "rdma/verbs/verbs_driver.h"

#define DETAIL_BYTES 256
#define PORT 1

typedef struct SoftContext
{
	VerbsDevice *engine;
	struct verbs_context verbs; /* last: it ends with the struct ibv_context */
} SoftContext;

typedef struct SoftRegion
{
	struct ibv_mr region;
	VerbsMemory *memory;
	bool own; /* it belongs to a SoftOwnMemory */
} SoftRegion;

typedef struct SoftOwnMemory
{
	struct ibv_dm memory;
	VerbsMemory *engine;
} SoftOwnMemory;

typedef struct SoftQueue
{
	struct ibv_qp pair; /* first */
	VerbsQueue *engine;
	VerbsAddress own;
	int count;
	int error;
	uint64_t id;
	VerbsRequest requests[VERBS_MAX_POST];
} SoftQueue;

typedef struct SoftCompletions
{
	struct ibv_cq queue;
	SoftQueue *owner;
} SoftCompletions;

/* soft_device.c, built with this name. */
extern const VerbsDriver *soft_engine(void);
extern void soft_reads_only(VerbsQueue *queue);

static SoftContext *
soft_context(struct ibv_context *context)
{
	return (SoftContext *) (void *) ((char *) context - offsetof(SoftContext, verbs.context));
}

static SoftQueue *
soft_queue(struct ibv_qp *pair)
{
	return (SoftQueue *) (void *) pair;
}

/* ---- posting ---- */

/* The next request of what is being posted; NULL: there is no room. */
static VerbsRequest *
next_request(SoftQueue *queue, VerbsOpcode opcode, uint32_t key, uint64_t address, bool fence)
{
	VerbsRequest *request = &queue->requests[queue->count];

	if (queue->count == (int) VERBS_MAX_POST)
	{
		queue->error = ENOMEM;
		return NULL;
	}
	queue->count++;
	memset(request, 0, sizeof(*request));
	request->opcode = opcode;
	request->remote_key = key;
	request->remote_address = address;
	request->fence = fence;
	return request;
}

static int
hand_over(SoftQueue *queue, bool signaled)
{
	/* The driver asks for the completion of the last one, and of no other. */
	if (queue->error == 0 && !signaled)
		queue->error = EINVAL;
	if (queue->error == 0 && queue->count > 0 &&
	    soft_engine()->queue_post(queue->engine, queue->requests, queue->count, queue->id) != VERBS_DONE)
		queue->error = ENOMEM;
	return queue->error;
}

static int
post_send(struct ibv_qp *pair, struct ibv_send_wr *works, struct ibv_send_wr **bad)
{
	static const VerbsOpcode opcodes[] = {
		[IBV_WR_RDMA_READ] = VERBS_READ,
		[IBV_WR_RDMA_WRITE] = VERBS_WRITE,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = VERBS_COMPARE_SWAP,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = VERBS_FETCH_ADD,
	};
	SoftQueue *queue = soft_queue(pair);
	bool signaled = false;

	queue->count = queue->error = 0;
	*bad = works;
	for (const struct ibv_send_wr *work = works; work != NULL; work = work->next)
	{
		bool atomic = work->opcode != IBV_WR_RDMA_READ && work->opcode != IBV_WR_RDMA_WRITE;
		VerbsRequest *request =
			next_request(queue, opcodes[work->opcode], atomic ? work->wr.atomic.rkey : work->wr.rdma.rkey,
		                 atomic ? work->wr.atomic.remote_addr : work->wr.rdma.remote_addr,
		                 (work->send_flags & IBV_SEND_FENCE) != 0);

		if (request == NULL || signaled)
			return EINVAL;
		signaled = (work->send_flags & IBV_SEND_SIGNALED) != 0;
		request->buffer = (void *) (uintptr_t) work->sg_list->addr;
		request->length = work->sg_list->length;
		request->local_key = work->sg_list->lkey;
		request->compare = work->wr.atomic.compare_add;
		request->operand =
			work->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? work->wr.atomic.swap : request->compare;
		queue->id = work->wr_id;
	}
	return hand_over(queue, signaled);
}

/* ---- completions ---- */

static int
poll_cq(struct ibv_cq *completions, int count, struct ibv_wc *found)
{
	static const enum ibv_wc_status statuses[] = {
		[VERBS_DONE] = IBV_WC_SUCCESS,
		[VERBS_LOST] = IBV_WC_RETRY_EXC_ERR,
		[VERBS_REFUSED] = IBV_WC_REM_ACCESS_ERR,
		[VERBS_BROKEN] = IBV_WC_REM_INV_REQ_ERR,
	};
	const SoftCompletions *own = (const SoftCompletions *) (const void *) completions;
	VerbsOutcome outcome;
	const char *reason;

	(void) count;
	memset(found, 0, sizeof(*found));
	outcome = soft_engine()->queue_poll(own->owner->engine, &found->wr_id, &reason);
	if (outcome == VERBS_NONE)
		return 0;
	found->status = statuses[outcome];
	return 1;
}

static int
req_notify_cq(struct ibv_cq *completions, int solicited_only)
{
	(void) completions;
	(void) solicited_only;
	return 0;
}

struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = calloc(1, sizeof(*channel));

	channel->context = context;
	channel->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return channel;
}

int
ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	close(channel->fd);
	free(channel);
	return 0;
}

struct ibv_cq *
ibv_create_cq(struct ibv_context *context, int entries, void *cq_context, struct ibv_comp_channel *channel,
              int vector)
{
	SoftCompletions *own = calloc(1, sizeof(*own));

	(void) vector;
	own->queue.context = context;
	own->queue.cq_context = cq_context;
	own->queue.channel = channel;
	own->queue.cqe = entries;
	return &own->queue;
}

int
ibv_destroy_cq(struct ibv_cq *completions)
{
	free(completions);
	return 0;
}

int
ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **completions, void **context)
{
	uint64_t events;

	(void) completions;
	(void) context;
	return read(channel->fd, &events, sizeof(events)) == (ssize_t) sizeof(events) ? 0 : -1;
}

void
ibv_ack_cq_events(struct ibv_cq *completions, unsigned events)
{
	(void) completions;
	(void) events;
}

const char *
ibv_wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_REM_ACCESS_ERR ? "remote access error" : "a played error";
}

/* ---- queue pairs ---- */

struct ibv_qp *
ibv_create_qp(struct ibv_pd *domain, struct ibv_qp_init_attr *attributes)
{
	SoftCompletions *completions = (SoftCompletions *) (void *) attributes->send_cq;
	struct ibv_comp_channel *channel = attributes->send_cq->channel;
	SoftQueue *queue = calloc(1, sizeof(*queue));
	char detail[DETAIL_BYTES];

	queue->engine = soft_engine()->queue_create(soft_context(domain->context)->engine, NULL,
	                                            channel == NULL ? 0 : attributes->cap.max_send_wr, false,
	                                            &queue->own, detail);
	if (queue->engine == NULL)
	{
		free(queue);
		errno = ENOMEM;
		return NULL;
	}
	/* Who sleeps on the channel is woken by the engine. */
	if (channel != NULL)
		dup2(soft_engine()->queue_descriptor(queue->engine), channel->fd);
	completions->owner = queue;
	queue->pair.context = domain->context;
	queue->pair.pd = domain;
	queue->pair.qp_num = queue->own.queue;
	return &queue->pair;
}

int
ibv_modify_qp(struct ibv_qp *pair, struct ibv_qp_attr *attributes, int mask)
{
	SoftQueue *queue = soft_queue(pair);
	VerbsAddress peer = {.queue = attributes->dest_qp_num, .mtu = queue->own.mtu, .reads = queue->own.reads};
	char detail[DETAIL_BYTES];

	if ((mask & IBV_QP_ACCESS_FLAGS) != 0 && attributes->qp_access_flags == IBV_ACCESS_REMOTE_READ)
		soft_reads_only(queue->engine);
	if ((mask & IBV_QP_STATE) == 0 || attributes->qp_state != IBV_QPS_RTR)
		return 0;
	memcpy(peer.gid, attributes->ah_attr.grh.dgid.raw, sizeof(peer.gid));
	return soft_engine()->queue_connect(queue->engine, &peer, detail) ? 0 : (errno = ECONNREFUSED);
}

int
ibv_destroy_qp(struct ibv_qp *pair)
{
	soft_engine()->queue_destroy(soft_queue(pair)->engine);
	free(pair);
	return 0;
}

/* ---- memory ---- */

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *domain = calloc(1, sizeof(*domain));

	domain->context = context;
	return domain;
}

int
ibv_dealloc_pd(struct ibv_pd *domain)
{
	free(domain);
	return 0;
}

static struct ibv_mr *
make_region(struct ibv_pd *domain, VerbsMemory *memory, bool own)
{
	SoftRegion *region = calloc(1, sizeof(*region));
	VerbsMemoryKeys keys;

	soft_engine()->memory_keys(memory, &keys);
	region->memory = memory;
	region->own = own;
	region->region.context = domain->context;
	region->region.pd = domain;
	region->region.lkey = keys.local;
	region->region.rkey = keys.remote;
	return &region->region;
}

#undef ibv_reg_mr
struct ibv_mr *
ibv_reg_mr(struct ibv_pd *domain, void *base, size_t bytes, int access)
{
	char detail[DETAIL_BYTES];
	VerbsAccess peers = (access & IBV_ACCESS_REMOTE_ATOMIC) != 0 ? VERBS_CHANGES
	                    : (access & IBV_ACCESS_REMOTE_READ) != 0 ? VERBS_READS
	                                                             : VERBS_NOTHING;
	VerbsMemory *memory =
		soft_engine()->memory_register(soft_context(domain->context)->engine, base, bytes, peers, detail);

	if (memory != NULL)
		return make_region(domain, memory, false);
	errno = ENOMEM;
	return NULL;
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *domain, void *base, size_t bytes, uint64_t iova, unsigned access)
{
	(void) iova;
	return ibv_reg_mr(domain, base, bytes, (int) access);
}

int
ibv_dereg_mr(struct ibv_mr *region)
{
	SoftRegion *own = (SoftRegion *) (void *) region;

	if (!own->own)
		soft_engine()->memory_release(own->memory);
	free(own);
	return 0;
}

static int
memcpy_to_dm(struct ibv_dm *memory, uint64_t offset, const void *data, size_t bytes)
{
	const uint8_t *words = data;

	(void) memory;
	(void) offset;
	/* It is zeroed; nobody writes anything else. */
	for (size_t i = 0; i < bytes; i++)
	{
		if (words[i] != 0)
			return EINVAL;
	}
	return 0;
}

static struct ibv_dm *
alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attributes)
{
	SoftOwnMemory *own = calloc(1, sizeof(*own));
	char detail[DETAIL_BYTES];

	own->memory.context = context;
	own->memory.memcpy_to_dm = memcpy_to_dm;
	own->engine = soft_engine()->memory_on_device(soft_context(context)->engine, attributes->length, detail);
	if (own->engine != NULL)
		return &own->memory;
	free(own);
	errno = ENOMEM;
	return NULL;
}

static int
free_dm(struct ibv_dm *memory)
{
	SoftOwnMemory *own = (SoftOwnMemory *) (void *) memory;

	soft_engine()->memory_release(own->engine);
	free(own);
	return 0;
}

static struct ibv_mr *
reg_dm_mr(struct ibv_pd *domain, struct ibv_dm *memory, uint64_t offset, size_t bytes, unsigned access)
{
	(void) offset;
	(void) bytes;
	(void) access;
	return make_region(domain, ((SoftOwnMemory *) (void *) memory)->engine, true);
}

/* ---- devices ---- */

static int
query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                struct ibv_device_attr_ex *attributes, size_t bytes)
{
	VerbsProperties properties;

	(void) input;
	memset(attributes, 0, bytes);
	soft_engine()->device_properties(soft_context(context)->engine, &properties);
	attributes->orig_attr.phys_port_cnt = PORT;
	attributes->orig_attr.max_qp_rd_atom = 16;
	attributes->orig_attr.atomic_cap = IBV_ATOMIC_HCA;
	attributes->max_dm_size = properties.lock_memory;
	return 0;
}

static int
query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attributes, size_t bytes)
{
	(void) context;
	(void) port;
	memset(attributes, 0, bytes);
	attributes->state = IBV_PORT_ACTIVE;
	attributes->active_mtu = IBV_MTU_1024;
	attributes->link_layer = IBV_LINK_LAYER_ETHERNET;
	return 0;
}

int
ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	uint32_t process = (uint32_t) getpid();

	(void) context;
	(void) port;
	(void) index;
	memset(gid, 0, sizeof(*gid));
	/* By which the engine finds the process. */
	memcpy(gid->raw, &process, sizeof(process));
	return 0;
}

ssize_t
_ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t count, uint32_t flags,
                     size_t bytes)
{
	(void) flags;
	if (count < 1)
		return 0;
	memset(entries, 0, bytes);
	entries->port_num = PORT;
	entries->gid_type = IBV_GID_TYPE_ROCE_V2;
	ibv_query_gid(context, PORT, 0, &entries->gid);
	return 1;
}

struct ibv_device **
ibv_get_device_list(int *count)
{
	struct ibv_device **list = calloc(2, sizeof(*list));

	list[0] = calloc(1, sizeof(**list));
	strcpy(list[0]->name, "soft1");
	strcpy(list[0]->ibdev_path, "/nowhere");
	*count = 1;
	return list;
}

void
ibv_free_device_list(struct ibv_device **list)
{
	for (int i = 0; list[i] != NULL; i++)
		free(list[i]);
	free(list);
}

const char *
ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
	SoftContext *soft = calloc(1, sizeof(*soft));
	struct ibv_device *own = malloc(sizeof(*own));
	char detail[DETAIL_BYTES];

	/* The list goes before the context. */
	*own = *device;
	soft->engine = soft_engine()->device_open(NULL, NULL, detail);
	soft->verbs.sz = sizeof(soft->verbs);
	soft->verbs.query_device_ex = query_device_ex;
	soft->verbs.query_port = query_port;
	soft->verbs.alloc_dm = alloc_dm;
	soft->verbs.free_dm = free_dm;
	soft->verbs.reg_dm_mr = reg_dm_mr;
	soft->verbs.context.device = own;
	soft->verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	soft->verbs.context.ops.poll_cq = poll_cq;
	soft->verbs.context.ops.req_notify_cq = req_notify_cq;
	soft->verbs.context.ops.post_send = post_send;
	return &soft->verbs.context;
}

int
ibv_close_device(struct ibv_context *context)
{
	SoftContext *soft = soft_context(context);

	soft_engine()->device_close(soft->engine);
	free(context->device);
	free(soft);
	return 0;
}

int
ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attributes)
{
	(void) context;
	(void) attributes;
	return EOPNOTSUPP;
}

#undef ibv_query_port
int
ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attributes)
{
	(void) context;
	(void) port;
	(void) attributes;
	return EOPNOTSUPP;
}

enum ibv_fork_status
ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int
ibv_fork_init(void)
{
	return 0;
}
