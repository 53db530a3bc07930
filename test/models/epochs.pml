/*
 * epochs.pml
 *		Epochs, leases and healing: am/recovery/recovery.c, am/recovery/wal_end.c, am/recovery/epochs.c, am/server/attach.c, am/index/write_guard.c, am/heal/heal.c, am/access/vacuum.c,
 *		tree/change/heal.c, tree/change/insert.c, leaf_is_unverified() in tree/node/node.h.
 *
 * A server with WAL and a table of one place, in which rows with key 0 or 1 follow one another; its control file and state file; and a
 * memory node with one tree: its epoch, the tree's record, and a leaf that may hold an entry of each key for the place.  A crash comes
 * anywhere, and takes any part of the WAL that was not flushed.  Then the server is started by us, with or without its launcher
 * coming to anything before the next end, or by others who have never heard of us; or the memory node's memory is put back to an
 * earlier one (SNAPSHOT); or a copy of the server, with the same identity, lives beside it (CLONE); or another server has its
 * WAL up to some place, is promoted at any time, and takes the tree over, whether the first one lives or not (TAKEOVER).
 *
 * Whenever a server is let in and the index is not broken:
 *
 *	- no wrong entry is visible: an entry in a leaf that is not in doubt has its row, dead or alive, with its key;
 *	- no live entry is lost: a row that is alive has its entry;
 *	- no two owners: a change of the memory is made by the server that was let in last;
 *
 * and at the end, when nobody changes anything any more, the healer has left nothing in doubt.
 *
 * README.md lists the switches.
 */

#ifdef TAKEOVER
#define CLONE
#endif
#ifdef CLONE
#define SERVERS		2
#else
#define SERVERS		1
#endif
#ifndef RECORDS
#define RECORDS		7			/* of WAL, at most */
#endif
#ifndef CRASHES
#define CRASHES		2
#endif
#ifndef STOPS
#define STOPS		1			/* ends that are clean */
#endif
#ifndef FENCES
#define FENCES		4			/* times that one of two servers attaches: they would go on for ever */
#endif
#define RUNS		(CRASHES + STOPS + 1)
#define EPOCHS		(RUNS + 1)
#define NEVER		255			/* a limit that proves everything; of the state file's end: not known yet */
#define NOBODY		255
#define LSNS		RECORDS

/* Records of the WAL: LSN i is where record i begins.  0 = nothing written. */
#define INSERT_0	1
#define INSERT_1	2
#define COMMIT		3
#define DELETE		4
#define FREE		5
#define OTHER		6
#define BORDER		7			/* a shutdown's checkpoint, or an end of recovery's */
#define CHECKPOINT	8

/* The row in the place. */
#define EMPTY		0
#define PENDING		1
#define ALIVE		2
#define DEAD		3

/* How a server came up, and what is awaited of the end of the last run's WAL. */
#define CLEAN		0
#define CRASH		1
#define NOTHING		0
#define RECOVERY	1
#define WAL_TELLS	2

typedef Server
{
	/* on its disk */
	byte		wal[RECORDS];
	byte		inserted;
	byte		flushed;
	byte		named[2];		/* metapage: nonces of the last epoch that changed the tree, and the one before */
	byte		row;			/* as the WAL up to `inserted` says; PENDING is nobody's behind a crash */
	bit			key;
	bool		shut_down;		/* control file */
	byte		checkpoint;
	/* the state file */
	byte		epoch;
	byte		nonce;			/* of this epoch, in this server */
	bool		closed;
	byte		closed_at;
	byte		seen_checkpoint;
	byte		end;			/* of the WAL of `epoch` */
	byte		past[EPOCHS];	/* ends of the epochs before */
	bool		past_clean[EPOCHS];
	byte		node_epoch;
	byte		opening;
	byte		unclean_from;
#ifdef TAKEOVER
	/* the page of history: what the state file said, and where that stands in the WAL; where the metapage's last change does */
	byte		page_at;
	byte		page_epoch;
	byte		page_nonce;
	byte		page_node_epoch;
	byte		page_opening;
	byte		page_unclean;
	byte		page_past[EPOCHS];
	bool		page_clean[EPOCHS];
	byte		named_at;
	bool		takes_over;
#endif
	/* in its memory */
	bool		runs;
	bool		ours;			/* not without our library */
	bit			start;
	byte		start_checkpoint;
	byte		awaited;
	bool		begun;			/* `epoch` is this run's */
	bool		attached_before;	/* in this run */
	byte		attach;			/* steps done */
	byte		probed;
	bool		refused;		/* the tree is of another history */
	byte		insert;
	byte		vacuum;
	byte		vacuum_lsn;
	byte		heal;
	byte		heal_gone;		/* bit for each key */
	byte		heal_lsn;
	byte		heal_generation;
};

