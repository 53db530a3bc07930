/*
 * ycsb.h
 *		The workloads of the papers on a site of the cost model: throughput and latency in virtual time.
 *
 * Keys and values have 8 bytes: the value is the entry's TID.  A part of the key space is loaded; clients
 * draw keys from all of it, read them, scan from them on, or insert them, which writes an entry that is there
 * once more.  Each client does one operation at a time.
 */
#ifndef SHERMAN_YCSB_H
#define SHERMAN_YCSB_H

#include "site.h"

typedef struct YcsbOptions
{
	SiteOptions site;
	bool
		own_trees; /* each compute server has a tree of its own, with its part of the entries, and no other one uses it */
	uint64_t seed;
	uint64_t entries; /* loaded; the key space has a quarter more */
	double theta;     /* of Zipf's law, 0: uniform */
	uint64_t ranks; /* that it is about: more than there are keys make the hot ones as hot as among so many */
	uint32_t insert_percent;
	uint32_t range_percent; /* the rest are lookups */
	uint32_t range_entries; /* of one range */
	uint64_t warm;          /* operations before what is measured, and measured ones */
	uint64_t operations;
	uint32_t operation_cost; /* nanoseconds of processor time for an operation, beside its chains */
} YcsbOptions;

/* All of what is measured; times in nanoseconds of virtual time. */
typedef struct YcsbResult
{
	uint64_t operations;
	uint64_t time;
	uint64_t p50;
	uint64_t p90;
	uint64_t p99;
	uint64_t p999;
	uint64_t longest;
	uint64_t fewest; /* operations of one client, and of another */
	uint64_t most;
	TreeCounters counters;
	uint64_t leaf_hits; /* leaves that were not read, as they were at hand */
	TreeOffloads offloads;
	CostResource busiest; /* of all cards: the resource that was busy longest, and what part of the time */
	uint32_t busiest_host;
	double busiest_part;
	double bucket_part;  /* the same of buckets of atomics */
	uint64_t hash;       /* of all that happened */
	double load_seconds; /* of processor time on this machine */
	double run_seconds;
	uint64_t simulated;   /* operations in those, with what was not measured */
	uint64_t node_memory; /* bytes of extents */
} YcsbResult;

/* A whole simulation: scheduler and model are opened and closed in here. What fails prints why and aborts. */
extern void ycsb_run(const YcsbOptions *options, YcsbResult *result);
/* Removes the files of a simulation that is not through. */
extern void ycsb_clean(void);

#endif /* SHERMAN_YCSB_H */
