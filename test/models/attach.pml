/*
 * attach.pml
 *		A memory node is closed, fenced and opened, while a process begins and ends operations there: lock_handle_begin() in tree/lock/lock.c,
 *		tree/lock/lock_clean_up.c, operations_have_ended() in am/server/attach.c.
 *
 * The process finds the memory node open, owns its lock's entry in the local table, notes that it is busy, looks whether the memory
 * node is still open, records the hold, and ends it, or leaves it in doubt, which it settles later if it can.  Its stores are seen by
 * others only when they leave its store buffer, one after the other; an atomic exchange waits for that, as a barrier does.  The
 * launcher closes the memory node, fences it, waits until it has seen the process not busy, and ends the hold that the record tells
 * of, as one that was left.
 *
 *	- it never ends a hold of a process that is in the middle of it;
 *	- who gives the entry up has it, and nobody has it at the end.
 *
 * Switches, each of which must break it:
 *	NO_BARRIER		the process looks before others see that it is busy
 *	RECORD_FIRST	the hold is recorded before the process looks whether the memory node is open
 *	CLOSED_LATE		the memory node is closed when the launcher has looked at the process
 *	NO_LOOK			the launcher does not wait for the process
 *	RESUME_FIRST	the process is not busy any more, and then gives the entry up
 */
#define OPERATIONS	3
#define ATTACHES	2

/* What is in memory, by the number that stores in the buffer name it by. */
#define BUSY	0
#define HOLDS	1
byte memory[2];

bool closed;
bool owned;			/* the entry, by the process or for it */
bool live;			/* the process is between the record of its hold and its end */
bool done;

chan buffer = [4] of { byte, byte };

#define STORE(to, value)	buffer!to, value
#define BARRIER				empty(buffer)

/* Its owner gives the entry up: under a spin lock, whose exchange is a barrier. */
inline give_up()
{
	atomic { BARRIER; assert(owned); owned = false }
}

proctype drain()
{
	byte to, value;

end:
	do
	:: atomic { buffer?to, value -> memory[to] = value }
	od
}

/* A hold that was left in doubt earlier: its owner ends it by an exchange, if the memory node can be asked. */
inline settle(usable)
{
	usable = true;
	if
	:: BARRIER && memory[HOLDS] == 1 ->
		if
		:: !closed ->
			if
			:: atomic { memory[HOLDS] == 1 -> memory[HOLDS] = 0 }; give_up()
			:: memory[HOLDS] == 0 -> skip
			fi
		:: closed -> usable = false
		fi
	:: BARRIER && memory[HOLDS] == 0 -> skip
	fi
}

inline operation()
{
	/* place_is_ready(), and the entry. The launcher may have given up what we had left, and nobody has it then. */
	if
	:: closed -> skip
	:: !closed ->
		atomic { BARRIER; assert(!owned); owned = true };
		STORE(BUSY, 1);
#ifndef NO_BARRIER
		BARRIER;
#endif
#ifdef RECORD_FIRST
		atomic { STORE(HOLDS, 1); live = true };
#endif
		if
		:: closed ->
#ifdef RECORD_FIRST
			atomic { STORE(HOLDS, 0); live = false };
#endif
			give_up();
			STORE(BUSY, 0)
		:: !closed ->
#ifndef RECORD_FIRST
			atomic { STORE(HOLDS, 1); live = true };
#endif
			if
			/* The chain was answered: or it was not, as the channel was fenced. */
#ifdef RESUME_FIRST
			:: STORE(BUSY, 0); atomic { STORE(HOLDS, 0); live = false }; give_up()
#else
			:: atomic { STORE(HOLDS, 0); live = false }; give_up(); STORE(BUSY, 0)
#endif
			/* In doubt: the record and the entry stay. */
			:: atomic { live = false; STORE(BUSY, 0) }
			fi
		fi
	fi
}

proctype process()
{
	byte operations;
	bool usable;

	do
	:: operations < OPERATIONS ->
		operations++;
		settle(usable);
		if
		:: usable -> operation()
		:: !usable -> skip
		fi
	:: operations == OPERATIONS -> break
	od;
	BARRIER;
	done = true
}

inline look()
{
#ifndef NO_LOOK
	memory[BUSY] == 0
#else
	skip
#endif
}

inline attach()
{
#ifdef CLOSED_LATE
	look();
	closed = true;
#else
	closed = true;
	look();
#endif
	if
	:: atomic { memory[HOLDS] == 1 -> assert(!live); memory[HOLDS] = 0; assert(owned); owned = false }
	:: memory[HOLDS] == 0 -> skip
	fi;
	closed = false
}

proctype launcher()
{
	byte attaches;

	do
	:: attaches < ATTACHES -> attach(); attaches++
	:: attaches == ATTACHES -> break
	od;
	/* The last one ends what was left. */
	done;
	attach();
	assert(!owned)
}

init
{
	atomic {
		run drain();
		run process();
		run launcher()
	}
}