Server		server[SERVERS];

typedef Memory
{
	byte		epoch;
	byte		mutated;		/* the tree's record */
	byte		nonce;
	byte		removal_epoch;
	byte		removal_lsn;
	bool		doubt;			/* leaves may be in doubt */
	byte		entries;		/* the leaf: bit for each key */
	byte		leaf_epoch;
	byte		leaf_lsn;
	byte		unverified;
	byte		generation;
};

Memory		memory;
bool		broken;				/* the tree, for ever */
byte		owner = NOBODY;		/* whose channels live */
byte		lock = NOBODY;		/* of the leaf */
/* a chain under the lock, on its way from server `lock` */
bool		posted;
bit			posted_key;
byte		posted_epoch;
byte		posted_lsn;

byte		nonces = 1;			/* given out: random numbers */
byte		crashes = CRASHES;
byte		stops = STOPS;
#ifdef SNAPSHOT
Memory		saved;
byte		snapshot;			/* 1: there is one, 2: it was put back */
#endif
#ifdef CLONE
bool		cloned;
byte		fences = FENCES;
#endif

hidden byte	i, floor, limit, found;

#define ME			server[s]
#define ROOM(n)		(ME.inserted + (n) <= RECORDS)
#define LET_IN		(ME.attach == 6 && owner == s && !broken && !ME.refused)
#define ROUNDED(l)	(((l) + 1) / 2 * 2)
#define MAX(a, b)	((a) > (b) -> (a) : (b))

/* ---- stamps: am/recovery/epochs.c, tree/client.h */

/* Into `found`: whether (e, l) is proven. */
inline prove(number, lsn)
{
	found = false;
	if
	:: number == ME.epoch || number == 0 -> found = true
	:: number > ME.epoch
	:: else ->
		floor = NEVER;
		i = ME.epoch - 1;
		do
		:: i >= number ->
			limit = (floor < ME.past[i] -> floor : ME.past[i]);
			if
			:: ME.past_clean[i] && ME.past[i] <= floor -> found = true
			:: else -> found = (lsn <= limit)
			fi;
			floor = limit;
			i--
		:: else -> break
		od;
		i = 0;
		floor = 0;
		limit = 0
	fi
}

/* Into `found`: whether the leaf is in doubt. */
inline judge_leaf()
{
	if
	:: memory.unverified != 0 -> found = true
	:: else -> prove(memory.leaf_epoch, memory.leaf_lsn); found = !found
	fi
}

inline end_epoch(lsn)
{
	if
#ifdef LAST_END
	:: true -> ME.end = lsn
#else
	:: ME.end == NEVER || lsn < ME.end -> ME.end = lsn
	:: else
#endif
	fi
}

/* ---- what must hold */

inline look()
{
	if
	:: LET_IN ->
		judge_leaf();
		assert(found || (memory.entries & 1) == 0 || (ME.row != EMPTY && ME.key == 0));	/* no wrong entry */
		assert(found || (memory.entries & 2) == 0 || (ME.row != EMPTY && ME.key == 1));
		assert(ME.row != ALIVE || (memory.entries & (1 << ME.key)) != 0);	/* no live row without its entry */
		found = false
	:: else
	fi
}

/* ---- WAL */

inline write(what)
{
	ME.wal[ME.inserted] = what;
	ME.inserted++
}

inline replay()
{
	i = 0;
	ME.row = EMPTY;
	ME.key = 0;
	do
	:: i < ME.inserted ->
		if
		:: ME.wal[i] == INSERT_0 -> ME.row = DEAD; ME.key = 0
		:: ME.wal[i] == INSERT_1 -> ME.row = DEAD; ME.key = 1
		:: ME.wal[i] == COMMIT -> ME.row = ALIVE
		:: ME.wal[i] == DELETE -> ME.row = DEAD
		:: ME.wal[i] == FREE -> ME.row = EMPTY; ME.key = 0
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0
}

