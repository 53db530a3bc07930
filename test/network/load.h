/*
 * load.h
 *		What the parts of the load under faults share (load.c).
 */
#ifndef SHERMAN_TEST_LOAD_H
#define SHERMAN_TEST_LOAD_H

#include <libpq-fe.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define MAX_CLIENTS 64

/* Row numbers of one client: its first is its number times this. */
#define SPAN 1000000000ll

#define STATE_BYTES 6 /* SQLSTATE and its end */
#define MAX_STATES 16

/* What is known of a row: its key, 0 when it is not there; two possible ones while a statement is in doubt. */
typedef struct Row
{
	uint64_t key;
	uint64_t perhaps;
	uint32_t version;
	bool doubt;
} Row;

typedef struct Client
{
	pthread_t thread;
	int number;
	PGconn *connection;
	Row *rows;
	uint32_t count;
	uint32_t room;
	uint64_t random;
	double last_change_begun;
	bool idle;
} Client;

typedef struct Load
{
	const char *connection;
	Client clients[MAX_CLIENTS];
	int count;
	pthread_mutex_t mutex; /* guards all below, and the clients' last_change_begun and idle */
	pthread_cond_t changed;
	bool pause;
	bool quit;
	double fault;
	double heal;
	double first_error; /* after the fault, 0 = none */
	double longest;     /* statement ended after the fault */
	double first_success;
	struct
	{
		char state[STATE_BYTES];
		uint64_t count;
		char message[160]; /* of the first */
	} errors[MAX_STATES];
	uint64_t statements;
	uint64_t wrong;
	char first_wrong[300];
} Load;

extern Load load;

/* Seconds of a clock that never goes back. */
extern double now_seconds(void);

/* The id of a client's row in the table. */
extern long long id_of(const Client *client, uint32_t row);

/* Counts something that must never be; the first one is told at the end. */
extern void note_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* PQexec() with a bound. NULL: the connection is lost, or it hangs, which is noted as wrong. */
extern PGresult *execute(PGconn *connection, const char *statement);

/* Thread of one client: works until load.quit. */
extern void *client_main(void *argument);

/* Compares the table with what the clients know, in each way to read it; prints the answer to the command `verify`. */
extern void verify(void);

#endif /* SHERMAN_TEST_LOAD_H */
