# Sources of the fabric, relative to the top level. Included by the top-level Makefile and by test/Makefile.
RDMA_SOURCES = \
	rdma/base/buffer.c \
	rdma/base/chain.c \
	rdma/base/control_client.c \
	rdma/base/frame.c \
	rdma/base/status.c \
	rdma/base/wait.c \
	rdma/fabric/fabric.c \
	rdma/fabric/fault.c \
	rdma/memory/apply.c \
	rdma/memory/guard.c \
	rdma/memory/set_aside.c \
	rdma/memory/set_aside_remove.c \
	rdma/memory/memory.c \
	rdma/memory/pages.c \
	rdma/memory/process.c \
	rdma/memory/snapshot.c \
	rdma/proxy/proxy.c \
	rdma/server/accept.c \
	rdma/server/chains.c \
	rdma/server/channel.c \
	rdma/server/connection.c \
	rdma/server/drain.c \
	rdma/server/fencing.c \
	rdma/server/instances.c \
	rdma/server/listen.c \
	rdma/server/log.c \
	rdma/server/segment_file.c \
	rdma/server/tenant_ranges.c \
	rdma/server/requests.c \
	rdma/server/server_snapshot.c \
	rdma/server/connection_loop.c \
	rdma/server/server.c \
	rdma/server/tenant.c \
	rdma/server/units.c \
	rdma/server/verbs_domain.c \
	rdma/server/verbs_server.c \
	rdma/shm/shm.c \
	rdma/stream/key_file.c \
	rdma/stream/frame_client.c \
	rdma/stream/network.c \
	rdma/stream/stream.c \
	rdma/tcp/tcp.c \
	rdma/verbs/verbs.c \
	rdma/verbs/verbs_flight.c \
	rdma/verbs/verbs_load.c \
	rdma/workers/proxy_finish.c \
	rdma/workers/proxy_link.c \
	rdma/workers/proxy_worker.c

# sherman_verbs.so: the driver of the verbs transport, alone with libibverbs. Built where its header is.
VERBS_SOURCES = $(if $(wildcard /usr/include/infiniband/verbs.h),rdma/driver/verbs_device.c rdma/driver/verbs_queue.c rdma/driver/verbs_probe.c)
