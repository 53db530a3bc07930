/*
 * ownership.pml
 *		One server owns a tree, and excludes by its own lock table alone (TreeTechniques.exclusive): am/server/attach.c, tree/lock/lock.c,
 *		doc/internals/ownership.md.
 *
 * Two servers that take themselves for the same one: the original, and a clone of it or a standby that was promoted and takes over.
 * Each has shared memory with the lock of a leaf, and processes that take it, read the leaf, post the WRITE of an entry into a
 * slot that is empty, and give the lock up when that is acknowledged.  No word at the memory node says that the leaf is locked.  A
 * chain lands whenever the memory node comes to it, unless the channel's incarnation was fenced before.  A process may lose a chain, and
 * is in doubt; a server may crash, whose next shared memory begins empty, while its processes' chains are still under way; its
 * launcher alone may be killed, whose next one resumes the incarnation, or finds that it is another's.
 *
 *	- a WRITE that lands is of the server that attached last, and of its present shared memory;
 *	- it goes into a slot that is empty: no entry is overwritten;
 *	- what was acknowledged is there.
 *
 * Switches, each of which must break it:
 *	NO_FENCE		an attach leaves the channels of before alive
 *	LET_IN_FIRST	processes are let in before the memory node has fenced
 *	RESUME_ACROSS	a server resumes its incarnation behind a crash: its channels of before live on
 *	RESUME_ANY		a new launcher goes on with the memory node, whoever's incarnation is there now
 *	DOUBT_ENDS		a process in doubt gives the lock up
 *	TABLE_APIECE	two processes of a server have a lock table each
 */
#define SERVERS		2
#define PROCESSES	2			/* of each server */
#define SLOTS		3
#define NOBODY		255
#define NO_SLOT		255

#ifndef ATTACHES
#define ATTACHES	3			/* of both servers */
#endif
#ifndef CRASHES
#define CRASHES		1
#endif
#ifndef OPERATIONS
#define OPERATIONS	3			/* of all processes */
#endif

/* The memory node. */
byte incarnation;				/* that may write; 0: nobody has attached yet */
byte slot[SLOTS];				/* number of the entry; 0: empty */

/* A chain under way, of each process; it outlives its process. */
typedef Chain
{
	byte	incarnation;
	byte	life;				/* of the server's shared memory */
	byte	slot;
	byte	entry;
};

typedef Server
{
	bool	runs;
	bool	admit_node;
	byte	life;				/* counts its shared memories */
	byte	incarnation;		/* that it was granted */
	byte	locks[PROCESSES];	/* the lock: one for all, but for TABLE_APIECE */
};

typedef Process
{
	byte	step;				/* 0 idle, 1 has the lock, 2 has read, 3 has posted, 4 in doubt */
	byte	slot;
	byte	entry;
	Chain	chain;
};

Server server[SERVERS];
Process process[SERVERS * PROCESSES];
byte acknowledged;				/* bit for each entry */
byte entries;					/* given out */
byte attaches = ATTACHES;
byte crashes = CRASHES;
byte operations = OPERATIONS;
byte latest = NOBODY;			/* who attached last */

hidden byte i;

#define ME			process[s * PROCESSES + p]
#define MINE		server[s]
#define CHAIN		ME.chain
#ifdef TABLE_APIECE
#define LOCK		MINE.locks[p]
#else
#define LOCK		MINE.locks[0]
#endif
#define FREE_SLOT	(slot[0] == 0 -> 0 : (slot[1] == 0 -> 1 : (slot[2] == 0 -> 2 : NO_SLOT)))

inline drop_chain()
{
	CHAIN.incarnation = 0;
	CHAIN.life = 0;
	CHAIN.slot = 0;
	CHAIN.entry = 0
}

inline rest()
{
	ME.step = 0;
	ME.slot = 0;
	ME.entry = 0
}