/* What a server forgets when it ends. */
inline forget()
{
	ME.runs = false;
	ME.ours = false;
	ME.start = CLEAN;
	ME.start_checkpoint = 0;
	ME.awaited = NOTHING;
	ME.begun = false;
	ME.attached_before = false;
	ME.attach = 0;
	ME.probed = 0;
	ME.refused = false;
	ME.insert = 0;
	ME.vacuum = 0;
	ME.vacuum_lsn = 0;
	forget_heal()
}

inline forget_heal()
{
	ME.heal = 0;
	ME.heal_gone = 0;
	ME.heal_lsn = 0;
	ME.heal_generation = 0
}

/* ---- a start: judge(), sherman_wal_end_start(), recovery_ended() */

#define CLOSED		(ME.closed && ME.checkpoint == (ME.shut_down -> ME.closed_at : ME.seen_checkpoint))

inline start_ours()
{
	ME.ours = true;
	ME.start_checkpoint = ME.checkpoint;
	if
	:: CLOSED -> ME.start = CLEAN
#ifdef TRUST_SHUTDOWN
	:: !CLOSED && ME.shut_down ->
		ME.start = CLEAN;
		ME.closed = true;
		ME.closed_at = ME.checkpoint
	:: !CLOSED && !ME.shut_down && ME.closed -> broken = true
#else
	:: ME.closed && !CLOSED -> broken = true		/* others ran it: unproven */
#endif
	:: else ->
		ME.start = CRASH;
		if
		:: ME.checkpoint != ME.seen_checkpoint -> ME.awaited = WAL_TELLS
		:: ME.checkpoint == ME.seen_checkpoint && !ME.shut_down ->
			if
			:: ME.inserted > ME.checkpoint + 1 -> end_epoch(ME.inserted)
			:: else -> ME.awaited = RECOVERY	/* it calls nobody */
			fi
		:: else -> end_epoch(ME.checkpoint)
		fi
	fi
}

#ifdef TAKEOVER
/* sherman_history_write() */
inline write_page()
{
	ME.flushed = ME.inserted;
	ME.page_at = ME.inserted;
	ME.page_epoch = ME.epoch;
	ME.page_nonce = ME.nonce;
	ME.page_node_epoch = ME.node_epoch;
	ME.page_opening = ME.opening;
	ME.page_unclean = ME.unclean_from;
	i = 0;
	do
	:: i < EPOCHS -> ME.page_past[i] = ME.past[i]; ME.page_clean[i] = ME.past_clean[i]; i++
	:: else -> break
	od;
	i = 0
}

/* The end of recovery of who takes over: sherman_take_over_at(), adopt() */
inline take_over()
{
	ME.takes_over = false;
	ME.ours = true;
	ME.start = CRASH;
	ME.start_checkpoint = ME.checkpoint;
	i = ME.page_at;
#ifndef CUT_AT_END
	do
	:: i < ME.inserted && ME.wal[i] != BORDER -> i++
	:: else -> break
	od;
#else
	i = ME.inserted;
#endif
	end_epoch(i);
	i = 0
}
#else
#define write_page()	skip
#endif

inline recover()
{
	if
	:: !ME.shut_down -> ME.checkpoint = ME.inserted; write(BORDER); ME.flushed = ME.inserted
	:: else -> ME.shut_down = false
	fi;
	ME.runs = true
}

/* ---- the launcher: settle(), sherman_wal_end_round() */

inline settle()
{
	if
#ifdef BEFORE_CHECKPOINT
	:: ME.awaited == RECOVERY -> end_epoch(ME.start_checkpoint)
#else
	:: ME.awaited == RECOVERY -> end_epoch(ME.start_checkpoint + 1)
#endif
	:: else ->
		i = ME.seen_checkpoint + 1;
		do
		:: i < ME.inserted && ME.wal[i] != BORDER -> i++
		:: else -> break
		od;
		if
		:: i < ME.inserted -> end_epoch(i)
		:: else -> end_epoch(0)
		fi;
		i = 0
	fi;
	ME.awaited = NOTHING
}

/* sherman_recovery_begin() */
inline begin()
{
	if
	:: !ME.begun ->
		if
		:: ME.start == CRASH && ME.unclean_from == 0 -> ME.unclean_from = ME.epoch
		:: else
		fi;
		if
		:: ME.closed -> end_epoch(ME.closed_at); ME.past_clean[ME.epoch] = (ME.end == ME.closed_at)
		:: else
		fi;
		ME.past[ME.epoch] = (ME.end == NEVER -> 0 : ME.end);
		ME.epoch++;
		ME.nonce = nonces;
		nonces++;
		ME.closed = false;
		ME.closed_at = 0;
		ME.end = NEVER;
		ME.seen_checkpoint = ME.checkpoint;
		ME.begun = true
	:: else
	fi
}

