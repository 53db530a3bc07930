/*
 * msd_metrics.h
 *		What msd has and does, for Prometheus: text over HTTP on a loopback port, read-only.  Private to msd.
 *
 * The thread that serves clients publishes a snapshot now and then; libmicrohttpd's thread writes it out when
 * it is asked.  Neither waits for the other: the snapshot lies in atomic words under a sequence number, and a
 * reader that met a change reads again.
 */
#ifndef SHERMAN_MSD_METRICS_H
#define SHERMAN_MSD_METRICS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tree/service/service.h"

/* Where the daemon is in its life. */
typedef enum MsdState
{
	MSD_SERVING = 1,
	MSD_DRAINING
} MsdState;

/* All that a page of metrics is made of; whole words. */
typedef struct MsdSnapshot
{
	ServiceFigures figures;
	uint64_t state;        /* MsdState */
	uint64_t started_us;   /* monotonic clock */
	uint64_t published_us; /* likewise */
} MsdSnapshot;

typedef struct MsdMetrics MsdMetrics;

/*
 * Listens at `address` (host:port, a loopback address; port 0: any) with a thread of its own, which takes no
 * signals. False: `message` (`bytes` long) says why.
 */
extern bool msd_metrics_open(const char *address, const char *version, MsdMetrics **metrics, char *message,
                             size_t bytes);

/* The port that it listens at. */
extern uint16_t msd_metrics_port(const MsdMetrics *metrics);

/* Is it time for another snapshot?  Cheap: the loop that serves asks in every round. */
extern bool msd_metrics_due(const MsdMetrics *metrics);

/* Publishes it; by one thread. */
extern void msd_metrics_publish(MsdMetrics *metrics, const MsdSnapshot *snapshot);

extern void msd_metrics_close(MsdMetrics *metrics);

/* Writes the page of a snapshot as it is at now_us. */
extern void msd_metrics_write(FILE *page, const MsdSnapshot *snapshot, const char *version, uint64_t now_us);

#endif /* SHERMAN_MSD_METRICS_H */
