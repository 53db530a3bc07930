/*
 * msd_machine.h
 *		The machine below msd: NUMA nodes, and what kind of memory a file lies in.  Private to msd.
 *
 * Errors are found here before any memory is taken.
 */
#ifndef SHERMAN_MSD_MACHINE_H
#define SHERMAN_MSD_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Makes NUMA node `node` the place of all memory that this process takes from now on, files on tmpfs and
 * hugetlbfs included; threads begun later follow.  `strict`: memory of other nodes is never taken, else it is
 * when the node is full.  The process runs on the node's CPUs from then on, as far as it may.  False:
 * `message` (`bytes` long) says why.
 */
extern bool msd_machine_bind(uint32_t node, bool strict, char *message, size_t bytes);

/*
 * The NUMA node of the network interface that has the address of `host` (numeric, or a name).  -1: not known,
 * or the machine has but one.
 */
extern int32_t msd_machine_node_of(const char *host);

#endif /* SHERMAN_MSD_MACHINE_H */
