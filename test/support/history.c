/*
 * history.c
 *		See history.h.
 */
#include <stdlib.h>
#include <string.h>

#include "history.h"
#include "require.h"

/* All that may be true at a moment: whether the entry is there, and which of the operations under way took effect. */
typedef struct Worlds
{
	uint8_t possible[2][1u << HISTORY_CONCURRENT];
	const HistoryOp *under_way[HISTORY_CONCURRENT];
	int places; /* that are looked at */
} Worlds;

typedef struct Moment
{
	uint64_t time;
	const HistoryOp *op;
} Moment;

static int
moment_compare(const void *a, const void *b)
{
	uint64_t x = ((const Moment *) a)->time, y = ((const Moment *) b)->time;

	return (x > y) - (x < y);
}

static int
call_compare(const void *a, const void *b)
{
	uint64_t x = ((const HistoryOp *) a)->call, y = ((const HistoryOp *) b)->call;

	return (x > y) - (x < y);
}

static int
place_of(Worlds *worlds, const HistoryOp *op)
{
	int place = 0;

	while (place < worlds->places && worlds->under_way[place] != op)
		place++;
	return place;
}

static void
begin(Worlds *worlds, const HistoryOp *op)
{
	int place = place_of(worlds, NULL);

	REQUIRE(place < HISTORY_CONCURRENT, "too many operations at one time");
	worlds->under_way[place] = op;
	if (place == worlds->places)
		worlds->places++;
}

/* Lets every operation that is under way take effect wherever it may. */
static void
spread(Worlds *worlds)
{
	bool grown = true;

	while (grown)
	{
		grown = false;
		for (uint32_t there = 0; there < 2; there++)
			for (uint32_t done = 0; done < 1u << worlds->places; done++)
				for (int place = 0; worlds->possible[there][done] != 0 && place < worlds->places; place++)
				{
					const HistoryOp *op = worlds->under_way[place];
					uint32_t then =
						op == NULL || op->kind == HISTORY_LOOK ? there : op->kind == HISTORY_INSERT;

					if (op == NULL || (done >> place & 1) != 0 || (op->known && op->was_there != there) ||
					    worlds->possible[then][done | 1u << place] != 0)
						continue;
					worlds->possible[then][done | 1u << place] = 1;
					grown = true;
				}
	}
}

/* The operation has ended: only worlds in which it took effect are left. False: there are none. */
static bool
end(Worlds *worlds, const HistoryOp *op)
{
	int place = place_of(worlds, op);
	uint32_t bit = 1u << place;
	bool any = false;

	spread(worlds);
	for (uint32_t there = 0; there < 2; there++)
		for (uint32_t done = 0; done < 1u << worlds->places; done++)
		{
			uint8_t *without = &worlds->possible[there][done];
			uint8_t *with = &worlds->possible[there][done | bit];

			if ((done & bit) != 0)
				continue;
			*without = *with != 0 || (op->maybe && *without != 0);
			*with = 0;
			any = any || *without != 0;
		}
	worlds->under_way[place] = NULL;
	return any;
}

bool
history_is_linearizable(HistoryOp *ops, uint32_t count)
{
	Worlds *worlds = calloc(1, sizeof(Worlds));
	Moment *moments = malloc(2 * (size_t) count * sizeof(Moment) + 1);
	bool good = true;

	REQUIRE(worlds != NULL && moments != NULL, "no memory");
	if (count > 0)
		qsort(ops, count, sizeof(HistoryOp), call_compare);
	for (uint32_t i = 0; i < count; i++)
	{
		moments[2 * i] = (Moment){ops[i].call, &ops[i]};
		moments[2 * i + 1] = (Moment){ops[i].end, &ops[i]};
	}
	if (count > 0)
		qsort(moments, 2 * (size_t) count, sizeof(Moment), moment_compare);
	worlds->possible[0][0] = 1;
	for (uint32_t i = 0; i < 2 * count && good; i++)
	{
		if (moments[i].time == moments[i].op->call)
			begin(worlds, moments[i].op);
		else
			good = end(worlds, moments[i].op);
	}
	free(worlds);
	free(moments);
	return good;
}
