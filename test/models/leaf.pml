/*
 * leaf.pml
 *	A leaf N, the sibling S that a split makes, their parent word, and one lock word for both nodes.  Two
 *	writers insert, rewrite, split and vacuum under the lock; one reader samples lines without it, and kills
 *	under it.
 *
 * A node is a header line and two cell lines of two slots each.  A line is read and written at once; the
 * lines of one READ, and of one node WRITE, come in any order.  Keys are 1, 2 and 3, each one heap row.  Two
 * scenarios:
 *
 * FIND (the default): rows 1 and 3 are live for ever, 2 is inserted.  The reader scans all keys or those
 *	from 2 on, by a cached parent that may be stale.  What was committed before it began is found, and nothing
 *	is found twice.
 *
 * RECYCLE: row 3 is deleted and dead to everybody.  VACUUM removes its cell, then frees its TID and sets the
 *	page's visibility bit; then a new row with the same key takes the same TID, so that its cell has the same
 *	bytes.  The reader looks key 3 up and answers from the index alone if the bit is set and the generation
 *	did not change since; else it visits the heap, and where the row is dead it kills the cell.
 *
 * README.md lists the switches.
 */

#define MINUS_INFINITY	0		/* fences */
#define SEPARATOR		2		/* a split moves the keys from here on to S */
#define INFINITY		4
#define EMPTY			0		/* a slot holds EMPTY, a key, or a key + DEAD_MARK */
#define DEAD_MARK		4
#define SLOTS			4
#define RETRIES			3		/* descents by a fresh parent before the reader calls the index broken */

#ifndef OPS
#define OPS				4		/* operations on nodes in a run, by both writers together */
#endif

/* The stamp that every line carries.  As a rule wide enough never to come round in a run; NARROW: one bit. */
#ifdef NARROW
#define STAMP(gen)		((gen) & 1)
#else
#define STAMP(gen)		(gen)
#endif

typedef Line
{
	byte		stamp;
	byte		cell[2];
};

typedef Node
{
	byte		gen;
	byte		low;
	byte		high;			/* below INFINITY there is a right link, always to S */
#ifdef COUNT
	byte		count;
#endif
	Line		line[2];
};

#define CELL(image, slot)	image.line[(slot) / 2].cell[(slot) % 2]

#ifdef COUNT
#define SET_COUNT(image, n)	image.count = n
#else
#define SET_COUNT(image, n)	skip
#endif

/* row 3 in the heap: as at the start; its TID free; a new row under the same TID */
mtype = { OLD, UNUSED, NEW };
mtype = { IDLE, FREE_TID, SET_VISIBLE, NEW_ROW };

Node		node[2];			/* 0 is N, 1 is S */
byte		ops = OPS;
bool		locked;
bool		split_begun;
bool		s_exists;
bool		parent_has_s;		/* the parent word */

bool		key2_begun, key2_committed;
mtype		row3 = OLD;
bool		all_visible;		/* visibility bit of row 3's page */
bool		vacuum_begun;
bool		new_begun, new_committed;

bool		reader_done;		/* nothing is asserted any more */

#ifdef NARROW
byte		begun[2], finished[2];	/* rewrites of each node: the clock of the time rule */
#define REWRITE_BEGINS(n)	begun[n]++
#define REWRITE_ENDS(n)		finished[n]++
#else
#define REWRITE_BEGINS(n)	skip
#define REWRITE_ENDS(n)		skip
#endif

/* scratch of one step */
hidden byte	i, key, used, place, upward;

/*
 * Writers.  {CAS lock, READ} and the decision are one step: nobody else may write, and nobody else looks at
 * the lock. Then the WRITEs land one by one; the unlock and its acknowledgment are one step with the last of
 * them.
 */

/* the WRITEs of one node or cell that have not landed; the lines of a node land in any order */
#define HEADER			1
#define LINE_0			2
#define LINE_1			4
#define ONE_CELL		8
#define COUNT_UP		16		/* COUNT: after the cell */
#define MOVE_TO			32		/* MOVE: two cells, the new place first */
#define MOVE_FROM		64
#define NODE_LINES		(HEADER | LINE_0 | LINE_1)

/* A rewrite may put its cells anywhere: here from the first slot up or from the last one down. */
inline put(it)
{
	if
	:: used < SLOTS ->
		place = (upward -> used : SLOTS - 1 - used);
		CELL(image, place) = it;
		used++
	:: else					/* only in a node that a switch has damaged */
	fi
}

