/*
 * verbs_device.h
 *		What the files of sherman_verbs.so share.
 */
#ifndef SHERMAN_VERBS_DEVICE_H
#define SHERMAN_VERBS_DEVICE_H

#include <infiniband/verbs.h>

#include "rdma/verbs/verbs_driver.h"

struct VerbsDevice
{
	struct ibv_context *context;
	struct ibv_pd *domain;
	struct ibv_port_attr port;
	uint8_t port_number;
	int gid_index; /* of the address that the device was opened for */
	uint32_t mtu;
	uint32_t max_reads; /* READs and atomics in flight on one queue pair */
	VerbsProperties properties;
};

struct VerbsMemory
{
	struct ibv_mr *region;
	struct ibv_dm *device_memory; /* NULL: the caller's memory */
	uint64_t base;
};

struct VerbsQueue
{
	VerbsDevice *device;
	struct ibv_comp_channel *channel;
	struct ibv_cq *completions;
	struct ibv_qp *pair;
	int gid_index;
	uint32_t sequence;
	uint32_t inline_bytes;
	unsigned events; /* taken from the channel and not yet acknowledged */
};

/* Writes an error's text. */
extern void verbs_detail(char *detail, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* verbs_queue.c: the functions of the same names in VerbsDriver. */
extern VerbsQueue *verbs_queue_create(VerbsDevice *device, const struct sockaddr *local, uint32_t depth,
                                      bool reads_only, VerbsAddress *own, char *detail);
extern bool verbs_queue_connect(VerbsQueue *queue, const VerbsAddress *peer, char *detail);
extern void verbs_queue_destroy(VerbsQueue *queue);
extern VerbsOutcome verbs_queue_post(VerbsQueue *queue, const VerbsRequest *requests, int count, uint64_t id);
extern VerbsOutcome verbs_queue_poll(VerbsQueue *queue, uint64_t *id, const char **reason);
extern bool verbs_queue_arm(VerbsQueue *queue);
extern int verbs_queue_descriptor(const VerbsQueue *queue);

/* verbs_device.c */
/* Position of the GID for this address in the port's table; the device's own choice if it is not there. */
extern int verbs_find_gid(const VerbsDevice *device, const struct sockaddr *local);
extern VerbsMemory *verbs_memory_register(VerbsDevice *device, void *base, uint64_t bytes, VerbsAccess access,
                                          char *detail);
extern void verbs_memory_release(VerbsMemory *memory);
extern void verbs_memory_keys(const VerbsMemory *memory, VerbsMemoryKeys *keys);

/* verbs_probe.c */
extern bool verbs_probe_tears(VerbsDevice *device, uint32_t milliseconds, VerbsTears *tears, char *detail);

#endif /* SHERMAN_VERBS_DEVICE_H */
