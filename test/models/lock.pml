/*
 * lock.pml
 *	One lock word at a memory node, two instances of two backends each: lock, WRITE, unlock or handover, with
 *	backends that cancel, doubt and exit, and an instance that dies.
 *
 * A backend posts a chain into its channel and the memory node makes its operations land, one by one, at any
 * later time: the channel is a queue that only a kill (reset, fence) empties.  The word names the instance
 * and a ticket; the local lock table (LLT) in the instance's shared memory names the backend.  The model
 * asserts
 *
 *	- one holder: nobody is inside while another is;
 *	- a WRITE lands only while the word is the one under which it was posted, and into an empty slot;
 *	- no word is stuck for ever: no execution blocks (invalid end state), and at the end the word is free.
 *
 * README.md lists the switches.  PAIR is a scenario of its own, at the end of the file.
 */

#define NOBODY		255
#define BACKENDS	4			/* 0 and 1 belong to instance 0, 2 and 3 to instance 1 */

#ifndef PAIR

#define HANDOVERS	2			/* in a row, at most */
#ifndef FAULTS
#define FAULTS		2			/* cancels, time-outs and the death of instance 0, in one run */
#endif
#ifndef OPS0
#define OPS0		2			/* operations of each backend of instance 0, the one that may die */
#endif
#ifndef OPS3
#define OPS3		1			/* of backend 3; backend 2 has one */
#endif

mtype = { CAS_READ, READ_ONLY, CAS_ONLY, WRITE_CELL, UNLOCK };

/* The memory node.  The word: 0 is free, else ticket * 16 + tag; the tag names the instance. */
byte		word;
byte		cells;				/* entries of the one node that the word protects */
#ifdef TAG_BACKEND
#define TAG(me)			((me) + 1)
#else
#define TAG(me)			((me) / 2 + 1)
#endif
#define TAG_OF(w)		((w) % 16)

/* a channel for each backend, and what lingers of the channel before it if nobody killed that */
chan		channel[BACKENDS] = [2] of { mtype, byte, byte };
#ifdef NO_RESET
chan		lingering[BACKENDS] = [2] of { mtype, byte, byte };
#endif
byte		old[BACKENDS];		/* result of the last CAS */
byte		copy[BACKENDS];		/* result of the last READ */

#ifdef FAA_LANE
#define NEIGHBOR	1
byte		neighbor = NEIGHBOR;	/* the lane above ours: somebody else's lock */
#endif

/* the local lock tables */
typedef LockEntry
{
	byte		holder;
	byte		waiter;			/* two backends: the queue has one place */
	byte		value;			/* the word that the holder inherits, or 0: it must lock the word itself */
	byte		image;			/* the node as the last holder left it */
	byte		handovers;
	byte		ticket;
};
LockEntry	llt[2];

byte		inside = NOBODY;	/* who believes to hold the lock, and has not begun to release it */
byte		faults = FAULTS;
bool		dead;				/* instance 0 was fenced: its backends do nothing any more */
bool		dying;				/* only to keep the model small: they vanish before anybody else moves */
bool		settled;			/* nobody will die any more */
byte		finished[2];		/* backends of each instance */

hidden byte	arg1, arg2;
hidden byte	what;

/* the next operation of a channel takes effect at the memory node */
inline land(queue, me)
{
	queue?what, arg1, arg2;
	if
	:: what == CAS_READ || what == CAS_ONLY ->
		old[me] = word;
		if
		:: word == 0 -> word = arg1
		:: else
		fi;
		if
		:: what == CAS_READ -> copy[me] = cells
		:: else
		fi
	:: what == READ_ONLY -> copy[me] = cells
	:: what == WRITE_CELL ->
		assert(word == arg1);			/* no WRITE after the release */
		assert(cells == arg2);			/* no entry overwritten */
		cells++
	:: what == UNLOCK ->
		old[me] = word;
#ifdef FAA_LANE
		neighbor = neighbor - (word < arg1);
		word = word - arg1;
		assert(neighbor == NEIGHBOR)	/* no borrow from a foreign lane */
#else
		if
		:: word == arg1 -> word = 0
		:: else
		fi
#endif
	fi
}

active proctype MemoryNode() provided (!dying)
{
end:
	do
	:: d_step { nempty(channel[0]) -> land(channel[0], 0) }
	:: d_step { nempty(channel[1]) -> land(channel[1], 1) }
	:: d_step { nempty(channel[2]) -> land(channel[2], 2) }
	:: d_step { nempty(channel[3]) -> land(channel[3], 3) }
#ifdef NO_RESET
	:: d_step { nempty(lingering[0]) -> land(lingering[0], 0) }
	:: d_step { nempty(lingering[1]) -> land(lingering[1], 1) }
	:: d_step { nempty(lingering[2]) -> land(lingering[2], 2) }
	:: d_step { nempty(lingering[3]) -> land(lingering[3], 3) }
#endif
	od
}

inline kill(queue)
{
	do
	:: nempty(queue) -> queue?_, _, _
	:: empty(queue) -> break
	od
}