/*
 * image := next generation of node n: its live cells in [from, to) but not `victim`, and `extra` if it
 * belongs there
 */
inline build(n, from, to, victim)
{
	image.gen = node[n].gen + 1;
	image.low = node[n].low;
	image.high = to;
	image.line[0].stamp = STAMP(image.gen);
	image.line[1].stamp = STAMP(image.gen);
	used = 0;
	i = 0;
	do
	:: i < SLOTS ->
		key = CELL(node[n], i);
		if
		:: key >= from && key < to && key != EMPTY && key < DEAD_MARK && key != victim -> put(key)
		:: else
		fi;
		i++
	:: else -> break
	od;
	if
	:: extra != EMPTY && extra >= from && extra < to -> put(extra)
	:: else
	fi;
	SET_COUNT(image, used);
	unwritten = HEADER | LINE_0 | LINE_1
}

inline copy_header(to, from)
{
	to.gen = from.gen;
	to.low = from.low;
	to.high = from.high;
	SET_COUNT(to, from.count)
}

inline copy_line(to, from, l)
{
	to.line[l].stamp = from.line[l].stamp;
	to.line[l].cell[0] = from.line[l].cell[0];
	to.line[l].cell[1] = from.line[l].cell[1]
}

inline clear_image()
{
	image.gen = 0;
	image.low = 0;
	image.high = 0;
	SET_COUNT(image, 0);
	image.line[0].stamp = 0;
	image.line[0].cell[0] = 0;
	image.line[0].cell[1] = 0;
	image.line[1].stamp = 0;
	image.line[1].cell[0] = 0;
	image.line[1].cell[1] = 0
}

/* S is out of reach until N's new header is there, so its WRITE is one step; image := the new N */
inline build_split()
{
	split_begun = true;
	upward = true;
	build(0, SEPARATOR, node[0].high, EMPTY);
	image.gen = 1;
	image.low = SEPARATOR;
	image.line[0].stamp = STAMP(1);
	image.line[1].stamp = STAMP(1);
	copy_header(node[1], image);
	copy_line(node[1], image, 0);
	copy_line(node[1], image, 1);
	clear_image();
	build(0, MINUS_INFINITY, SEPARATOR, EMPTY)
}

inline landed(what)
{
	unwritten = unwritten - what;
	if
	:: unwritten != 0
#ifdef LOW_MOVES
	:: unwritten == 0 && borrowing -> borrow_second()
	:: unwritten == 0 && !borrowing -> acknowledged()
#else
	:: unwritten == 0 -> acknowledged()
#endif
	fi
}

#ifdef UNLOCK_FIRST
#define UNLOCK_BEFORE_WRITE	locked = false
#define UNLOCK				skip
#else
#define UNLOCK_BEFORE_WRITE	skip
#define UNLOCK				locked = false
#endif

inline acknowledged()
{
	if
	:: image.gen != 0 -> REWRITE_ENDS(n)
	:: else
	fi;
	clear_image();
	s_exists = split_begun;
	key2_committed = key2_committed || extra == 2;
	new_committed = new_committed || extra == 3;
	extra = EMPTY;
	slot = 0;
	n = 0;
	UNLOCK
}

/* An insert descends by a parent that may be stale; its fence check under the lock sends it to the right. */
inline find_node()
{
	if
	:: n = 0
	:: (extra == EMPTY -> s_exists : parent_has_s) -> n = 1
	fi;
	if
#ifndef NO_LOCK_FENCE
	:: extra >= node[n].high -> n = 1
#endif
	:: else
	fi
}

/* insert `extra` if there is one, by its cell alone, in a rewrite or in a split; else rewrite or split */
inline change()
{
	if
#ifdef COUNT
	:: extra != EMPTY -> slot = node[n].count; unwritten = ONE_CELL | COUNT_UP
#else
	:: extra != EMPTY && CELL(node[n], 0) == EMPTY -> slot = 0; unwritten = ONE_CELL
	:: extra != EMPTY && CELL(node[n], 1) == EMPTY -> slot = 1; unwritten = ONE_CELL
	:: extra != EMPTY && CELL(node[n], 2) == EMPTY -> slot = 2; unwritten = ONE_CELL
	:: extra != EMPTY && CELL(node[n], 3) == EMPTY -> slot = 3; unwritten = ONE_CELL
#endif
	:: d_step { upward = true; build(n, MINUS_INFINITY, node[n].high, EMPTY); REWRITE_BEGINS(n) }
#ifndef COUNT
	:: d_step { upward = false; build(n, MINUS_INFINITY, node[n].high, EMPTY); REWRITE_BEGINS(n) }
#endif
	:: d_step { n == 0 && !split_begun -> build_split(); REWRITE_BEGINS(0) }
	fi
}

