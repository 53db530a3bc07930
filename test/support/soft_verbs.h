/*
 * soft_verbs.h
 *		What the played libibverbs and the played libmlx5 tell each other.
 */
#ifndef SHERMAN_SOFT_VERBS_H
#define SHERMAN_SOFT_VERBS_H

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

/* Devices of this name have libmlx5 for a driver. */
#define SOFT_MLX5_NAME "mlx5_soft"

/* A queue pair as both see it. */
typedef struct SoftPair
{
	struct ibv_qp_ex pair; /* first: it begins with the struct ibv_qp */
	struct mlx5dv_qp_ex raw;
} SoftPair;

typedef struct SoftContext
{
	/* libmlx5's part of the work, done where the queue pairs are. */
	struct ibv_qp *(*create_raw)(struct ibv_context *context, struct ibv_qp_init_attr_ex *attributes,
	                             const struct mlx5dv_qp_init_attr *more);
	struct VerbsDevice *engine;
	struct verbs_context verbs; /* last: it ends with the struct ibv_context */
} SoftContext;

static inline SoftContext *
soft_context(struct ibv_context *context)
{
	return (SoftContext *) (void *) ((char *) context - offsetof(SoftContext, verbs.context));
}

#endif /* SHERMAN_SOFT_VERBS_H */
