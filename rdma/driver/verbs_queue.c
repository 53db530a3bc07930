/*
 * verbs_queue.c
 *		RC queue pairs: set-up by hand, posting with one doorbell, completions.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "rdma/driver/verbs_device.h"

/*
 * 4.096 us * 2^16 = 268 ms until a packet is sent again, 6 times: about two seconds until a silent peer is an error, so that
 * a machine that stood still for a second is none.  Never 7 times: soft-RoCE takes that for "for ever".
 */
#define ACK_TIMEOUT 16
#define RETRIES 6

/* Asked for; what the device grants is used.  A cell with its unit, or an unlock's neighbor. */
#define WANTED_INLINE 128

#define HOP_LIMIT 64

/* Completion events are acknowledged in batches: each acknowledgment takes a lock. */
#define EVENT_BATCH 64

static uint32_t
random_sequence(void)
{
	uint32_t value = 0;

	if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != (ssize_t) sizeof(value))
		value = 1;
	return value & 0xffffff;
}

void
verbs_queue_destroy(VerbsQueue *queue)
{
	if (queue == NULL)
		return;
	if (queue->pair != NULL)
		ibv_destroy_qp(queue->pair);
	if (queue->completions != NULL)
	{
		if (queue->events > 0)
			ibv_ack_cq_events(queue->completions, queue->events);
		ibv_destroy_cq(queue->completions);
	}
	if (queue->channel != NULL)
		ibv_destroy_comp_channel(queue->channel);
	free(queue);
}

/* Makes the queue pair; with less inline data if the device will not have so much. */
static bool
create_pair(VerbsQueue *queue, uint32_t depth)
{
	for (uint32_t inlined = WANTED_INLINE;; inlined = 0)
	{
		struct ibv_qp_init_attr attributes = {
			.send_cq = queue->completions,
			.recv_cq = queue->completions,
			.cap = {.max_send_wr = depth, .max_send_sge = 1, .max_inline_data = inlined},
			.qp_type = IBV_QPT_RC,
			.sq_sig_all = 0,
		};

		queue->pair = ibv_create_qp(queue->device->domain, &attributes);
		if (queue->pair != NULL)
		{
			queue->inline_bytes = attributes.cap.max_inline_data;
			return true;
		}
		if (inlined == 0)
			return false;
	}
}

static bool
pair_to_init(const VerbsQueue *queue, bool reads_only)
{
	unsigned changes = reads_only ? 0 : IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_qp_attr attributes = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = 0,
		.port_num = queue->device->port_number,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | changes,
	};

	return ibv_modify_qp(queue->pair, &attributes,
	                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0;
}

VerbsQueue *
verbs_queue_create(VerbsDevice *device, const struct sockaddr *local, uint32_t depth, bool reads_only,
                   VerbsAddress *own, char *detail)
{
	VerbsQueue *queue = calloc(1, sizeof(VerbsQueue));
	uint32_t requests = depth > 0 ? depth : 1;
	union ibv_gid gid;

	if (queue == NULL)
	{
		verbs_detail(detail, "out of memory");
		return NULL;
	}
	queue->device = device;
	queue->gid_index = verbs_find_gid(device, local);
	queue->sequence = random_sequence();
	if (depth > 0)
		queue->channel = ibv_create_comp_channel(device->context);
	/* After an error each request in flight has a completion of its own. */
	if (depth == 0 || (queue->channel != NULL && fcntl(queue->channel->fd, F_SETFL, O_NONBLOCK) == 0))
		queue->completions = ibv_create_cq(device->context, (int) requests + 1, NULL, queue->channel, 0);
	if (queue->completions == NULL || !create_pair(queue, requests) || !pair_to_init(queue, reads_only) ||
	    ibv_query_gid(device->context, device->port_number, queue->gid_index, &gid) != 0)
	{
		verbs_detail(detail, "device %s: no queue pair: %s", device->properties.name, strerror(errno));
		verbs_queue_destroy(queue);
		return NULL;
	}
	*own = (VerbsAddress){
		.queue = queue->pair->qp_num,
		.sequence = queue->sequence,
		.lid = device->port.lid,
		.mtu = device->mtu,
		.reads = device->max_reads,
	};
	memcpy(own->gid, gid.raw, sizeof(own->gid));
	return queue;
}

/* The path MTU that both sides can do. */
static enum ibv_mtu
path_mtu(const VerbsQueue *queue, const VerbsAddress *peer)
{
	enum ibv_mtu mtu = queue->device->port.active_mtu;

	while (mtu > IBV_MTU_256 && 128u << mtu > peer->mtu)
		mtu--;
	return mtu;
}

static bool
pair_to_receive(const VerbsQueue *queue, const VerbsAddress *peer)
{
	struct ibv_qp_attr attributes = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = path_mtu(queue, peer),
		.dest_qp_num = peer->queue,
		.rq_psn = peer->sequence,
		.max_dest_rd_atomic = (uint8_t) queue->device->max_reads,
		.min_rnr_timer = 12,
		.ah_attr = {.dlid = (uint16_t) peer->lid, .port_num = queue->device->port_number},
	};

	if (queue->device->port.link_layer == IBV_LINK_LAYER_ETHERNET)
	{
		attributes.ah_attr.is_global = 1;
		memcpy(attributes.ah_attr.grh.dgid.raw, peer->gid, VERBS_GID_BYTES);
		attributes.ah_attr.grh.sgid_index = (uint8_t) queue->gid_index;
		attributes.ah_attr.grh.hop_limit = HOP_LIMIT;
	}
	return ibv_modify_qp(queue->pair, &attributes,
	                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0;
}

