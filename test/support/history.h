/*
 * history.h
 *		Whether a history of operations on one entry is linearizable.
 *
 * An entry is there or not.  Each operation took effect at one moment between its call and its end, if there is an order of these
 * moments in which every result is right.  (Wing and Gong; Lowe's way to go through the history once.)
 */
#ifndef SHERMAN_TEST_HISTORY_H
#define SHERMAN_TEST_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

typedef enum HistoryKind
{
	HISTORY_INSERT, /* the entry is there then */
	HISTORY_REMOVE, /* it is not */
	HISTORY_LOOK    /* it is what it was */
} HistoryKind;

typedef struct HistoryOp
{
	uint64_t call; /* moments, each different from all others */
	uint64_t end;
	HistoryKind kind;
	bool was_there; /* what it has found, if `known` */
	bool known;
	bool maybe;        /* perhaps it took no effect at all */
	bool mark;         /* a removal that leaves the entry where it is, for those who do not heed marks */
	uint64_t evidence; /* of a removal: who is so far does not miss the entry; 0: nobody is told */
} HistoryOp;

/* Operations that may be under way at one time. */
#define HISTORY_CONCURRENT 12

/*
 * The history of an entry that was not there at first; `ops` is put in the order of calls.  Aborts when more than
 * HISTORY_CONCURRENT are under way at one time.
 */
extern bool history_is_linearizable(HistoryOp *ops, uint32_t count);

#endif /* SHERMAN_TEST_HISTORY_H */
