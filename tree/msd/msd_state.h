/*
 * msd_state.h
 *		Shared by the files of msd. Private to msd.
 *
 * msd.c: starting, the log, signals, stopping.  msd_reload.c:  SIGHUP.  msd_config.c: the settings.
 * msd_files.c: files that were kept.  msd_machine.c:  NUMA nodes. msd_metrics.c, msd_page.c: figures over HTTP.  msd_notify.c: the service
 * manager.
 */
#ifndef SHERMAN_MSD_STATE_H
#define SHERMAN_MSD_STATE_H

#include <signal.h>

#include "tree/msd/msd_config.h"
#include "tree/msd/msd_metrics.h"
#include "tree/msd/msd_notify.h"
#include "tree/service/service.h"

typedef struct Msd
{
	int argc; /* for reading the settings again */
	char **argv;
	MsdConfig config;
	int log;         /* descriptor that log lines go to */
	FabricKeys keys; /* in force */
	Service *service;
	MsdNotify notify;
	MsdMetrics *metrics; /* NULL: none are wanted */
	uint64_t started_us;
	uint64_t snapshot_told_us;            /* when the service manager heard of it last */
	volatile sig_atomic_t stop_requested; /* times */
	volatile sig_atomic_t reload_requested;
} Msd;

/* msd_log.c */

/* One line by one write(), so that lines of several processes do not mix. `argument`: the Msd. */
extern void msd_log_line(void *argument, FabricLogLevel level, const char *message);
extern void msd_log(const Msd *msd, FabricLogLevel level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Opens the log of the settings anew, and keeps the old one if that fails: false. */
extern bool msd_log_open(Msd *msd);
extern uint64_t msd_now_us(void);

/* msd_files.c: does what --list-files or --remove-file asks for; the exit status. */
extern int msd_files(const MsdConfig *config);

/* msd_reload.c: reads settings and keys again; an error changes nothing. */
extern void msd_reload(Msd *msd);

#endif /* SHERMAN_MSD_STATE_H */
