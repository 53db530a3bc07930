/*
 * load.c
 *		Clients of PostgreSQL that know what they were told: rows written under faults, each compared with the answers.
 *
 *		load CONNECTION CLIENTS
 *
 * Each client writes rows of its own into the table "load" (tables.sql) and reads them by sherman's indexes.  It keeps
 * what it was told to be committed; where the connection was lost in between it asks by the primary key (a btree) once
 * it is back.  An answer that differs is a wrong row and makes the end a failure.
 *
 * Commands on stdin, each answered by one line on stdout:
 *		fault              the clock of the times to errors starts
 *		heal               the clock of the times to recovery starts
 *		recover SECONDS    waits until every client had a change begun and done after `heal`: "ok", else why not,
 *		                   and the times since `fault` and `heal` in seconds
 *		pause, resume      no statement under way; go on
 *		verify             while paused: compares the whole table, by a sequential scan and by each index
 *		quit
 * Exit status 0 if nothing was ever wrong.
 */
#define _GNU_SOURCE 1
#include "load.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A statement that takes longer hangs: far beyond each deadline that a test configures. */
#define HANG_SECONDS 120.0

Load load;

double
now_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

void
note_wrong(const char *format, ...)
{
	va_list arguments;
	char text[sizeof(load.first_wrong)];

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fprintf(stderr, "wrong: %s\n", text);
	pthread_mutex_lock(&load.mutex);
	if (load.wrong++ == 0)
		strcpy(load.first_wrong, text);
	pthread_mutex_unlock(&load.mutex);
}

PGresult *
execute(PGconn *connection, const char *statement)
{
	double begun = now_seconds();
	PGresult *result = NULL;
	PGresult *next;

	if (!PQsendQuery(connection, statement))
		return NULL;
	for (;;)
	{
		while (!PQisBusy(connection))
		{
			next = PQgetResult(connection);
			if (next == NULL)
				return result;
			PQclear(result);
			result = next;
		}
		if (now_seconds() - begun > HANG_SECONDS)
		{
			note_wrong("no answer after %.0f s: %.120s", HANG_SECONDS, statement);
			PQclear(result);
			return NULL;
		}
		poll(&(struct pollfd){.fd = PQsocket(connection), .events = POLLIN}, 1, 1000);
		if (!PQconsumeInput(connection))
		{
			PQclear(result);
			return NULL;
		}
	}
}

/* ---- commands ---- */

static void
mark(double *clock)
{
	pthread_mutex_lock(&load.mutex);
	if (clock == &load.fault)
	{
		memset(load.errors, 0, sizeof(load.errors));
		load.first_error = 0;
		load.longest = 0;
		load.statements = 0;
		load.heal = 0;
	}
	load.first_success = 0;
	*clock = now_seconds();
	pthread_mutex_unlock(&load.mutex);
	printf("ok\n");
}

/* Clients without a change begun and done since the end of the fault. */
static int
waiting_clients(void)
{
	int waiting = 0;

	for (int i = 0; i < load.count; i++)
		waiting += load.clients[i].last_change_begun < load.heal;
	return waiting;
}

static void
wait_a_moment(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 50000000;
	if (until.tv_nsec >= 1000000000)
	{
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_cond_timedwait(&load.changed, &load.mutex, &until);
}

static void
print_seconds(const char *name, double from, double to)
{
	if (from > 0 && to > 0)
		printf(" %s=%.2f", name, to - from);
}

static void
recover(double seconds)
{
	double until = now_seconds() + seconds;

	pthread_mutex_lock(&load.mutex);
	while (waiting_clients() > 0 && now_seconds() < until)
		wait_a_moment();
	if (load.wrong > 0)
		printf("wrong: %s;", load.first_wrong);
	else if (waiting_clients() > 0)
		printf("%d of %d clients have not recovered;", waiting_clients(), load.count);
	else
		printf("ok");
	printf(" statements=%llu", (unsigned long long) load.statements);
	print_seconds("first_error", load.fault, load.first_error);
	if (load.fault > 0)
		printf(" longest=%.2f", load.longest);
	print_seconds("first_success", load.heal, load.first_success);
	if (waiting_clients() == 0)
		print_seconds("all_recovered", load.heal, now_seconds());
	printf(" errors=");
	for (int i = 0; i < MAX_STATES && load.errors[i].count > 0; i++)
		printf("%s%s:%llu", i > 0 ? "," : "", load.errors[i].state,
		       (unsigned long long) load.errors[i].count);
	printf("\n");
	pthread_mutex_unlock(&load.mutex);
}

static void
set_pause(bool pause)
{
	pthread_mutex_lock(&load.mutex);
	load.pause = pause;
	pthread_cond_broadcast(&load.changed);
	for (int i = 0; pause && i < load.count; i++)
	{
		while (!load.clients[i].idle)
			pthread_cond_wait(&load.changed, &load.mutex);
	}
	pthread_mutex_unlock(&load.mutex);
	printf("ok\n");
}

/* False: no more commands. */
static bool
obey(const char *command)
{
	if (strcmp(command, "fault\n") == 0)
		mark(&load.fault);
	else if (strcmp(command, "heal\n") == 0)
		mark(&load.heal);
	else if (strncmp(command, "recover ", 8) == 0)
		recover(atof(command + 8));
	else if (strcmp(command, "pause\n") == 0)
		set_pause(true);
	else if (strcmp(command, "resume\n") == 0)
		set_pause(false);
	else if (strcmp(command, "verify\n") == 0)
		verify();
	else if (strcmp(command, "quit\n") == 0)
		return false;
	else
		printf("error: unknown command %s", command);
	fflush(stdout);
	return true;
}

int
main(int count, char **arguments)
{
	char command[128];

	load.count = count == 3 ? atoi(arguments[2]) : 0;
	if (load.count < 1 || load.count > MAX_CLIENTS)
	{
		fprintf(stderr, "usage: load CONNECTION CLIENTS\n");
		return 2;
	}
	load.connection = arguments[1];
	pthread_mutex_init(&load.mutex, NULL);
	pthread_cond_init(&load.changed, NULL);
	for (int i = 0; i < load.count; i++)
	{
		load.clients[i].number = i;
		load.clients[i].random = (uint64_t) getpid() << 8 | (uint64_t) i;
		if (pthread_create(&load.clients[i].thread, NULL, client_main, &load.clients[i]) != 0)
			return 2;
	}
	while (fgets(command, sizeof(command), stdin) != NULL && obey(command))
		;
	pthread_mutex_lock(&load.mutex);
	load.quit = true;
	pthread_cond_broadcast(&load.changed);
	pthread_mutex_unlock(&load.mutex);
	for (int i = 0; i < load.count; i++)
		pthread_join(load.clients[i].thread, NULL);
	return load.wrong > 0;
}
