/*
 * process.h
 *		Other processes: are they gone, and can they be ended.  Private to rdma/.
 */
#ifndef SHERMAN_PROCESS_H
#define SHERMAN_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* Start time of a process in clock ticks since boot; 0 if it does not exist or is not visible. */
extern uint64_t process_start_time(uint32_t pid);

/* A handle (pidfd) on a process, or -1: it is gone, is not visible, or is a later owner of the number. */
extern int process_open(uint32_t pid, uint64_t start_time);

/* Has the process ended?  Its memory is unmapped by then, also while it is a zombie. */
extern bool process_is_gone(int handle);

/* Sends SIGKILL. False: not permitted. */
extern bool process_kill(int handle);

#endif /* SHERMAN_PROCESS_H */