proctype run_process(byte s; byte p)
{
end:
	do
	/* ---- an insert */
	:: d_step { MINE.runs && MINE.admit_node && ME.step == 0 && LOCK == 0 && operations > 0 ->
		operations--;
		LOCK = p + 1;
		ME.step = 1 }
	:: d_step { MINE.runs && ME.step == 1 && MINE.incarnation == incarnation && FREE_SLOT != NO_SLOT ->
		ME.slot = FREE_SLOT;
		entries++;
		ME.entry = entries;
		ME.step = 2 }
	:: d_step { MINE.runs && ME.step == 2 && CHAIN.incarnation == 0 ->
		CHAIN.incarnation = MINE.incarnation;
		CHAIN.life = MINE.life;
		CHAIN.slot = ME.slot;
		CHAIN.entry = ME.entry;
		ME.step = 3 }

	/* ---- the chain: it lands, is answered; or is fenced out */
	:: d_step { CHAIN.incarnation != 0 && (CHAIN.incarnation == incarnation
#ifdef NO_FENCE
			|| true
#endif
			) ->
		assert(s == latest);							/* no two owners */
		assert(!MINE.admit_node || CHAIN.life == MINE.life);	/* nor one of a former shared memory beside the present one */
		assert(slot[CHAIN.slot] == 0);					/* nothing is overwritten */
		slot[CHAIN.slot] = CHAIN.entry;
		if
		:: ME.step == 3 && ME.entry == CHAIN.entry ->
			acknowledged = acknowledged | (1 << CHAIN.entry);
			LOCK = 0;
			rest()
		:: else
		fi;
		drop_chain() }
#ifndef NO_FENCE
	:: d_step { CHAIN.incarnation != 0 && CHAIN.incarnation != incarnation ->
		if
		:: ME.step == 3 -> ME.step = 4
		:: else
		fi;
		drop_chain() }
#endif

	/* ---- doubt: the answer is lost, and the chain may still land */
	:: d_step { ME.step == 3 ->
#ifdef DOUBT_ENDS
		LOCK = 0;
		rest()
#else
		ME.step = 4
#endif
		}
	/* A reset kills the channel: nothing of it is under way any more.  The entry is there, or it is not. */
	:: d_step { MINE.runs && ME.step == 4 && MINE.incarnation == incarnation ->
		drop_chain();
		LOCK = 0;
		rest() }
	/* Who was fenced has lost what it did: its statement fails, and its lock is ended with the next attach. */
	:: d_step { MINE.runs && (ME.step == 1 || ME.step == 2) && MINE.incarnation != incarnation -> ME.step = 4 }
	od
}

/* fabric_attach(): all channels of before are dead when it returns. */
inline fence()
{
	attaches--;
	incarnation++;
	latest = s;
	MINE.incarnation = incarnation
}

/* What this server's processes held at the memory node is over: lock_node_fenced(). */
inline end_holds()
{
	i = 0;
	do
	:: i < PROCESSES ->
		process[s * PROCESSES + i].step = 0;
		process[s * PROCESSES + i].slot = 0;
		process[s * PROCESSES + i].entry = 0;
		MINE.locks[i] = 0;
		i++
	:: else -> break
	od;
	i = 0
}

proctype run_server(byte s)
{
end:
	do
	:: d_step { !MINE.runs && (attaches > 0 || MINE.life == 0) -> MINE.runs = true; MINE.life++ }
	/* ---- the launcher attaches, and lets processes in */
#ifdef RESUME_ACROSS
	:: d_step { MINE.runs && !MINE.admit_node && MINE.incarnation != 0 && MINE.incarnation == incarnation -> MINE.admit_node = true }
#endif
#ifdef LET_IN_FIRST
	:: atomic { MINE.runs && !MINE.admit_node && attaches > 0 -> end_holds(); MINE.incarnation = incarnation; MINE.admit_node = true };
		d_step { fence() }
#else
	:: d_step { MINE.runs && !MINE.admit_node && attaches > 0 -> fence(); end_holds(); MINE.admit_node = true }
#endif
	/* The launcher alone has ended.  The next one resumes the incarnation, if it is still ours. */
	:: d_step { MINE.runs && MINE.admit_node && MINE.incarnation != incarnation ->
#ifdef RESUME_ANY
		MINE.incarnation = incarnation
#else
		MINE.admit_node = false			/* sherman_node_lost() */
#endif
		}
	/* ---- a crash: shared memory begins empty, chains are under way */
	:: d_step { MINE.runs && crashes > 0 ->
		crashes--;
		MINE.runs = false;
		MINE.admit_node = false;
		end_holds() }
	od
}

/* What was acknowledged is there. */
proctype look()
{
	byte k, there;

	atomic {
		k = 0;
		do
		:: k < SLOTS && slot[k] != 0 -> there = there | (1 << slot[k]); k++
		:: k < SLOTS && slot[k] == 0 -> k++
		:: else -> break
		od;
		assert((there & acknowledged) == acknowledged)
	}
}

init
{
	atomic {
		run run_server(0);
		run run_server(1);
		run run_process(0, 0);
		run run_process(0, 1);
		run run_process(1, 0);
		run run_process(1, 1);
		run look()
	}
}