/* remove the cell of row 3 */
inline remove()
{
	n = (node[0].high <= 3 -> 1 : 0);
#ifdef REUSE
	i = 0;
	do
	:: i < SLOTS ->
		if
		:: CELL(node[n], i) % DEAD_MARK == 3 -> CELL(node[n], i) = EMPTY
		:: else
		fi;
		i++
	:: else -> break
	od;
	acknowledged()
#else
	upward = true;
	build(n, MINUS_INFINITY, node[n].high, 3);
	REWRITE_BEGINS(n)
#endif
}

/* against the rules: N takes key 2 back from S, whose low fence rises; the parent is told nothing */
inline borrow()
{
	borrowing = true;
	upward = true;
	extra = 2;
	build(0, MINUS_INFINITY, SEPARATOR + 1, EMPTY);
	extra = EMPTY
}

inline borrow_second()
{
	borrowing = false;
	n = 1;
	build(1, SEPARATOR + 1, INFINITY, EMPTY);
	image.low = SEPARATOR + 1
}

proctype Writer() provided (!reader_done)
{
	Node		image;
	byte		n, extra, slot, unwritten;
	mtype		todo = IDLE;	/* in the heap: after VACUUM of the index, before an insert into it */
#ifdef LOW_MOVES
	bool		borrowing;
#endif

end:
	do
	:: atomic
		{
			unwritten == 0 && !locked && todo == IDLE && (ops > 0 || extra != EMPTY) ->
			locked = true;
			if
			:: extra == EMPTY ->
				ops--;
				if
#ifndef RECYCLE
				:: !key2_begun -> key2_begun = true; extra = 2
#endif
				:: true
				fi
			:: else
			fi;
			find_node();
			change();
			UNLOCK_BEFORE_WRITE
		}
	:: d_step { unwritten & HEADER -> copy_header(node[n], image); landed(HEADER) }
	:: d_step { unwritten & LINE_0 -> copy_line(node[n], image, 0); landed(LINE_0) }
	:: d_step { unwritten & LINE_1 -> copy_line(node[n], image, 1); landed(LINE_1) }
	:: d_step { unwritten & ONE_CELL -> CELL(node[n], slot) = extra; landed(ONE_CELL) }
	/* the parent learns of S later, by anybody, or never */
	:: d_step { s_exists && !parent_has_s -> parent_has_s = true }
#ifdef RECYCLE
	:: d_step
		{
			unwritten == 0 && !locked && ops > 0 && todo == IDLE && extra == EMPTY && !vacuum_begun ->
			locked = true;
			ops--;
			vacuum_begun = true;
			todo = FREE_TID;
			remove()
		}
	:: d_step { todo == FREE_TID && unwritten == 0 -> row3 = UNUSED; todo = SET_VISIBLE }
	:: d_step { todo == SET_VISIBLE -> all_visible = true; todo = IDLE }
	:: d_step
		{
			unwritten == 0 && todo == IDLE && row3 == UNUSED && all_visible && !new_begun ->
			new_begun = true;
			all_visible = false;
			todo = NEW_ROW
		}
	:: d_step { todo == NEW_ROW -> row3 = NEW; extra = 3; todo = IDLE }
#endif
#ifdef COUNT
	:: d_step { unwritten == COUNT_UP -> node[n].count++; landed(COUNT_UP) }
#endif
#ifdef MOVE
	:: d_step
		{
			unwritten == 0 && !locked && ops > 0 && CELL(node[0], 2) != EMPTY && CELL(node[0], 1) == EMPTY ->
			locked = true;
			ops--;
			unwritten = MOVE_TO | MOVE_FROM
		}
	:: d_step { unwritten & MOVE_TO -> CELL(node[0], 1) = CELL(node[0], 2); landed(MOVE_TO) }
	:: d_step { unwritten == MOVE_FROM -> CELL(node[0], 2) = EMPTY; landed(MOVE_FROM) }
#endif
#ifdef LOW_MOVES
	:: d_step
		{
			unwritten == 0 && !locked && ops > 0 && s_exists && key2_committed && node[1].low == SEPARATOR ->
			locked = true;
			ops--;
			borrow()
		}
#endif
	od
}