/* sherman_recovery_check() of what was probed: into `found`, 1 believed, 0 not, 2 another server is there. */
inline check()
{
	if
#ifdef ANY_AGE
	:: true -> found = 1
#else
#ifdef OWNER_GOES_ON
	:: s == 1 && ME.probed >= ME.node_epoch -> found = 1
#endif
	:: ME.probed >= ME.node_epoch && ME.probed <= MAX(ME.node_epoch, ME.opening) -> found = 1
	:: ME.attached_before && ME.probed > MAX(ME.node_epoch, ME.opening) -> found = 2
	:: else -> found = 0
#endif
	fi
}

/* judge_record(), same_history() */
inline take_inventory()
{
#ifndef NO_NONCE
	if
	:: memory.nonce != ME.named[0] && memory.nonce != ME.named[1] && memory.nonce != ME.nonce -> ME.refused = true
	:: else
	fi;
#endif
	if
	:: ME.unclean_from != 0 && memory.mutated >= ME.unclean_from ->
		prove(memory.removal_epoch, memory.removal_lsn);
#ifndef CLONE
		assert(found);						/* no tree is given up */
#endif
		if
		:: found -> memory.doubt = true
		:: else -> broken = true
		fi;
		found = false
	:: else
	fi
}

/* All channels of before are dead, what was on its way is dropped, words are free. */
inline fence()
{
#ifdef CLONE
	fences--;
#endif
	owner = s;
#ifndef NO_FENCE
	posted = false;
	posted_key = 0;
	posted_epoch = 0;
	posted_lsn = 0;
#endif
	lock = NOBODY
}

/* ---- changes of the leaf */

/* mark_mutated() */
inline adopt()
{
	if
	:: memory.mutated < ME.epoch ->
		ME.named[0] = memory.nonce;
		ME.named[1] = ME.nonce;
		ME.flushed = ME.inserted;
#ifdef TAKEOVER
		ME.named_at = ME.inserted;
#endif
		memory.mutated = ME.epoch;
		memory.nonce = ME.nonce
	:: else
	fi
}

/* insert_set_wal_position() */
inline stamp_leaf(number, lsn)
{
	if
	:: memory.leaf_epoch < number || (memory.leaf_epoch == number && memory.leaf_lsn < lsn) ->
#ifndef STAMP_CLEARS
		if
		:: memory.unverified == 0 ->
			judge_leaf();
			if
			:: found -> memory.unverified = memory.leaf_epoch
			:: else
			fi
		:: else
		fi;
		found = false;
#else
		memory.unverified = 0;
#endif
		memory.leaf_epoch = number;
		memory.leaf_lsn = lsn
	:: else
	fi
}

inline land()
{
	if
	:: (memory.entries & (1 << posted_key)) != 0 ->
#ifndef SILENT_HIT
		stamp_leaf(posted_epoch, posted_lsn);
		memory.generation++
#else
		skip
#endif
	:: else ->
		stamp_leaf(posted_epoch, posted_lsn);
		memory.entries = memory.entries | (1 << posted_key)
	fi;
	posted = false;
	posted_key = 0;
	posted_epoch = 0;
	posted_lsn = 0;
	lock = NOBODY
}

inline note_removal(lsn)
{
	memory.removal_epoch = ME.epoch;
	memory.removal_lsn = lsn
}

/* The entries that have no row, of those that the healer looked up. */
#ifdef HEAL_PART
#define LOOKED_UP	1
#else
#define LOOKED_UP	3
#endif
#define HAS_ROW		(ME.row == PENDING || ME.row == ALIVE)