bool
verbs_queue_connect(VerbsQueue *queue, const VerbsAddress *peer, char *detail)
{
	uint32_t reads = peer->reads < queue->device->max_reads ? peer->reads : queue->device->max_reads;
	struct ibv_qp_attr attributes = {
		.qp_state = IBV_QPS_RTS,
		.timeout = ACK_TIMEOUT,
		.retry_cnt = RETRIES,
		.rnr_retry = RETRIES,
		.sq_psn = queue->sequence,
		.max_rd_atomic = (uint8_t) reads,
	};

	if (pair_to_receive(queue, peer) &&
	    ibv_modify_qp(queue->pair, &attributes,
	                  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
	                      IBV_QP_MAX_QP_RD_ATOMIC) == 0)
		return true;
	verbs_detail(detail, "device %s: a queue pair cannot be connected: %s", queue->device->properties.name,
	             strerror(errno));
	return false;
}

/* Fills one work request. */
static void
fill_request(const VerbsQueue *queue, const VerbsRequest *request, struct ibv_send_wr *work,
             struct ibv_sge *part)
{
	static const enum ibv_wr_opcode opcodes[] = {
		[VERBS_READ] = IBV_WR_RDMA_READ,
		[VERBS_WRITE] = IBV_WR_RDMA_WRITE,
		[VERBS_COMPARE_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
		[VERBS_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	};

	*part = (struct ibv_sge){
		.addr = (uint64_t) (uintptr_t) request->buffer,
		.length = request->length,
		.lkey = request->local_key,
	};
	memset(work, 0, sizeof(*work));
	work->sg_list = part;
	work->num_sge = 1;
	work->opcode = opcodes[request->opcode];
	if (request->fence)
		work->send_flags |= IBV_SEND_FENCE;
	if (request->opcode == VERBS_WRITE && request->length <= queue->inline_bytes)
		work->send_flags |= IBV_SEND_INLINE;
	if (request->opcode == VERBS_READ || request->opcode == VERBS_WRITE)
	{
		work->wr.rdma.remote_addr = request->remote_address;
		work->wr.rdma.rkey = request->remote_key;
		return;
	}
	work->wr.atomic.remote_addr = request->remote_address;
	work->wr.atomic.rkey = request->remote_key;
	work->wr.atomic.compare_add = request->opcode == VERBS_COMPARE_SWAP ? request->compare : request->operand;
	work->wr.atomic.swap = request->operand;
}

VerbsOutcome
verbs_queue_post(VerbsQueue *queue, const VerbsRequest *requests, int count, uint64_t id)
{
	struct ibv_send_wr works[VERBS_MAX_POST];
	struct ibv_sge parts[VERBS_MAX_POST];
	struct ibv_send_wr *failed = NULL;

	if (count < 1 || count > (int) VERBS_MAX_POST)
		return VERBS_NONE;
	for (int i = 0; i < count; i++)
	{
		fill_request(queue, &requests[i], &works[i], &parts[i]);
		works[i].wr_id = id;
		works[i].next = i + 1 < count ? &works[i + 1] : NULL;
	}
	works[count - 1].send_flags |= IBV_SEND_SIGNALED;
	if (ibv_post_send(queue->pair, works, &failed) == 0)
		return VERBS_DONE;
	return failed == works ? VERBS_NONE : VERBS_BROKEN;
}

VerbsOutcome
verbs_queue_poll(VerbsQueue *queue, uint64_t *id, const char **reason)
{
	struct ibv_wc completion;
	int count = ibv_poll_cq(queue->completions, 1, &completion);

	if (count == 0)
		return VERBS_NONE;
	if (count < 0)
	{
		*reason = "the completion queue is broken";
		return VERBS_BROKEN;
	}
	*id = completion.wr_id;
	*reason = ibv_wc_status_str(completion.status);
	switch (completion.status)
	{
		case IBV_WC_SUCCESS:
			return VERBS_DONE;
		case IBV_WC_RETRY_EXC_ERR:
		case IBV_WC_RNR_RETRY_EXC_ERR:
		case IBV_WC_WR_FLUSH_ERR:
		case IBV_WC_RESP_TIMEOUT_ERR:
		case IBV_WC_REM_ABORT_ERR:
			return VERBS_LOST;
		case IBV_WC_REM_ACCESS_ERR:
			return VERBS_REFUSED;
		default:
			return VERBS_BROKEN;
	}
}

bool
verbs_queue_arm(VerbsQueue *queue)
{
	struct ibv_cq *completions;
	void *context;

	while (ibv_get_cq_event(queue->channel, &completions, &context) == 0)
		queue->events++;
	if (queue->events >= EVENT_BATCH)
	{
		ibv_ack_cq_events(queue->completions, queue->events);
		queue->events = 0;
	}
	return ibv_req_notify_cq(queue->completions, 0) == 0;
}

int
verbs_queue_descriptor(const VerbsQueue *queue)
{
	return queue->channel == NULL ? -1 : queue->channel->fd;
}
