/*
 * verbs.h
 *		What the client's and the memory node's halves of the verbs transport share.  Private to rdma/.
 *
 * Both halves know libibverbs only as the table in verbs_driver.h.  The queue pairs' addresses are exchanged over the control
 * connection: the client's goes with HELLO and RESET, the memory node's and the keys of its memory come with the reply.
 */
#ifndef SHERMAN_VERBS_H
#define SHERMAN_VERBS_H

#include "rdma/base/control.h"
#include "rdma/verbs/verbs_driver.h"

/* What a channel reaches: its tenant's part of NODES, its own redo slot there, and its tenant's LOCKS. */
typedef enum VerbsReach
{
	VERBS_PART,
	VERBS_REDO,
	VERBS_LOCKS,
	VERBS_WINDOWS
} VerbsReach;

/* Memory that is registered for a channel: [first, end) of a region. */
typedef struct VerbsWindow
{
	uint64_t first;
	uint64_t end;
	uint64_t base; /* remote address of `first` */
	uint32_t key;
} VerbsWindow;

/* The reply's part that belongs to verbs. */
typedef struct VerbsGrant
{
	VerbsAddress address; /* of the memory node's queue pair */
	VerbsWindow windows[VERBS_WINDOWS];
} VerbsGrant;

/* Bytes of what follows HELLO and RESET. */
#define VERBS_REQUEST_BYTES 40u

extern void verbs_put_address(FramePayload *payload, const VerbsAddress *address);
extern void verbs_get_address(FramePayload *payload, VerbsAddress *address);
extern void verbs_put_grant(FramePayload *payload, const VerbsGrant *grant);
extern void verbs_get_grant(FramePayload *payload, VerbsGrant *grant);

/*
 * The driver, loaded with its shared library at the first call: from the directory of the program or library that this code is
 * linked into, else from where the dynamic linker looks.  NULL: it is not installed, or libibverbs is not; `detail`
 * (FABRIC_DETAIL_BYTES) says why.
 */
extern const VerbsDriver *verbs_load(char *detail);

#endif /* SHERMAN_VERBS_H */
