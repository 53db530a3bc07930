# Sources of the fabric, relative to the top level. Included by the top-level Makefile and by test/Makefile.
RDMA_SOURCES = rdma/fabric.c rdma/wait.c rdma/status.c rdma/chain.c rdma/memory.c rdma/pages.c rdma/control.c rdma/apply.c rdma/shm.c \
	rdma/process.c rdma/buffer.c rdma/keys.c rdma/stream.c rdma/network.c rdma/link.c rdma/tcp.c rdma/server.c \
	rdma/object.c rdma/kept.c rdma/kept_remove.c rdma/guard.c rdma/units.c rdma/log.c \
	rdma/listen.c rdma/accept.c rdma/connection.c rdma/serve.c rdma/instance.c rdma/requests.c \
	rdma/chains.c rdma/channel.c rdma/tenant.c rdma/parts.c rdma/drain.c rdma/snapshot.c rdma/saved.c rdma/fault.c \
	rdma/proxy.c rdma/proxy_worker.c rdma/proxy_link.c rdma/proxy_finish.c \
	rdma/verbs.c rdma/verbs_flight.c rdma/verbs_load.c rdma/verbs_server.c rdma/verbs_domain.c

# sherman_verbs.so: the driver of the verbs transport, alone with libibverbs. Built where its header is.
VERBS_SOURCES = $(if $(wildcard /usr/include/infiniband/verbs.h),rdma/verbs_device.c rdma/verbs_queue.c rdma/verbs_probe.c)
