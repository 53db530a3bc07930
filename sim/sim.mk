# Sources of the simulator, and what programs with it are linked with: these functions of the system are those of sim/system.c.
SIM_SOURCES = sim/scheduler.c sim/events.c sim/switch.c sim/choices.c sim/explorer.c sim/accesses.c sim/heap.c sim/system.c sim/queue.c sim/transport.c
SIM_LDFLAGS = $(addprefix -Wl$(comma)--wrap=,clock_gettime nanosleep sched_yield getrandom poll epoll_wait)
# Of code that tells of its accesses.
ACCESS_HOOKS_LDFLAGS = $(addprefix -Wl$(comma)--wrap=,memcpy memmove memset memcmp)
# Of a program that comes back to a snapshot.
SNAPSHOT_LDFLAGS = $(addprefix -Wl$(comma)--wrap=,close epoll_ctl mmap munmap)
# The transport with the cost model, and the workloads on it.
COST_SOURCES = sim/cost.c sim/cost_transport.c
YCSB_SOURCES = sim/world.c sim/site.c sim/zipf.c sim/ycsb.c $(BASELINES_SOURCES)
# The papers' baselines, and what programs that leave techniques out are linked with.
BASELINES_SOURCES = sim/baselines.c
BASELINES_LDFLAGS = $(addprefix -Wl$(comma)--wrap=,access_execute_at entry_acquire entry_release_for back_off_wait leaf_survey \
	leaf_worth_rewrite insert_by_rewrite)
