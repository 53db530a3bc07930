/*
 * msd_notify.h
 *		Notifies the service manager (sd_notify(3)), by its socket protocol. Private to msd.
 *
 * Without a manager (NOTIFY_SOCKET is not set) everything here does nothing.
 */
#ifndef SHERMAN_MSD_NOTIFY_H
#define SHERMAN_MSD_NOTIFY_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

typedef struct MsdNotify
{
	int descriptor; /* -1: no manager */
	struct sockaddr_un address;
	socklen_t length;
	uint64_t watchdog_us; /* a sign of life is due so often; 0: never */
	uint64_t next_us;     /* when the next one is */
} MsdNotify;

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID from the environment. */
extern void msd_notify_open(MsdNotify *notify);

/* Sends "NAME=value" lines; never waits. A loss does no harm. */
extern void msd_notify_send(const MsdNotify *notify, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Sends the sign of life if it is due, which is at half of the watchdog's time.  To be called from the loop
 * that serves, and from nowhere else: so it is sent only while that loop turns.
 */
extern void msd_notify_alive(MsdNotify *notify);

extern void msd_notify_close(MsdNotify *notify);

#endif /* SHERMAN_MSD_NOTIFY_H */
