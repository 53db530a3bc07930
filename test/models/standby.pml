/*
 * standby.pml
 *		A hot standby reads its primary's index, which is ahead of the tables that it has replayed: am/standby/, am/index/removal.c.
 *
 * Two rows have one TID, one after the other: OLD, which everybody sees at first, and NEW, whose key lies left of OLD's.  Transactions
 * of the primary begin and commit in any order; one deletes OLD, and one inserts NEW when the TID is free.  Two removers determine by a
 * horizon whether OLD is dead, and remove its entry; each tells the tree's record of its pass also if there was nothing to remove, or if
 * OLD is none of the index's rows.  The tree has one leaf, or two with OLD's key in the right one, and is split and merged
 * meanwhile.  The WAL is a number; where in it something is stands with the transactions and the rows.  The standby replays it at its own
 * pace, and one query there asks for one of the two keys.  What standbys announce is any transaction at any time, so that horizons go
 * back.
 *
 * Proved: a query that is not canceled returns the row with its key if its snapshot sees it, and none with another key.
 *
 * README.md lists the switches.
 */

#ifndef XIDS
#define XIDS			2		/* transactions */
#endif
#ifndef ANNOUNCEMENTS
#define ANNOUNCEMENTS	1
#endif

#define NOTHING			0
#define OLD				1
#define NEW				2

/* The primary's transactions, and its table. */
byte		next = 1;			/* the transaction that begins next */
byte		committed[XIDS + 1];	/* where in the WAL; 0: not yet */
byte		wal;				/* its end */
byte		deleter;			/* of OLD; 0: nobody yet */
byte		inserter;			/* of NEW */
byte		pruned;				/* where in the WAL OLD goes, and what OLD's deleter did is said to be dead to everybody: the evidence */
byte		placed;				/* where in the WAL NEW comes */
bool		tid_free;

/* The tree: its leaves, and its record. */
byte		removed[2];			/* a leaf's removal position: up to here the WAL has the evidence for what was removed from it */
byte		filled[2];			/* up to here it has the rows of the leaf's entries */
bool		two;				/* there is a right leaf, with OLD's key */
bool		partial;			/* OLD is not one of the rows of the index */
bool		old_in;
bool		new_in;
byte		record_lsn;			/* 0: nothing was removed yet */
byte		record_bound;

/* What horizons come from. */
byte		announced;			/* by standbys; 0: they are silent */
byte		announcements;
byte		kept;				/* the keeper's own, in the process array; 0: nothing */
byte		bound;				/* the keeper's; 0: none */

/* The standby. */
byte		replayed;
byte		taken;				/* it: what was replayed then */

#define LEAST(a, b)		((a) < (b) -> (a) : (b))
#define GREATEST(a, b)	((a) > (b) -> (a) : (b))

#define BY(xid, lsn)		(committed[xid] != 0 && committed[xid] <= (lsn))
#if XIDS == 2
#define FIRST_OPEN(lsn)		(!BY(1, lsn) -> 1 : (!BY(2, lsn) -> 2 : 3))
#else
#define FIRST_OPEN(lsn)		(!BY(1, lsn) -> 1 : (!BY(2, lsn) -> 2 : (!BY(3, lsn) -> 3 : 4)))
#endif
#define OLDEST				FIRST_OPEN(wal)
#define XMIN				FIRST_OPEN(taken)	/* of the snapshot */

#define SEES(xid)			((xid) != 0 && BY(xid, taken))
#define IS_REPLAYED(lsn)	((lsn) != 0 && (lsn) <= replayed)
#define ROW					(IS_REPLAYED(placed) -> NEW : (IS_REPLAYED(pruned) -> NOTHING : OLD))
#define SEEN_ROW			(ROW == OLD && !SEES(deleter) -> OLD : (ROW == NEW && SEES(inserter) -> NEW : NOTHING))

/* They begin in the order of their numbers, and commit in any. */
proctype Transaction(byte me)
{
	d_step { next == me -> next++ };
	if
	:: d_step { deleter == 0 -> deleter = me }
#ifndef ONE_ROW
	:: d_step { tid_free && inserter == 0 -> inserter = me; wal++; placed = wal };
#ifndef ENTRY_LATE
		d_step { new_in = true; filled[0] = GREATEST(filled[0], placed) }
#endif
#endif
	:: true
	fi;
	d_step { wal++; committed[me] = wal };
#ifdef ENTRY_LATE
	if
	:: d_step { inserter == me -> new_in = true; filled[0] = GREATEST(filled[0], placed) }
	:: else
	fi
#endif
}

