/*
 * verbs_mlx5.c
 *		MASKED_SWAP on the devices that libmlx5 drives: verbs have no such operation, so it is posted as a raw entry of the work
 * queue, by mlx5dv_wr_raw_wqe() of rdma-core.
 *
 * The entry, of five units of 16 bytes: control, remote address, {swap, compare}, {swap mask, compare mask}, where the old word
 * goes.  All integers are big-endian.  Opcode 0x14 is ATOMIC_MASKED_CS; its modifier says that the operation is one of the
 * extended atomics, and on 8 bytes.  The responder's queue pair has to be in extended atomic mode, which the kernel (Linux 6.1) sets if
 * the firmware offers it; nothing tells a user of verbs whether.  So what is here is a claim and no more: swap_test.h.
 *
 * libmlx5 is not linked: a host without it must load this object.  libibverbs has loaded it where a device needs it; it is looked for
 * among what is loaded, and nowhere else.
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_device.h"

/* Not every architecture has it. */
#if __has_include(<infiniband/mlx5dv.h>)
#include <infiniband/mlx5dv.h>

#define LIBRARY "libmlx5.so.1"

/* The modifier of an extended atomic on 2^3 bytes: 8 | (3 - 2). */
#define EXTENDED_ON_8_BYTES 9

#define UNIT_BYTES 16

/* A MASKED_SWAP in the work queue. */
typedef struct Mlx5Swap
{
	struct mlx5_wqe_ctrl_seg control;
	struct mlx5_wqe_raddr_seg remote;
	struct mlx5_wqe_atomic_seg values;
	struct mlx5_wqe_atomic_seg masks;
	struct mlx5_wqe_data_seg result;
} Mlx5Swap;

_Static_assert(sizeof(Mlx5Swap) == 5 * UNIT_BYTES, "as the device reads it");

struct VerbsMlx5
{
	void *library;
	bool (*is_supported)(struct ibv_device *device);
	struct ibv_qp *(*create_qp)(struct ibv_context *context, struct ibv_qp_init_attr_ex *attributes,
	                            struct mlx5dv_qp_init_attr *more);
	struct mlx5dv_qp_ex *(*qp_ex)(struct ibv_qp_ex *pair);
};

/* Sets a pointer to a function, whose place is at `function`. */
static bool
find_function(void *library, const char *name, void *function)
{
	void *symbol = dlsym(library, name);

	memcpy(function, &symbol, sizeof(symbol));
	return symbol != NULL;
}

const char *
verbs_mlx5_open(VerbsDevice *device)
{
	VerbsMlx5 *mlx5 = calloc(1, sizeof(VerbsMlx5));
	const char *reason = NULL;

	if (mlx5 == NULL)
		return "out of memory";
	mlx5->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	if (mlx5->library == NULL)
		reason = "the device has none";
	else if (!find_function(mlx5->library, "mlx5dv_is_supported", &mlx5->is_supported) ||
	         !find_function(mlx5->library, "mlx5dv_create_qp", &mlx5->create_qp) ||
	         !find_function(mlx5->library, "mlx5dv_qp_ex_from_ibv_qp_ex", &mlx5->qp_ex))
		reason = "libmlx5 is too old";
	else if (!mlx5->is_supported(device->context->device))
		reason = "the device has none";
	if (reason == NULL)
		device->mlx5 = mlx5;
	else
		verbs_mlx5_close(mlx5);
	return reason;
}

void
verbs_mlx5_close(VerbsMlx5 *mlx5)
{
	if (mlx5 == NULL)
		return;
	if (mlx5->library != NULL)
		dlclose(mlx5->library);
	free(mlx5);
}

bool
verbs_mlx5_create_pair(VerbsQueue *queue, const struct ibv_qp_init_attr *attributes)
{
	const VerbsMlx5 *mlx5 = queue->device->mlx5;
	struct ibv_qp_init_attr_ex all = {
		.send_cq = attributes->send_cq,
		.recv_cq = attributes->recv_cq,
		.cap = attributes->cap,
		.qp_type = attributes->qp_type,
		.sq_sig_all = attributes->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = queue->device->domain,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE |
	                      IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	};
	/* An old word that comes inside of the completion libmlx5 copies for the atomics of verbs only; for others it reports an error. */
	struct mlx5dv_qp_init_attr more = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
		.send_ops_flags = MLX5DV_QP_EX_WITH_RAW_WQE,
	};
	struct ibv_qp *pair = mlx5->create_qp(queue->device->context, &all, &more);

	if (pair == NULL)
		return false;
	queue->pair = pair;
	queue->raw = mlx5->qp_ex(ibv_qp_to_qp_ex(pair));
	queue->inline_bytes = all.cap.max_inline_data;
	return true;
}