/*
 * The reader.  It keeps of a READ only what it needs: stamp, generation, fences, and how often each key was
 * seen live.
 */

typedef Copy
{
	bool		any;			/* a line was sampled, with this stamp */
	byte		stamp;
	byte		gen;
	byte		low;
	byte		high;
	byte		seen[4];		/* by key */
#ifdef COUNT
	byte		count;
	byte		used;
#endif
};

#define HEADER_OF(n)	(1 << (3 * (n)))
#define LINE_OF(n, l)	(2 << (3 * (n) + (l)))
#define LINES_OF(n)		(7 << (3 * (n)))

#ifdef NARROW
#define READ_BEGINS		start[0] = finished[0]; start[1] = finished[1]
#else
#define READ_BEGINS		skip
#endif

#if defined(NARROW) && !defined(NO_TIME_RULE)
/* the READ took so long that a one-bit stamp may have come round */
#define TOO_SLOW(n)		(copy[n].any && begun[n] - start[n] > 1)
#else
#define TOO_SLOW(n)		false
#endif

inline forget(n)
{
	copy[n].any = false;
	copy[n].stamp = 0;
	copy[n].gen = 0;
	copy[n].low = 0;
	copy[n].high = 0;
	copy[n].seen[1] = 0;
	copy[n].seen[2] = 0;
	copy[n].seen[3] = 0;
	SET_COUNT(copy[n], 0)
#ifdef COUNT
	; copy[n].used = 0
#endif
}

/* one READ of the leaf `at`, or a chain of two */
inline read()
{
	forget(0);
	forget(1);
	wanted = (chain -> LINES_OF(0) | LINES_OF(1) : LINES_OF(at));
	READ_BEGINS
}

/*
 * The READ of node n is torn or too slow: make it again.  A leaf that was read ahead of another is only given
 * up.
 */
inline again(n)
{
	if
	:: n == 1 && chain -> forget(1); wanted = wanted & LINES_OF(0)
	:: else -> read()
	fi
}

/*
 * a line with this stamp was sampled; if it does not agree with those before there is no need to sample the
 * rest
 */
inline agree(n, line_stamp)
{
	if
#ifndef NO_STAMP
	:: copy[n].any && copy[n].stamp != line_stamp -> again(n)
#endif
	:: else -> copy[n].any = true; copy[n].stamp = line_stamp
	fi
}

inline see(n, it)
{
	if
	:: it != EMPTY && it < DEAD_MARK -> copy[n].seen[it]++
	:: else
	fi
#ifdef COUNT
	; copy[n].used = copy[n].used + (it != EMPTY)
#endif
}

inline sample_header(n)
{
	wanted & HEADER_OF(n) ->
	wanted = wanted - HEADER_OF(n);
	copy_header(copy[n], node[n]);
	agree(n, STAMP(node[n].gen))
}

inline sample_line(n, l)
{
	wanted & LINE_OF(n, l) ->
	wanted = wanted - LINE_OF(n, l);
	see(n, node[n].line[l].cell[0]);
	see(n, node[n].line[l].cell[1]);
	agree(n, node[n].line[l].stamp)
}

/* take from copy n the keys in [from, its high fence) */
inline emit(n)
{
	i = from;
	do
	:: i < copy[n].high -> found[i] = found[i] + copy[n].seen[i]; i++
	:: else -> break
	od;
#ifdef DROP_EQUAL
	found[1] = found[1] > 0;
	found[2] = found[2] > 0;
	found[3] = found[3] > 0;
#endif
	assert(found[1] <= 1 && found[2] <= 1 && found[3] <= 1);	/* no key twice */
#ifdef COUNT
	assert(copy[n].count <= copy[n].used);						/* no entry that never was */
#endif
	at = n;
	gen = copy[n].gen;
	from = copy[n].high
}

inline descend()
{
	d_step
	{
		at = (from >= SEPARATOR && parent -> 1 : 0);
		chain = (at == 0 && parent);		/* the next leaf is read ahead */
		read()
	}
}

