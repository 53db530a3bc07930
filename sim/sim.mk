# Sources of the simulator, and what programs with it are linked with: these functions of the system are those of sim/system.c.
SIM_SOURCES = sim/scheduler.c sim/events.c sim/switch.c sim/choices.c sim/explorer.c sim/system.c sim/queue.c sim/transport.c
SIM_LDFLAGS = $(addprefix -Wl$(comma)--wrap=,clock_gettime nanosleep sched_yield getrandom poll epoll_wait)
# The transport with the cost model, and the workloads on it.
COST_SOURCES = sim/cost.c sim/cost_transport.c
YCSB_SOURCES = sim/world.c sim/site.c sim/zipf.c sim/ycsb.c