/* It goes through the process array, which takes its time. */
inline find_horizon(h)
{
	d_step
	{
		h = OLDEST;
		if
		:: announced != 0 -> h = LEAST(h, announced)
		:: else
		fi
	}
	d_step
	{
		if
		:: kept != 0 -> h = LEAST(h, kept)
		:: else
		fi
	}
}

/* The record keeps the greatest of each. */
inline note()
{
	d_step
	{
#ifdef LAST_COUNTS
		record_bound = limit;
#else
		record_bound = GREATEST(record_bound, limit);
#endif
		record_lsn = GREATEST(record_lsn, lsn)
	}
}

inline read_bound()
{
#ifdef NO_KEEPER
	find_horizon(limit)
#else
	limit = bound;
	/* Without a keeper: whatever was found was before the next transaction of all. */
	if
	:: limit == 0 -> limit = next
	:: else
	fi
#endif
}

proctype Remover()
{
	byte		horizon;
	byte		limit;
	byte		lsn;
	bool		dead;

#ifdef BOUND_FIRST
	read_bound();
#endif
	find_horizon(horizon);
	d_step
	{
		dead = (deleter != 0 && BY(deleter, wal) && deleter < horizon);
		horizon = 0
	}
#ifndef BOUND_FIRST
	read_bound();
#endif
	d_step
	{
#ifndef EVIDENCE_LATE
		if
		:: dead && pruned == 0 -> wal++; pruned = wal
		:: else
		fi;
#endif
		lsn = wal
	}
#ifdef HERE_ONLY
	if
	:: old_in -> note()
	:: else
	fi;
#else
#ifndef RECORD_LATE
	note();
#endif
#endif
	if
	:: d_step
		{
			dead && old_in ->
			old_in = false;
#ifndef POSITION_LATE
			removed[two] = GREATEST(removed[two], lsn)
#endif
		}
#ifdef POSITION_LATE
		removed[two] = GREATEST(removed[two], lsn)
#endif
	:: else
	fi;
#ifdef RECORD_LATE
	note();
#endif
	d_step
	{
		if
		:: dead ->
#ifdef EVIDENCE_LATE
			if
			:: pruned == 0 -> wal++; pruned = wal
			:: else
			fi;
#endif
			tid_free = true
		:: else
		fi;
		dead = false;
		limit = 0;
		lsn = 0
	}
}

#ifndef ONE_ROW
/* An emptied leaf goes, its neighbor is split again. */
proctype Structure()
{
end:
	do
	:: d_step
		{
			two && !old_in ->
			two = false;
#ifndef MERGE_FORGETS
			removed[0] = GREATEST(removed[0], removed[1]);
#endif
			filled[0] = GREATEST(filled[0], filled[1]);
			removed[1] = 0;
			filled[1] = 0
		}
	:: d_step
		{
			!two ->
			two = true;
#ifndef SPLIT_FORGETS
			removed[1] = removed[0];
#endif
			filled[1] = filled[0]
		}
	od
}

#endif

#if ANNOUNCEMENTS > 0
proctype Standbys()
{
end:
	do
	:: d_step { announcements < ANNOUNCEMENTS && announced != 1 -> announcements++; announced = 1 }
	:: d_step { announcements < ANNOUNCEMENTS && announced != 2 && next >= 2 -> announcements++; announced = 2 }
	:: d_step { announcements < ANNOUNCEMENTS && announced != 3 && next >= 3 -> announcements++; announced = 3 }
#if XIDS > 2
	:: d_step { announcements < ANNOUNCEMENTS && announced != 4 && next >= 4 -> announcements++; announced = 4 }
#endif
	:: d_step { announcements < ANNOUNCEMENTS && announced != 0 -> announcements++; announced = 0 }
	od
}

/* While its bound is not 0, every horizon that anybody has found before is no greater. */
proctype Keeper()
{
	byte		least;

end:
	do
#ifdef NEXT_FIRST
	:: kept == 0 && announced != 0 ->
		least = next;
		d_step { kept = announced };
#else
	:: d_step { kept == 0 && announced != 0 -> kept = announced };
#ifdef START_AT_ANNOUNCED
		least = kept;
#else
		least = next;
#endif
#endif
		d_step { bound = least; least = 0 }
	:: d_step { kept != 0 && announced > kept -> least = announced };
#ifdef MOVE_LATE
		kept = least;
#endif
#ifdef BOUND_BACK
		bound = least;
#else
		bound = GREATEST(bound, least);
#endif
		d_step { kept = least; least = 0 }
	:: kept != 0 ->
#ifdef END_LATE
		kept = 0;
		bound = 0
#else
		bound = 0;
		kept = 0
#endif
	od
}