/* the READ is believed: what next? */
inline believe()
{
	if
	:: from < copy[at].low ->
		/* below the low fence: descend again, not by the cache */
		tries++;
		assert(tries <= RETRIES);			/* the index is never called broken */
		parent = parent_has_s;
		descend()
	:: else ->
		d_step { emit(at) };
#ifndef NO_FENCE
		if
		:: from == INFINITY -> break
		/* the leaf read ahead counts only if it begins where this one ends; else take the right link */
		:: from != INFINITY && copy[1].any && copy[1].low == from -> d_step { emit(1) }; break
		:: else -> d_step { at = 1; chain = false; read() }
		fi
#else
		break
#endif
	fi
}

/* the cell of row 3 was found in node `at`, generation `gen`: index-only answer, or heap visit and kill */
inline judge()
{
	if
	:: all_visible ->
		/* step between the bit and the header */
		if
#ifdef NO_RECHECK
		:: returned = true
#else
		:: d_step { node[at].gen == gen -> returned = true }
		:: d_step { node[at].gen != gen -> returned = (row3 == NEW && sees_new) }
#endif
		fi
	:: row3 == NEW -> returned = sees_new
#ifdef NO_KILL
	:: row3 != NEW
#else
	:: row3 != NEW ->
		/* dead to everybody: kill */
		d_step
		{
			!locked ->
			i = 0;
			do
			:: i == SLOTS -> break
#ifndef KILL_BY_BYTES
			:: node[at].gen != gen -> break
			:: i < SLOTS && node[at].gen == gen ->
#else
			:: i < SLOTS ->
#endif
				if
				:: CELL(node[at], i) == 3 ->
					assert(row3 != NEW);	/* no kill of a live row */
					CELL(node[at], i) = DEAD_MARK + 3
				:: else
				fi;
				i++
			od
		}
#endif
	fi
}

proctype Reader()
{
	Copy		copy[2];
	byte		wanted, at, gen, tries;
	byte		from;			/* everything below was answered */
	byte		found[4];
	bool		all;			/* the scan began at the first key */
	bool		chain;
	bool		parent;			/* what the cache says of the parent: any value that the word ever had */
	bool		needs2, sees_new;	/* the snapshot */
	bool		returned;
#ifdef NARROW
	byte		start[2];
#endif

	atomic
	{
		needs2 = key2_committed;
		sees_new = new_committed;
		if
#ifndef RECYCLE
		:: from = MINUS_INFINITY
#endif
		:: from = 2
		fi;
		all = (from == MINUS_INFINITY);
		if
		:: parent = parent_has_s
		:: parent_has_s -> parent = false
		fi;
		descend()
	};
	do
	:: d_step { sample_header(0) }
	:: d_step { sample_line(0, 0) }
	:: d_step { sample_line(0, 1) }
	:: d_step { sample_header(1) }
	:: d_step { sample_line(1, 0) }
	:: d_step { sample_line(1, 1) }
	:: d_step { wanted == 0 && TOO_SLOW(at) -> again(at) }
	:: d_step { wanted == 0 && !TOO_SLOW(at) && chain && TOO_SLOW(1) -> again(1) }
	:: atomic { wanted == 0 && !TOO_SLOW(at) && !(chain && TOO_SLOW(1)) -> believe() }
	od;
	atomic { forget(0); forget(1) };
#ifdef RECYCLE
	if
	:: found[3] -> judge()
	:: else
	fi;
	assert(!returned || sees_new);			/* no row that the snapshot must not see */
	assert(returned || !sees_new);			/* what is committed is found */
#else
	assert(!all || found[1]);
	assert(!needs2 || found[2]);
	assert(found[3]);
#endif
	reader_done = true
}

init
{
	d_step
	{
		node[0].gen = 1;
		node[0].low = MINUS_INFINITY;
		node[0].high = INFINITY;
		node[0].line[0].stamp = STAMP(1);
		node[0].line[1].stamp = STAMP(1);
		node[0].line[0].cell[0] = 1;
#ifdef COUNT
		node[0].line[0].cell[1] = 3;
		node[0].count = 2
#else
		node[0].line[1].cell[0] = 3
#endif
	};
	atomic
	{
		run Writer();
		run Writer();
		run Reader()
	}
}
