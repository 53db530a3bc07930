/*
 * soft_mlx5.c
 *		libmlx5 for the devices of soft_verbs.c: a libmlx5.so.1 of its own, which that loads as libibverbs loads its drivers.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "soft_verbs.h"

bool
mlx5dv_is_supported(struct ibv_device *device)
{
	const char *swaps = getenv("SOFT_DEVICE_SWAPS");

	return strcmp(device->name, SOFT_MLX5_NAME) == 0 && (swaps == NULL || strcmp(swaps, "none") != 0);
}

struct ibv_qp *
mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attributes,
                 struct mlx5dv_qp_init_attr *more)
{
	return soft_context(context)->create_raw(context, attributes, more);
}

struct mlx5dv_qp_ex *
mlx5dv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *pair)
{
	return &((SoftPair *) pair)->raw;
}