proctype Run(byte s)
{
	do

	/* ---- starts and ends */
	:: d_step
		{
			!ME.runs && ME.epoch != 0 && !broken && ROOM(2) ->
#ifdef TAKEOVER
			if
			:: ME.takes_over -> take_over()
			:: else -> start_ours()
			fi;
#else
			start_ours();
#endif
			recover();
			look()
		}
#if !defined(CLONE) && !defined(SNAPSHOT)
	:: d_step { !ME.runs && !broken && ROOM(2) && ME.epoch != 0 && crashes + stops > 0 -> recover() }
#endif
#if CRASHES > 0
	:: atomic
		{
			ME.runs && crashes > 0 && !broken ->
			crashes--;
			do
			:: ME.inserted > ME.flushed -> ME.inserted--; ME.wal[ME.inserted] = 0
			:: break
			od;
			ME.flushed = ME.inserted;
			forget();
			replay()
		}
#endif
#if STOPS > 0
	:: d_step
		{
			ME.runs && stops > 0 && !broken && ME.insert + ME.vacuum + ME.heal == 0 && ROOM(1) ->
			stops--;
			ME.checkpoint = ME.inserted;
			write(BORDER);
			ME.flushed = ME.inserted;
			ME.shut_down = true;
			if
			:: ME.ours ->
				if
				:: ME.begun || ME.start == CLEAN -> ME.closed = true; ME.closed_at = ME.checkpoint
				:: else
				fi;
				if
				:: ME.awaited == NOTHING -> ME.seen_checkpoint = ME.checkpoint
				:: else
				fi
			:: else
			fi;
			if
			:: owner == s && ME.attach >= 2 -> owner = NOBODY
			:: else
			fi;
			forget()
		}
#endif

	/* ---- the launcher */
	:: d_step { ME.runs && ME.ours && ME.awaited != NOTHING && !broken -> settle() }
	:: d_step
		{
			ME.runs && ME.ours && ME.awaited == NOTHING && ME.seen_checkpoint != ME.checkpoint && !broken ->
			ME.seen_checkpoint = ME.checkpoint
		}
	:: d_step
		{
			ME.runs && ME.ours && ME.awaited == NOTHING && ME.attach == 0 && !broken ->
			ME.probed = memory.epoch;
			check();
			if
			:: found == 0 -> broken = true
			:: found == 1 -> begin(); ME.attach = 1
			:: else -> ME.attach = 7			/* it stays out */
			fi;
			found = 0
		}
	:: d_step
		{
#ifdef CLONE
			fences > 0 &&
#endif
			ME.attach == 1 && !broken ->
			fence();
#ifndef PROBE_BEFORE_FENCE
			ME.probed = memory.epoch;
#endif
			check();
			if
			:: found == 0 -> broken = true
			:: found == 1 -> ME.attach = 2
			:: else -> ME.attach = 7
			fi;
			found = 0
		}
	:: d_step
		{
			ME.attach == 2 && !broken ->
#ifdef SAME_NUMBER
			ME.opening = MAX(ME.probed, 1);
#else
			ME.opening = MAX(ME.probed, MAX(ME.node_epoch, ME.opening)) + 1;
#endif
			write_page();
			ME.attach = 3
		}
	:: d_step { ME.attach == 3 && owner == s && !broken -> take_inventory(); ME.attach = 4 }
	:: d_step { ME.attach == 4 && owner == s && !broken -> memory.epoch = ME.opening; ME.attach = 5 }
	:: d_step
		{
			ME.attach == 5 && owner == s && !broken ->
			ME.node_epoch = ME.opening;
			ME.opening = 0;
			ME.unclean_from = 0;
			ME.probed = 0;
			write_page();
			ME.attach = 6;
			ME.attached_before = true;
			look()
		}
	/* fenced out: everything that it does fails, and the launcher attaches anew */
	:: d_step
		{
			ME.attach >= 2 && ME.attach <= 6 && owner != s && !broken ->
			ME.attach = 0;
			ME.probed = 0;
			ME.refused = false;
			if
			:: ME.insert != 0 -> ME.row = DEAD
			:: else
			fi;
			ME.insert = 0;
			ME.vacuum = 0;
			ME.vacuum_lsn = 0;
			forget_heal()
		}

	/* ---- an insert: the row, its entry, the commit */
	:: d_step
		{
			LET_IN && ME.insert == 0 && ME.row == EMPTY && ROOM(3) ->
			ME.row = PENDING;
			ME.key = 0;
			write(INSERT_0);
			ME.insert = 1;
			look()
		}
	:: d_step
		{
			LET_IN && ME.insert == 0 && ME.row == EMPTY && ROOM(3) && memory.entries != 0 ->
			ME.row = PENDING;
			ME.key = 1;
			write(INSERT_1);
			ME.insert = 1;
			look()
		}
	:: d_step
		{
			LET_IN && ME.insert == 1 && lock == NOBODY ->
			adopt();
			lock = s;
			posted = true;
			posted_key = ME.key;
			posted_epoch = ME.epoch;
			posted_lsn = ROUNDED(ME.inserted);
			ME.insert = 2
		}
	/* the chain lands, whatever became of the server, unless it was fenced */
	:: d_step
		{
			posted && posted_epoch != 0 && (lock == s || lock == NOBODY) && !broken ->
			assert(owner == s);					/* no two owners */
			land();
			if
			:: ME.insert == 2 -> ME.insert = 3
			:: else
			fi;
			look()
		}
	:: d_step
		{
			LET_IN && ME.insert == 3 -> write(COMMIT); ME.row = ALIVE; ME.insert = 0; look()
		}

	/* ---- others */
	:: d_step { LET_IN && ME.row == ALIVE && ROOM(2) -> write(DELETE); ME.row = DEAD; look() }
	:: d_step { ME.runs && ME.insert == 0 && !broken && ROOM(3) && ME.attach == 0 -> write(OTHER) }
#ifdef CHECKPOINTS
	:: d_step
		{
			ME.runs && ME.insert == 0 && !broken && ROOM(3) ->
			ME.checkpoint = ME.inserted;
			write(CHECKPOINT);
			ME.flushed = ME.inserted
		}
#endif

	/* ---- VACUUM */
	:: d_step
		{
			LET_IN && ME.vacuum == 0 && ME.row == DEAD && ME.insert == 0 && ROOM(2) ->
#ifndef REMOVE_FIRST
			ME.flushed = ME.inserted;
#endif
			adopt();
			ME.vacuum_lsn = ME.inserted;
			ME.vacuum = 1
		}
	:: d_step
		{
			LET_IN && ME.vacuum == 1 ->
#ifndef NOTED_LATE
			note_removal(ME.vacuum_lsn);
			ME.vacuum_lsn = 0;
#endif
			ME.vacuum = 2
		}
	:: d_step
		{
			LET_IN && ME.vacuum == 2 && lock == NOBODY ->
			assert(owner == s);
			if
			:: memory.entries != 0 -> memory.entries = 0; memory.generation++
			:: else
			fi;
			ME.vacuum = 3;
			look()
		}
	:: d_step
		{
			LET_IN && ME.vacuum == 3 ->
#ifdef NOTED_LATE
			note_removal(ME.vacuum_lsn);
			ME.vacuum_lsn = 0;
#endif
			write(FREE); ME.row = EMPTY; ME.key = 0; ME.vacuum = 0; look()
		}

	/* ---- healing */
	:: d_step
		{
			LET_IN && ME.heal == 0 && memory.doubt ->
			judge_leaf();
			if
			:: found ->
#ifndef HEAL_UNMARKED
				adopt();
#endif
				ME.heal_gone = memory.entries & LOOKED_UP;
				if
				:: HAS_ROW -> ME.heal_gone = ME.heal_gone & ~(1 << ME.key)
				:: else
				fi;
				ME.heal_generation = memory.generation;
				ME.heal_lsn = ME.inserted;
				ME.heal = 1
			:: else -> memory.doubt = false
			fi;
			found = false
		}
	:: d_step
		{
			LET_IN && ME.heal == 1 ->
			if
			:: ME.heal_gone != 0 -> ME.flushed = ME.inserted; note_removal(ME.inserted)
			:: else
			fi;
			ME.heal = 2
		}
	:: d_step
		{
			LET_IN && ME.heal == 2 && lock == NOBODY ->
			assert(owner == s);
			if
#ifdef NO_GENERATION
			:: true ->
#else
			:: memory.generation == ME.heal_generation ->
#endif
				memory.entries = memory.entries & ~ME.heal_gone;
				if
				:: memory.leaf_epoch != ME.epoch || memory.leaf_lsn < ROUNDED(ME.heal_lsn) ->
					memory.leaf_lsn = ROUNDED(ME.heal_lsn)
				:: else
				fi;
				memory.leaf_epoch = ME.epoch;
				memory.unverified = 0;
				memory.generation++
#ifndef NO_GENERATION
			:: else
#endif
			fi;
			forget_heal();
			look()
		}

#ifdef SNAPSHOT
	/* ---- the memory node saves its memory, and starts with that again */
	:: d_step
		{
			snapshot == 0 && owner == NOBODY && !ME.runs ->
			saved.epoch = memory.epoch;
			saved.mutated = memory.mutated;
			saved.nonce = memory.nonce;
			saved.removal_epoch = memory.removal_epoch;
			saved.removal_lsn = memory.removal_lsn;
			saved.doubt = memory.doubt;
			saved.entries = memory.entries;
			saved.leaf_epoch = memory.leaf_epoch;
			saved.leaf_lsn = memory.leaf_lsn;
			saved.unverified = memory.unverified;
			saved.generation = memory.generation;
			snapshot = 1
		}
	:: d_step
		{
			snapshot == 1 && !ME.runs ->
			memory.epoch = saved.epoch;
			memory.mutated = saved.mutated;
			memory.nonce = saved.nonce;
			memory.removal_epoch = saved.removal_epoch;
			memory.removal_lsn = saved.removal_lsn;
			memory.doubt = saved.doubt;
			memory.entries = saved.entries;
			memory.leaf_epoch = saved.leaf_epoch;
			memory.leaf_lsn = saved.leaf_lsn;
			memory.unverified = saved.unverified;
			memory.generation = saved.generation;
			owner = NOBODY;
			lock = NOBODY;
			posted = false;
			posted_key = 0;
			posted_epoch = 0;
			posted_lsn = 0;
			snapshot = 2
		}
#endif
#ifdef CLONE
	/* ---- a copy of the disks of server 0, as a crash would leave them; or what of its WAL has come to a standby */
	:: atomic
		{
			s == 1 && !cloned && !broken ->
			cloned = true;
#ifdef TAKEOVER
			ME.inserted = MAX(server[0].page_at, server[0].named_at);
			do
			:: ME.inserted < server[0].flushed -> ME.inserted++
			:: break
			od;
#else
			ME.inserted = server[0].flushed;
			do
			:: ME.inserted < server[0].inserted -> ME.inserted++
			:: break
			od;
#endif
			i = 0;
			do
			:: i < ME.inserted -> ME.wal[i] = server[0].wal[i]; i++
			:: else -> break
			od;
			ME.flushed = ME.inserted;
			replay();
			ME.named[0] = server[0].named[0];
			ME.named[1] = server[0].named[1];
#ifdef TAKEOVER
			ME.takes_over = true;
			ME.end = NEVER;
			ME.page_at = server[0].page_at;
			ME.named_at = server[0].named_at;
			ME.epoch = server[0].page_epoch;
			ME.nonce = server[0].page_nonce;
			ME.node_epoch = server[0].page_node_epoch;
			ME.opening = server[0].page_opening;
			ME.unclean_from = server[0].page_unclean;
			i = 0;
			do
			:: i < EPOCHS -> ME.past[i] = server[0].page_past[i]; ME.past_clean[i] = server[0].page_clean[i]; i++
			:: else -> break
			od;
			i = 0
#else
			ME.shut_down = server[0].shut_down;
			ME.checkpoint = server[0].checkpoint;
			ME.epoch = server[0].epoch;
			ME.nonce = server[0].nonce;
			ME.closed = server[0].closed;
			ME.closed_at = server[0].closed_at;
			ME.seen_checkpoint = server[0].seen_checkpoint;
			ME.end = server[0].end;
			i = 0;
			do
			:: i < EPOCHS -> ME.past[i] = server[0].past[i]; ME.past_clean[i] = server[0].past_clean[i]; i++
			:: else -> break
			od;
			i = 0;
			ME.node_epoch = server[0].node_epoch;
			ME.opening = server[0].opening;
			ME.unclean_from = server[0].unclean_from
#endif
		}
#endif

	/* ---- nobody can do anything any more */
	:: timeout ->
		if
		:: LET_IN -> judge_leaf(); assert(!found && !memory.doubt); found = false
		:: else
		fi;
		break
	od
}

/* Server 0 runs, and has made the tree in epoch 1. */
init
{
	byte		s;

	d_step
	{
		s = 0;
		ME.checkpoint = 0;
		write(BORDER);
		ME.flushed = 1;
		ME.end = NEVER;
		ME.epoch = 1;
		ME.node_epoch = 1;
		ME.runs = true;
		ME.ours = true;
		ME.begun = true;
		ME.attached_before = true;
		ME.attach = 6;
		write_page();
		memory.epoch = 1;
		memory.mutated = 1;
		memory.leaf_epoch = 1;
		memory.leaf_lsn = 2;
		owner = 0
	};
	atomic
	{
		run Run(0);
#ifdef CLONE
		run Run(1)
#endif
	}
}
