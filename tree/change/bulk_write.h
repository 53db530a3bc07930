/*
 * bulk_write.h
 *		What a bulk load writes: for bulk.c.
 */
#ifndef SHERMAN_BULK_WRITE_H
#define SHERMAN_BULK_WRITE_H

#include "tree/internal.h"

/* A window: the image of one chain of stripes. */
#define WINDOW_BYTES (FABRIC_MAX_CHAIN * FABRIC_STRIPE_BYTES)

/* Windows that are full wait for each other, so many at most: their WRITEs are under way together. */
#define BULK_FULL_MAX 8u

/* What fills a window of its own. */
typedef enum BulkKind
{
	BULK_LEAVES,
	BULK_IMAGES, /* overflow keys */
	BULK_INNER,
	BULK_KINDS
} BulkKind;

#define BULK_WINDOWS (BULK_FULL_MAX + BULK_KINDS)

/* WRITEs to one memory node, and the memory that they are from. */
typedef struct BulkWindow
{
	uint32_t memory_node;
	int count;
	bool full;       /* it waits to be sent */
	uint64_t bytes;  /* that are used */
	uint8_t *memory; /* WINDOW_BYTES; NULL: there is none yet */
	FabricOp ops[FABRIC_MAX_CHAIN];
} BulkWindow;

typedef struct BulkWrites
{
	Tree *tree;
	const void *beside;           /* memory of the caller's, beside which windows get theirs */
	uint32_t full;                /* windows that wait to be sent */
	BulkWindow *open[BULK_KINDS]; /* that are being filled; NULL: nothing of this kind is */
	BulkWindow windows[BULK_WINDOWS];
} BulkWrites;

extern void bulk_writes_begin(BulkWrites *writes, Tree *tree, const void *beside);
/*
 * The window that is filled with this kind, with room for so many bytes and one more WRITE to this memory node: another one, if need
 * be.  TREE_NO_MEMORY, or as bulk_send(); nothing is held.
 */
extern TreeStatus bulk_window(BulkWrites *writes, BulkKind kind, uint32_t memory_node, uint64_t bytes,
                              BulkWindow **window);
/*
 * Adds a WRITE of bytes that lie in the window already; joins it to the last one where both lie in one
 * stripe.
 */
extern void bulk_write(BulkWindow *window, uint32_t memory_node, uint64_t offset, void *buffer,
                       uint32_t bytes);
/* Nothing more goes into this kind's window: it is sent with others. As bulk_window(). */
extern TreeStatus bulk_window_end(BulkWrites *writes, BulkKind kind);
/* Sends all that was added, and waits for it: as access_repeat(). */
extern TreeStatus bulk_send(BulkWrites *writes);
extern void bulk_writes_free(BulkWrites *writes);

#endif /* SHERMAN_BULK_WRITE_H */
