/*
 * merge.pml
 *		Leaves that leave the tree, empty or with few entries, and are used again: tree/change/merge.c, tree/change/merge_fold.c,
 *		tree/client/quiesce.c, tree/space/freed.c.
 *
 * Three leaves tile the keys: L has [0,1), E has [1,2) and is empty, R has [2,3). Keys 0 and 2 are in from the beginning; a
 * writer inserts key 1, through a cached parent that may be old; a scan goes over all leaves and rests between two of them,
 * beginning before or after the insert; a vacuum merges E into L, with the key if it is there, and may end between its two writes; then a split of L takes
 * the node E again, for the same keys, and may end between its two writes, too.
 *
 * Proved: the key that was acknowledged is found by whoever looks for it at last, and by a scan that began behind it, once;
 * the other keys are met by the scan once each; and the scan always finds its way.
 *
 * Switches, each of which must break it:
 *	NODRAIN		the barrier is closed, but nobody waits for those inside
 *	NOEPOCH		cached parents are believed after a merge as before (else what they say of the nodes that it has touched is
 *			not: here both that key 1 can lie in)
 *	LEFTFIRST	the left neighbor is written before the parent
 *	EXACT		a scan takes only a leaf that begins where the last one ended
 *	UNFILTERED	a scan takes all of a leaf that it enters in the middle
 *	NOMOVE		entries of the leaf that goes do not go along
 */
#define L 0
#define E 1
#define R 2
#define NONE 3
#define WRITER 0
#define SCAN 1
#define SPLITTER 2

byte low[3] = {0, 1, 2};
byte high[3] = {1, 2, 3};
byte right[3] = {E, R, NONE};
byte keys[3] = {1, 0, 4};	/* bit for each key */
bool free[3];		/* on the list of nodes to be used again */
bool locked[3];
byte parent[3] = {L, E, R};	/* the child whose low fence is the number; NONE: there is none */
byte cached[3] = {L, E, R};	/* a copy of it */
byte cached_epoch;
byte epoch;
bool barrier;			/* closed */
bool inside[3];
bool acknowledged;
byte running = 3;

/* The child that a parent names for a key. */
#define CHILD(p, key)	((key >= 2 && p[2] != NONE) -> p[2] : ((key >= 1 && p[1] != NONE) -> p[1] : p[0]))

inline enter(who)
{
	atomic {
		!barrier;
		inside[who] = true
	}
}

inline leave(who)
{
	inside[who] = false
}

inline drain(who)
{
#ifdef NODRAIN
	skip
#else
	!inside[who]
#endif
}

inline cache_fill()
{
	atomic {
		cached[0] = parent[0];
		cached[1] = parent[1];
		cached[2] = parent[2];
		cached_epoch = epoch
	}
}

/* Inserts key 1. */
active proctype Writer()
{
	byte at;
	bool fresh;

	enter(WRITER);
again:
	if
	:: fresh ->
		cache_fill()
	:: !fresh ->
#ifndef NOEPOCH
		if
		:: cached_epoch != epoch ->
			cache_fill()
		:: else
		fi
#else
		skip
#endif
	fi;
	at = CHILD(cached, 1);
walk:
	atomic {
		!locked[at];
		locked[at] = true
	}
	if
	:: free[at] || low[at] > 1 ->
		locked[at] = false;
		fresh = true;
		goto again
	:: !free[at] && high[at] <= 1 ->
		atomic {
			locked[at] = false;
			at = right[at]
		}
		goto walk
	:: else
	fi;
	keys[at] = keys[at] | 2;
	atomic {
		locked[at] = false;
		acknowledged = true
	}
	leave(WRITER);
	running--
}

byte met[3];
bool before;

inline take(at, want)
{
	atomic {
#ifdef UNFILTERED
		if
		:: keys[at] & 1 -> met[0]++
		:: else
		fi;
		if
		:: keys[at] & 2 -> met[1]++
		:: else
		fi;
#else
		if
		:: (keys[at] & 1) && want == 0 -> met[0]++
		:: else
		fi;
		if
		:: (keys[at] & 2) && want <= 1 -> met[1]++
		:: else
		fi;
#endif
		if
		:: keys[at] & 4 -> met[2]++
		:: else
		fi;
		next = right[at];
		next_epoch = epoch;
		want = high[at]
	}
}

#ifdef EXACT
#define ACCEPTS(at, want)	(low[at] == want)
#else
#define ACCEPTS(at, want)	(low[at] <= want && high[at] > want)
#endif

/* From the left to the right, a leaf in each call. */
active proctype Scan()
{
	byte want, at, next, next_epoch;

	before = acknowledged;
	enter(SCAN);
	take(L, want);
	leave(SCAN);
	do
	:: want < 3 ->
		enter(SCAN);
		if
		:: next_epoch == epoch ->
			at = next
		:: else ->
			at = CHILD(parent, want)
		fi;
		do
		:: atomic { !free[at] && ACCEPTS(at, want) -> take(at, want) }
			break
		:: atomic { !free[at] && !ACCEPTS(at, want) && low[at] < want && right[at] != NONE ->
			assert(high[at] <= want);
			at = right[at] }
		:: atomic { free[at] || (!ACCEPTS(at, want) && (low[at] > want || right[at] == NONE)) ->
			/* A descent past the cache leads to the leaf, or to one on its left. */
			assert(at != CHILD(parent, want));
			at = CHILD(parent, want) }
		od;
		leave(SCAN)
	:: else ->
		break
	od;
	running--
}

#ifdef NOMOVE
#define MOVE	skip
#else
#define MOVE	keys[L] = keys[L] | keys[E]
#endif

/* The vacuum, and then the split that uses the node again. */
active proctype Vacuum()
{
	bool merged;

	barrier = true;
	drain(WRITER);
	drain(SCAN);
	if
	:: right[L] == E ->
#ifdef LEFTFIRST
		atomic { MOVE; high[L] = high[E]; right[L] = right[E] }
#else
		parent[1] = NONE;
#endif
		if
		:: true ->
#ifdef LEFTFIRST
			parent[1] = NONE;
#else
			atomic { MOVE; high[L] = high[E]; right[L] = right[E] }
#endif
			merged = true
		:: true ->
			skip	/* it ends here */
		fi
	:: else
	fi;
	epoch++;
	barrier = false;
	if
	:: merged ->
		free[E] = true;
		enter(SPLITTER);
		atomic {
			!locked[L];
			locked[L] = true
		}
		atomic {
			/* It covers what it will cover, and is linked from nowhere. */
			low[E] = 1;
			high[E] = high[L];
			right[E] = right[L];
			keys[E] = keys[L] & 2;
			free[E] = false
		}
		if
		:: true ->
			atomic {
				high[L] = 1;
				right[L] = E;
				keys[L] = keys[L] & 1;
				locked[L] = false
			}
			parent[1] = E
		:: true ->
			locked[L] = false	/* it ends here */
		fi;
		leave(SPLITTER)
	:: else
	fi;
	running--
}

active proctype Judge()
{
	byte at;

	running == 0;
	at = CHILD(parent, 1);
	do
	:: high[at] <= 1 ->
		at = right[at]
	:: else ->
		break
	od;
	assert(low[at] <= 1 && !free[at]);
	assert((keys[at] & 2) != 0);
	assert(met[0] == 1 && met[2] == 1);
	assert(met[1] <= 1);
	assert(!before || met[1] == 1)
}
