/*
 * traffic.h
 *		What a statement has moved between this process and memory nodes across the network, for EXPLAIN (ANALYZE, BUFFERS).
 */
#ifndef SHERMAN_TRAFFIC_H
#define SHERMAN_TRAFFIC_H

#include "am/base/sherman.h"

#include "am/base/compat.h"

typedef struct ShermanTraffic
{
	uint64		leaf_hits;		/* leaves found in the cache of leaves */
	uint64		leaf_misses;
	uint64		round_trips;	/* chains */
	uint64		read_bytes;
	uint64		written_bytes;
	uint64		waited_us;		/* asleep, until a memory node or a connection worker has answered */
} ShermanTraffic;

/* As it is added up in shared memory, word by word. */
#define SHERMAN_TRAFFIC_WORDS (sizeof(ShermanTraffic) / sizeof(uint64))

/* Calls of the executor in progress that are measured: 0 = nobody wants to know.  connection.c's. */
extern int	sherman_traffic_measured;

/* All of this process until now; time only as far as sherman_traffic_measured was set. */
extern void sherman_traffic_read(ShermanTraffic *traffic);
/* Adds to the sum what came since sherman_traffic_read(). */
extern void sherman_traffic_add_since(ShermanTraffic *sum, const ShermanTraffic *before);
/* Writes it into EXPLAIN's output, in the format at hand; in text nothing if all is zero, and time with TIMING only. */
extern void sherman_traffic_explain(const ShermanTraffic *traffic, struct ExplainState *es);

#endif							/* SHERMAN_TRAFFIC_H */