inline clear_entry(i)
{
	llt[i].holder = NOBODY;
	llt[i].waiter = NOBODY;
	llt[i].value = 0;
	llt[i].image = 0;
	llt[i].handovers = 0;
	llt[i].ticket = 0
}

inline fence()
{
	d_step
	{
		dead = true;
		dying = true;
		kill(channel[0]);
		kill(channel[1]);
#ifdef NO_RESET
		kill(lingering[0]);
		kill(lingering[1]);
#endif
		if
		:: inside < 2 -> inside = NOBODY
		:: else
		fi;
		old[0] = 0;
		old[1] = 0;
		copy[0] = 0;
		copy[1] = 0
	};
	d_step { finished[0] == 2 -> dying = false; clear_entry(0) }
}

inline free_words()
{
	d_step
	{
		if
#ifdef TAG_BACKEND
		:: word != 0 && TAG_OF(word) <= 2 -> word = 0
#else
		:: word != 0 && TAG_OF(word) == 1 -> word = 0
#endif
		:: else
		fi
	}
}

/* instance 0 dies, at any time or never: the memory node kills its channels, then frees its words */
active proctype Recovery()
{
	if
	:: true
	:: d_step { faults > 0 -> faults-- };
#ifdef FREE_BEFORE_FENCE
		free_words();
		fence()
#else
		fence();
		free_words()
#endif
	fi;
	settled = true
}

/* at the end */
active proctype Monitor()
{
	finished[0] + finished[1] == BACKENDS && settled -> assert(word == 0)
}

/* the LLT entry goes to the waiter, or to nobody; with the word, or (0) without */
inline pass_on(with)
{
	llt[instance].value = with;
	llt[instance].holder = llt[instance].waiter;
	llt[instance].waiter = NOBODY
}

inline enter()
{
	assert(inside == NOBODY);			/* one holder */
	inside = me
}

#define LAST			7			/* the process number of backend 1, which is started last */
#define MAY_HAND_OVER	(llt[instance].waiter != NOBODY && llt[instance].handovers < HANDOVERS)

proctype Backend(byte me; byte ops) provided (!dying || _pid >= LAST - 1)
{
	byte		instance = me / 2;
	byte		value;				/* the word as this backend locks it */
	byte		image;

	{
	skip;
next:
	/* the local queue first; the two backends are alike, so let the first one begin */
	atomic
	{
		value = 0;
		image = 0;
		if
		:: ops == 0 -> goto leave
		:: ops > 0 && (me % 2 == 0 || llt[instance].holder != NOBODY || llt[instance].ticket > 0) -> ops--
		fi;
		if
		:: llt[instance].holder == NOBODY -> llt[instance].holder = me
		:: else -> llt[instance].waiter = me
		fi
	};
wait:
	if
	:: atomic
		{
			llt[instance].holder == me && llt[instance].value != 0 ->
			value = llt[instance].value;
			image = llt[instance].image;
			enter();
			goto holding
		}
	/* at once, or after a lost CAS: back off until the word looks free */
	:: atomic
		{
			llt[instance].holder == me && llt[instance].value == 0 && word == 0 ->
			if
			:: value == 0 ->
				llt[instance].ticket++;
				value = llt[instance].ticket * 16 + TAG(me)
			:: else
			fi;
#ifdef READ_FIRST
			channel[me]!READ_ONLY(0, 0);
			channel[me]!CAS_ONLY(value, 0)
#else
			channel[me]!CAS_READ(value, 0)
#endif
		}
	/* cancel in the queue, but not of one who was chosen already: that one goes on, and passes on */
	:: atomic
		{
			faults > 0 && llt[instance].waiter == me ->
			faults--;
			llt[instance].waiter = NOBODY;
			goto next
		}
#ifdef CANCEL_LEAVES
	:: atomic { faults > 0 && llt[instance].holder == me -> faults--; goto next }
#endif
	fi;
	if
	:: atomic { empty(channel[me]) && old[me] == 0 -> image = copy[me]; copy[me] = 0; enter() }
	:: atomic { empty(channel[me]) && old[me] != 0 -> old[me] = 0; copy[me] = 0; goto wait }
	:: atomic { faults > 0 -> faults--; goto doubt }
	fi;

holding:
	if
	:: atomic { MAY_HAND_OVER -> channel[me]!WRITE_CELL(value, image); image++; goto hand_over }
	:: atomic
		{
			!MAY_HAND_OVER ->
			channel[me]!WRITE_CELL(value, image);
			channel[me]!UNLOCK(value, 0);
			inside = NOBODY;
			goto unlocking
		}
	/* cancel: nothing is written */
	:: atomic { faults > 0 -> faults--; goto hand_over }
	fi;

hand_over:
#ifndef EARLY_HANDOVER
	if
	:: empty(channel[me])
	:: atomic { faults > 0 -> faults--; goto doubt }
	fi;
#endif
	if
	:: atomic
		{
			MAY_HAND_OVER ->
#ifdef STALE_IMAGE
			llt[instance].image = image - 1;
#else
			llt[instance].image = image;
#endif
			llt[instance].handovers++;
			inside = NOBODY;
			pass_on(value);
			goto next
		}
	/* the waiter has left meanwhile, or was never there */
	:: d_step { !MAY_HAND_OVER -> channel[me]!UNLOCK(value, 0); inside = NOBODY }
	fi;

unlocking:
	if
	:: atomic
		{
			empty(channel[me]) ->
			old[me] = 0;
			copy[me] = 0;
			llt[instance].handovers = 0;
			llt[instance].image = 0;
			pass_on(0);
			goto next
		}
	:: d_step { faults > 0 -> faults-- }
	fi;

doubt:
	/*
	 * Time-out: what was posted landed, or will.  The reset makes the memory node kill the channel.  Then, on
	 * a new channel, CAS(mine -> 0): it unlocks if the word is ours still, and else does nothing.  The LLT
	 * entry is kept until its acknowledgment.
	 */
	atomic
	{
		if
		:: inside == me -> inside = NOBODY
		:: else
		fi;
#ifdef NO_RESET
		do
		:: nempty(channel[me]) -> channel[me]?what, arg1, arg2; lingering[me]!what, arg1, arg2
		:: empty(channel[me]) -> break
		od;
#else
		kill(channel[me]);
#endif
		channel[me]!UNLOCK(value, 0);
		goto unlocking
	};

leave:
	/* exit: the channel closes */
#ifdef TAG_BACKEND
	atomic
	{
		if
		:: word != 0 && TAG_OF(word) == TAG(me) -> word = 0
		:: else
		fi
	}
#else
	skip
#endif
	} unless { dead && instance == 0 };
	d_step { finished[instance]++; ops = 0; value = 0; image = 0 }
}