static void
put_swap(const VerbsQueue *queue, const VerbsRequest *request, bool last)
{
	uint8_t flags =
		(uint8_t) ((request->fence ? MLX5_WQE_CTRL_FENCE : 0) | (last ? MLX5_WQE_CTRL_CQ_UPDATE : 0));
	Mlx5Swap entry = {
		.remote = {.raddr = htobe64(request->remote_address), .rkey = htobe32(request->remote_key)},
		.values = {.swap_add = htobe64(request->operand), .compare = htobe64(request->compare)},
		.masks = {.swap_add = htobe64(request->mask), .compare = htobe64(request->mask)},
	};

	mlx5dv_set_ctrl_seg(&entry.control, 0, MLX5_OPCODE_ATOMIC_MASKED_CS, EXTENDED_ON_8_BYTES,
	                    queue->pair->qp_num, flags, sizeof(entry) / UNIT_BYTES, 0, 0);
	mlx5dv_set_data_seg(&entry.result, request->length, request->local_key, (uintptr_t) request->buffer);
	mlx5dv_wr_raw_wqe(queue->raw, &entry);
}

/* One of the operations that verbs have. */
static void
put_plain(struct ibv_qp_ex *pair, const VerbsQueue *queue, const VerbsRequest *request)
{
	switch (request->opcode)
	{
		case VERBS_READ:
			ibv_wr_rdma_read(pair, request->remote_key, request->remote_address);
			break;
		case VERBS_WRITE:
			ibv_wr_rdma_write(pair, request->remote_key, request->remote_address);
			break;
		case VERBS_COMPARE_SWAP:
			ibv_wr_atomic_cmp_swp(pair, request->remote_key, request->remote_address, request->compare,
			                      request->operand);
			break;
		default:
			ibv_wr_atomic_fetch_add(pair, request->remote_key, request->remote_address, request->operand);
			break;
	}
	if (request->opcode == VERBS_WRITE && request->length <= queue->inline_bytes)
		ibv_wr_set_inline_data(pair, request->buffer, request->length);
	else
		ibv_wr_set_sge(pair, request->local_key, (uint64_t) (uintptr_t) request->buffer, request->length);
}

VerbsOutcome
verbs_mlx5_post(VerbsQueue *queue, const VerbsRequest *requests, int count, uint64_t id)
{
	struct ibv_qp_ex *pair;

	if (queue->raw == NULL)
		return VERBS_NONE;
	pair = ibv_qp_to_qp_ex(queue->pair);
	ibv_wr_start(pair);
	for (int i = 0; i < count; i++)
	{
		bool last = i + 1 == count;

		pair->wr_id = id;
		pair->wr_flags = (requests[i].fence ? IBV_SEND_FENCE : 0) | (last ? IBV_SEND_SIGNALED : 0);
		if (requests[i].opcode == VERBS_MASKED_SWAP)
			put_swap(queue, &requests[i], last);
		else
			put_plain(pair, queue, &requests[i]);
	}
	/* If it fails nothing was posted. */
	return ibv_wr_complete(pair) == 0 ? VERBS_DONE : VERBS_NONE;
}

#else

const char *
verbs_mlx5_open(VerbsDevice *device)
{
	(void) device;
	return "it was built without libmlx5";
}

void
verbs_mlx5_close(VerbsMlx5 *mlx5)
{
	(void) mlx5;
}

bool
verbs_mlx5_create_pair(VerbsQueue *queue, const struct ibv_qp_init_attr *attributes)
{
	(void) queue;
	(void) attributes;
	return false;
}

VerbsOutcome
verbs_mlx5_post(VerbsQueue *queue, const VerbsRequest *requests, int count, uint64_t id)
{
	(void) queue;
	(void) requests;
	(void) count;
	(void) id;
	return VERBS_NONE;
}

#endif