#endif

/* The evidence ends those that may see the row. */
#define IN_THE_WAY		(replayed + 1 == pruned && XMIN <= deleter)

/* As far as it pleases.  Nobody but the query sees how far, so replay goes on in its steps. */
inline replay()
{
	do
	:: replayed < wal && !IN_THE_WAY -> replayed++
	:: IN_THE_WAY -> goto over
	:: break
	od
}

inline take_snapshot()
{
	do
	:: replayed < wal -> replayed++
	:: break
	od;
	taken = replayed
}

inline read_leaf()
{
	found = (key == OLD -> old_in : new_in);
	leaf_removed = removed[key == OLD && two];
	leaf_filled = filled[key == OLD && two]
}

inline read_record()
{
	lsn = record_lsn;
	limit = record_bound
}

inline look_up()
{
	returned = (found -> SEEN_ROW : NOTHING);
	wanted = (key == OLD -> (SEES(deleter) -> NOTHING : OLD) : (SEES(inserter) -> NEW : NOTHING));
	lacking = (wanted != NOTHING && returned == NOTHING);
	another = (returned != NOTHING && returned != key);
	assert(!lacking);
	assert(!another)
}

#ifdef REMOVALS_ONLY
#define LEAF_IS_REPLAYED	(leaf_removed <= replayed)
#else
#define LEAF_IS_REPLAYED	(leaf_removed <= replayed && leaf_filled <= replayed)
#endif

#define BOUND_IS_PAST		(limit != 0 && limit <= XMIN)

#ifdef NO_WAIT
#define RECORD_IS_REPLAYED	true
#else
#define RECORD_IS_REPLAYED	(lsn <= replayed)
#endif

/*
 * What was replayed once stays so: for what it finds so a query looks up rows at once, any time later.  Nor does it matter what comes
 * between a snapshot and the leaf, as the snapshot may be as old as it pleases.
 */
proctype Query()
{
	byte		key = NEW;
	byte		lsn;
	byte		limit;
	byte		leaf_removed;
	byte		leaf_filled;
	bool		found;
	byte		returned;
	byte		wanted;
	bool		lacking;
	bool		another;

end:
	atomic
	{
#ifdef ONE_ROW
		/* With one row nothing goes wrong with an entry that is there. */
		!old_in ->
		key = OLD;
#else
		if
		:: !partial -> key = OLD
		:: true
		fi;
#endif
#ifdef SNAPSHOT_LATE
		read_leaf()
	}
	atomic
	{
		take_snapshot()
	}
#else
		take_snapshot();
#ifdef RECORD_FIRST
		read_record()
	}
	atomic
	{
#endif
		read_leaf()
	}
#endif
	atomic
	{
		replay();
		if
		:: LEAF_IS_REPLAYED ->
			look_up();
			goto over
		:: !LEAF_IS_REPLAYED
		fi;
#ifndef RECORD_FIRST
		read_record()
#endif
	}
	do
	:: atomic
		{
			true ->
			replay();
			if
			:: BOUND_IS_PAST || RECORD_IS_REPLAYED ->
				look_up();
				goto over
			:: else
			fi
		}
	od;
over:
	atomic
	{
		key = 0;
		found = false;
		leaf_removed = 0;
		leaf_filled = 0;
		lsn = 0;
		limit = 0;
		returned = 0;
		wanted = 0;
		taken = 0;
		replayed = 0
	}
}

init
{
	if
	:: old_in = true
#ifndef ONE_ROW
	:: old_in = true; two = true
	:: partial = true
#endif
	fi;
	atomic
	{
		run Transaction(1);
		run Transaction(2);
#if XIDS > 2
		run Transaction(3);
#endif
		run Remover();
#ifdef TWO_REMOVERS
		run Remover();
#endif
#ifndef ONE_ROW
		run Structure();
#endif
#if ANNOUNCEMENTS > 0
		run Standbys();
		run Keeper();
#endif
		run Query()
	}
}