init
{
	atomic
	{
		llt[0].holder = NOBODY;
		llt[0].waiter = NOBODY;
		llt[1].holder = NOBODY;
		llt[1].waiter = NOBODY;
		run Backend(2, 1);
		run Backend(3, OPS3);
		run Backend(0, OPS0);
		run Backend(1, OPS0)
	}
}

#else

/*
 * PAIR: operations that lock two nodes.  Nodes 0 and 1 share a word, node 2 has its own.  A second word is
 * only tried for, and a failed try releases everything; a second node under the same word is held already,
 * which the LLT knows because it is keyed by the word.
 */
#define NODES		3
#define WORD(n)		((n) / 2)
#ifdef TWO_NODES
#define ENTRY(n)	(n)
#else
#define ENTRY(n)	WORD(n)
#endif

typedef Table
{
	byte		holder[NODES];
};

byte		word[2];			/* 0, or the number of the instance + 1 */
Table		llt[2];
byte		user[NODES];		/* who works on the node */

inline take_entry(n)
{
	d_step { llt[instance].holder[ENTRY(n)] == NOBODY -> llt[instance].holder[ENTRY(n)] = me }
}

inline take_word(n)
{
	d_step { word[WORD(n)] == 0 -> word[WORD(n)] = instance + 1 }
}

inline release(n)
{
	d_step
	{
		assert(word[WORD(n)] == instance + 1);
		word[WORD(n)] = 0
	};
	llt[instance].holder[ENTRY(n)] = NOBODY
}

proctype Backend(byte me)
{
	byte		instance = me / 2;
	byte		first, second;

	if
	:: atomic { first = 0; second = 1 }
	:: atomic { first = 1; second = 0 }
#ifndef TWO_NODES
	:: atomic { first = 0; second = 2 }
	:: atomic { first = 2; second = 1 }
#endif
	fi;

again:
	take_entry(first);
	take_word(first);
#if defined(TWO_NODES) || defined(WAIT_FOR_SECOND)
	if
	:: ENTRY(first) != ENTRY(second) -> take_entry(second); take_word(second)
	:: else
	fi;
#else
	if
	:: ENTRY(first) == ENTRY(second)
	:: ENTRY(first) != ENTRY(second) ->
		if
		:: take_entry(second);
			if
			:: take_word(second)
			:: d_step { word[WORD(second)] != 0 -> llt[instance].holder[ENTRY(second)] = NOBODY };
				release(first);
				goto again
			fi
		:: llt[instance].holder[ENTRY(second)] != NOBODY -> release(first); goto again
		fi
	fi;
#endif
	/* work on both nodes */
	d_step
	{
		assert(user[first] == 0 && user[second] == 0);	/* one holder */
		user[first] = me + 1;
		user[second] = me + 1
	};
	d_step { user[first] = 0; user[second] = 0 };
	if
	:: WORD(first) != WORD(second) -> release(second)
	:: else
	fi;
	release(first)
}

active proctype Monitor()
{
	_nr_pr == 1 -> assert(word[0] == 0 && word[1] == 0)
}

init
{
	byte		i, n;

	d_step
	{
		do
		:: i < 2 ->
			n = 0;
			do
			:: n < NODES -> llt[i].holder[n] = NOBODY; n++
			:: else -> break
			od;
			i++
		:: else -> break
		od
	};
	atomic
	{
		run Backend(0);
		run Backend(1);
		run Backend(2);
		run Backend(3)
	}
}
#endif
