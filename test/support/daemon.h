/*
 * daemon.h
 *		For tests of a running msd, the program beside the test: its files, start, end, log and metrics.
 */
#ifndef SHERMAN_TEST_DAEMON_H
#define SHERMAN_TEST_DAEMON_H

#include "../environment.h"

/* Its log is no longer than this. */
#define LOG_BYTES (256u << 10)

/* Keys of 64 digits, by their digit. */
#define KEY_OLD '1'
#define KEY_NEW '2'
#define KEY_OTHER '3'
#define KEY_WRONG '4'

/* A daemon with its files, all in node.directory. */
typedef struct Daemon
{
	TestNode node;
	char config[96];
	char keys[96];     /* the daemon's */
	char tenant_a[96]; /* key files of clients */
	char tenant_b[96];
	char log[96];
	char text[LOG_BYTES]; /* the log as it was read last */
	char shm[112];        /* the other address */
	uint16_t metrics;
	bool keyed;
} Daemon;

/* Where the program is: beside `test`, the path of the program that runs. */
extern void daemon_find(const char *test);

/* Fixture of cmocka: *state is a Daemon with keys of two tenants, "a" and "b", which is not started. */
extern int daemon_prepare(void **state);
/* Its counterpart: ends it and removes its files. */
extern int daemon_remove(void **state);
/* Writes its configuration file: with keys, or for loopback without, and what stands in `more`. */
extern void daemon_configure(const Daemon *msd, const char *more);
/* Starts it with that file, and waits until it serves. */
extern void daemon_start(Daemon *msd);
/* Sends the signal; with `status` >= 0 waits for its end with that exit status, else for its death. */
extern void daemon_end(Daemon *msd, int signal_number, int status);
/* SIGHUP; waits until it has read its files again. */
extern void daemon_reload(Daemon *msd);
/* Runs msd with --drop-tenant; its exit status. */
extern int daemon_drop_tenant(const Daemon *msd, const char *tenant);
/* A file of the daemon's. */
extern void place(const Daemon *msd, const char *name, char *path, size_t bytes);
/* Writes a file anew, for its owner alone. */
extern void write_file(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line of a key file. */
extern const char *key_line(const char *tenant, char digit);
/* All of its log so far. */
extern const char *read_log(Daemon *msd);
/* Waits until the log has the text behind its first `from` bytes; where it begins. */
extern const char *wait_for_log(Daemon *msd, size_t from, const char *text);
/* The value of a sample, whose name and labels are given; -1: there is none. */
extern double metric(const Daemon *msd, const char *sample);
/* Waits until a sample has a value, at least. */
extern void wait_for_metric(const Daemon *msd, const char *sample, double value);

#endif /* SHERMAN_TEST_DAEMON_H */
