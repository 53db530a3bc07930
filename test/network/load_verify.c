/*
 * load_verify.c
 *		The whole table against what the clients of the load know.
 */
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Compares one answer with what all clients know; the number of rows that it has. */
static uint64_t
compare_rows(PGresult *answer, const char *how, bool ordered)
{
	uint64_t last = 0;

	for (int i = 0; i < PQntuples(answer); i++)
	{
		long long id = atoll(PQgetvalue(answer, i, 0));
		uint64_t key = strtoull(PQgetvalue(answer, i, 1), NULL, 10);
		const Client *client = &load.clients[id / SPAN];

		if (id < 0 || id / SPAN >= load.count || (uint32_t) (id % SPAN) >= client->count ||
		    client->rows[id % SPAN].key != key)
			note_wrong("%s finds row %lld with key %llu, which nobody was told to be there", how, id,
			           (unsigned long long) key);
		if (ordered && key <= last)
			note_wrong("%s: key %llu is not in order", how, (unsigned long long) key);
		last = key;
	}
	return (uint64_t) PQntuples(answer);
}

static PGresult *
query(PGconn *connection, const char *statement)
{
	PGresult *result = execute(connection, statement);
	ExecStatusType status = PQresultStatus(result);

	if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
		return result;
	note_wrong("%s: %s", statement, PQerrorMessage(connection));
	PQclear(result);
	return NULL;
}

/* One way to read all rows: its plan must have `plan` in it. */
static void
verify_way(PGconn *connection, const char *settings, const char *order, const char *plan, uint64_t expected)
{
	char statement[128];
	PGresult *answer;
	bool planned = false;
	uint64_t found;

	PQclear(query(connection, settings));
	sprintf(statement, "EXPLAIN SELECT id, key FROM load%s", order);
	answer = query(connection, statement);
	for (int i = 0; answer != NULL && i < PQntuples(answer); i++)
		planned = planned || strstr(PQgetvalue(answer, i, 0), plan) != NULL;
	PQclear(answer);
	if (!planned)
		note_wrong("there is no plan with %s", plan);
	answer = query(connection, statement + strlen("EXPLAIN "));
	if (answer == NULL)
		return;
	found = compare_rows(answer, plan, order[0] != '\0');
	if (found != expected)
		note_wrong("%s finds %llu rows of %llu", plan, (unsigned long long) found,
		           (unsigned long long) expected);
	PQclear(answer);
}

void
verify(void)
{
	PGconn *connection = PQconnectdb(load.connection);
	uint64_t wrong = load.wrong;
	uint64_t expected = 0;

	for (int i = 0; i < load.count; i++)
	{
		for (uint32_t j = 0; j < load.clients[i].count; j++)
		{
			expected += load.clients[i].rows[j].key != 0;
			if (load.clients[i].rows[j].doubt)
				note_wrong("row %lld is not settled", id_of(&load.clients[i], j));
		}
	}
	verify_way(connection,
	           "SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off", "",
	           "Seq Scan", expected);
	verify_way(connection, "SET enable_indexscan = on; SET enable_seqscan = off; SET enable_sort = off",
	           " ORDER BY key", "using load_key", expected);
	/* Names are keys in hexadecimal digits of the same length: their order is the same. */
	verify_way(connection, "SET enable_seqscan = off", " ORDER BY name", "using load_name", expected);
	PQfinish(connection);
	if (load.wrong == wrong)
		printf("ok rows=%llu\n", (unsigned long long) expected);
	else
		printf("wrong: %s\n", load.first_wrong);
}
