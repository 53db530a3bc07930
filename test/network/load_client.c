/*
 * load_client.c
 *		One client of the load: its statements, and what it knows of its rows.
 */
#define _GNU_SOURCE 1
#include "load.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Rows that one INSERT adds at most. */
#define MAX_INSERT 3

#define RECONNECT_MS 50

static uint64_t
mix(uint64_t value)
{
	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
	return value ^ (value >> 31);
}

static uint32_t
draw(Client *client, uint32_t below)
{
	client->random += 0x9e3779b97f4a7c15ull;
	return (uint32_t) (mix(client->random) % below);
}

long long
id_of(const Client *client, uint32_t row)
{
	return client->number * SPAN + row;
}

/* The key of a row's version: positive, never 0, different for all of them. */
static uint64_t
key_of(const Client *client, uint32_t row, uint32_t version)
{
	return (mix((uint64_t) id_of(client, row) << 20 | version) >> 1) | 1;
}

static void
note_error(const char *state, const char *message)
{
	double now = now_seconds();
	int place = 0;

	pthread_mutex_lock(&load.mutex);
	while (place < MAX_STATES - 1 && load.errors[place].count > 0 &&
	       strcmp(load.errors[place].state, state) != 0)
		place++;
	if (load.errors[place].count++ == 0)
	{
		snprintf(load.errors[place].state, STATE_BYTES, "%s", state);
		snprintf(load.errors[place].message, sizeof(load.errors[place].message), "%s", message);
		fprintf(stderr, "first error %s: %s", state, message);
	}
	if (load.fault > 0 && load.first_error == 0)
		load.first_error = now;
	pthread_mutex_unlock(&load.mutex);
}

/* Only a change shows that all memory nodes are back: a query may do without. */
static void
note_success(Client *client, double begun, bool change)
{
	double now = now_seconds();

	pthread_mutex_lock(&load.mutex);
	load.statements++;
	if (change)
		client->last_change_begun = begun;
	if (change && load.heal > 0 && begun >= load.heal && load.first_success == 0)
		load.first_success = now;
	pthread_cond_broadcast(&load.changed);
	pthread_mutex_unlock(&load.mutex);
}

/* ---- statements ---- */

typedef enum Outcome
{
	DONE,
	REFUSED, /* an error: nothing has changed */
	UNKNOWN  /* the connection is lost */
} Outcome;

/* Runs a client's statement, counts it, and hands over its result after DONE. */
static Outcome
run_statement(Client *client, const char *statement, bool change, PGresult **answer)
{
	double begun = now_seconds();
	PGresult *result = execute(client->connection, statement);
	ExecStatusType status = PQresultStatus(result);
	const char *state = result == NULL ? NULL : PQresultErrorField(result, PG_DIAG_SQLSTATE);
	Outcome outcome;

	*answer = NULL;
	pthread_mutex_lock(&load.mutex);
	if (load.fault > 0 && now_seconds() - begun > load.longest)
		load.longest = now_seconds() - begun;
	pthread_mutex_unlock(&load.mutex);
	if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
	{
		note_success(client, begun, change);
		*answer = result;
		return DONE;
	}
	note_error(state != NULL ? state : "lost",
	           result != NULL ? PQresultErrorMessage(result) : PQerrorMessage(client->connection));
	outcome = result != NULL && PQstatus(client->connection) == CONNECTION_OK ? REFUSED : UNKNOWN;
	PQclear(result);
	return outcome;
}

/* A statement that changes one row from `old` to `new` key (0: absent). */
static Outcome
run_change(Client *client, const char *statement, uint32_t row, uint64_t new)
{
	PGresult *answer;
	Outcome outcome = run_statement(client, statement, true, &answer);

	if (outcome == DONE)
	{
		if (atoi(PQcmdTuples(answer)) != 1)
			note_wrong("%s rows by: %s", PQcmdTuples(answer), statement);
		client->rows[row].key = new;
	}
	else if (outcome == UNKNOWN)
	{
		client->rows[row].doubt = true;
		client->rows[row].perhaps = new;
	}
	PQclear(answer);
	return outcome;
}

static Outcome
insert_rows(Client *client)
{
	char statement[512];
	uint32_t many = 1 + draw(client, MAX_INSERT);
	PGresult *answer;
	Outcome outcome;
	int length = sprintf(statement, "INSERT INTO load VALUES ");

	if (client->count + many > client->room)
	{
		client->room = 2 * client->room + 4096;
		client->rows = realloc(client->rows, client->room * sizeof(Row));
		if (client->rows == NULL)
			abort();
	}
	for (uint32_t i = 0; i < many; i++)
	{
		unsigned long long key = key_of(client, client->count + i, 0);

		length += sprintf(statement + length, "%s(%lld, %llu, 'name %016llx')", i > 0 ? ", " : "",
		                  id_of(client, client->count + i), key, key);
	}
	outcome = run_statement(client, statement, true, &answer);
	for (uint32_t i = 0; i < many; i++)
	{
		Row row = {.version = 0};

		if (outcome == DONE)
			row.key = key_of(client, client->count, 0);
		else if (outcome == UNKNOWN)
		{
			row.doubt = true;
			row.perhaps = key_of(client, client->count, 0);
		}
		client->rows[client->count++] = row;
	}
	PQclear(answer);
	return outcome;
}

static Outcome
update_row(Client *client, uint32_t row)
{
	char statement[256];
	unsigned long long old = client->rows[row].key;
	unsigned long long new = key_of(client, row, ++client->rows[row].version);

	sprintf(statement, "UPDATE load SET key = %llu, name = 'name %016llx' WHERE key = %llu", new, new, old);
	return run_change(client, statement, row, new);
}

static Outcome
delete_row(Client *client, uint32_t row)
{
	char statement[128];

	sprintf(statement, "DELETE FROM load WHERE key = %llu", (unsigned long long) client->rows[row].key);
	return run_change(client, statement, row, 0);
}

/* Reads one row in one of three ways; each must give exactly this row. */
static Outcome
read_row(Client *client, uint32_t row)
{
	static const char *const ways[] = {
		"SELECT id, key FROM load WHERE key = %llu",
		"SELECT id, key FROM load WHERE name = 'name %016llx'",
		"SELECT id, key FROM load WHERE key >= %llu ORDER BY key LIMIT 1",
	};
	char statement[128];
	unsigned long long key = client->rows[row].key;
	PGresult *answer;
	Outcome outcome;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(statement, sizeof(statement), ways[draw(client, 3)], key);
#pragma GCC diagnostic pop
	outcome = run_statement(client, statement, false, &answer);
	if (outcome == DONE && (PQntuples(answer) != 1 || atoll(PQgetvalue(answer, 0, 0)) != id_of(client, row) ||
	                        strtoull(PQgetvalue(answer, 0, 1), NULL, 10) != key))
		note_wrong("%d rows (%s, %s), not the row %lld, by: %s", PQntuples(answer),
		           PQntuples(answer) > 0 ? PQgetvalue(answer, 0, 0) : "",
		           PQntuples(answer) > 0 ? PQgetvalue(answer, 0, 1) : "", id_of(client, row), statement);
	PQclear(answer);
	return outcome;
}

/* One statement, by chance on a row that is there. */
static Outcome
work(Client *client)
{
	uint32_t kind = draw(client, 100);
	uint32_t row = client->count > 0 ? draw(client, client->count) : 0;

	if (kind < 40 || client->count == 0 || client->rows[row].key == 0)
		return insert_rows(client);
	if (kind < 60)
		return update_row(client, row);
	if (kind < 70)
		return delete_row(client, row);
	return read_row(client, row);
}

/* ---- clients ---- */

/* Waits while paused. False: it is time to go. */
static bool
may_go_on(Client *client)
{
	bool quit;

	pthread_mutex_lock(&load.mutex);
	while (load.pause && !load.quit)
	{
		client->idle = true;
		pthread_cond_broadcast(&load.changed);
		pthread_cond_wait(&load.changed, &load.mutex);
	}
	client->idle = false;
	quit = load.quit;
	pthread_mutex_unlock(&load.mutex);
	return !quit;
}

/*
 * Whether the server is one whose answers count.  A standby that was just promoted may be deposed again before anybody has followed it, and
 * what it shows then is lost: where commits wait for a synchronous standby, this one does so first.
 */
static bool
server_counts(Client *client)
{
	PGresult *answer;

	if (run_statement(client, "SELECT pg_logical_emit_message(true, 'load', 'here')", false, &answer) != DONE)
		return false;
	PQclear(answer);
	return true;
}

static bool
in_doubt(const Client *client)
{
	for (uint32_t i = 0; i < client->count; i++)
	{
		if (client->rows[i].doubt)
			return true;
	}
	return false;
}

/* What became of the rows whose statement was cut off: asks without sherman's indexes. */
static bool
settle(Client *client)
{
	char statement[128];

	if (in_doubt(client) && !server_counts(client))
		return false;
	for (uint32_t i = 0; i < client->count; i++)
	{
		Row *row = &client->rows[i];
		PGresult *answer;
		uint64_t key;

		if (!row->doubt)
			continue;
		sprintf(statement, "SELECT key FROM load WHERE id = %lld", id_of(client, i));
		if (run_statement(client, statement, false, &answer) != DONE)
			return false;
		key = PQntuples(answer) == 1 ? strtoull(PQgetvalue(answer, 0, 0), NULL, 10) : 0;
		if (key != row->key && key != row->perhaps)
			note_wrong("row %lld has the key %llu, neither that before nor that after the lost statement",
			           id_of(client, i), (unsigned long long) key);
		row->key = key;
		row->doubt = false;
		PQclear(answer);
	}
	return true;
}

static bool
reconnect(Client *client)
{
	PGresult *answer;

	if (client->connection != NULL)
		PQfinish(client->connection);
	client->connection = PQconnectdb(load.connection);
	if (PQstatus(client->connection) != CONNECTION_OK)
		return false;
	if (run_statement(client, "SET enable_seqscan = off", false, &answer) != DONE)
		return false;
	PQclear(answer);
	return settle(client);
}

void *
client_main(void *argument)
{
	Client *client = argument;
	bool connected = false;

	while (may_go_on(client))
	{
		if (!connected)
			connected = reconnect(client);
		if (!connected)
			poll(NULL, 0, RECONNECT_MS);
		else if (work(client) == UNKNOWN)
			connected = false;
	}
	PQfinish(client->connection);
	free(client->rows);
	return NULL;
}
