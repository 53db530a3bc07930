/*
 * redo.pml
 *	Structure changes that stop half-way.  Three scenarios.
 *
 * NODE (the default): a node of two packets, rewritten and split by two clients of which one or both die
 *	after any packet.  Each has a redo slot, which stays behind when its rewrite is done.  The memory node
 *	fences the dead, replays slots where that is due, frees the lock word.  At the end the node is whole,
 *	every committed key is there once, and no insert was undone by the slot of an earlier rewrite.  Networks:
 *	packets land in order; due is a slot whose target is a mixture of that generation and the one before.
 *	STRIPE (shm): words are stored from the last to the first while the stripe is odd; due is the slot of the
 *	node WRITE in which the dead owner of the odd stripe was; then the stripe is made even.
 *
 * POST: a leaf is split twice, the parent once meanwhile, and the two new leaves are posted late, in any
 *	order and by several.
 *
 * ROOT: two clients split the root that is still a leaf.
 *
 * README.md lists the switches.
 */

#if !defined(POST) && !defined(ROOT)

/* a set of keys has a bit for each; half of them stay low when the node is split */
#define KEYS_AT_START	15
#define LOW_KEYS		(1 + 2 + 16)
#define HIGH_KEYS		(4 + 8 + 32)
#define NEW_KEY(me)		((me) == 0 -> 16 : 32)

#ifndef OPS
#define OPS				2		/* operations per client */
#endif

typedef Image
{
	byte		gen[2];			/* each packet carries its stamps */
	byte		keys[2];
	bool		split;			/* in packet 0: the high fence and the right link to the sibling */
};

typedef Slot
{
	byte		gen;			/* 0: the sum is wrong */
	byte		keys[2];
	bool		split;
};

mtype = { IDLE, REDO, SIBLING, FIRST, SECOND, CELL, TAKE, PUBLISH, EVEN, UNLOCK };

Image		node;
byte		sibling;			/* its keys; in reach when node.split is there */
byte		word;				/* lock word: 0, or the client + 1 */
Slot		slot[2];
bool		dead[2];
bool		recovered;
byte		committed = KEYS_AT_START;

#ifdef STRIPE
byte		stripe;				/* even: 0; odd: its owner, the client + 1 */
bool		node_write[2];		/* the client's intent: what it writes is the node */
#define STRIPE_IS_EVEN	(stripe == 0)
#else
#define STRIPE_IS_EVEN	true
#endif

inline store(p)
{
	node.gen[p] = image.gen;
	node.keys[p] = image.keys[p];
	if
	:: p == 0 -> node.split = image.split
	:: else
	fi
}

/* the next generation: every key changes its packet */
inline build(keep)
{
	image.gen = node.gen[0] + 1;
	image.keys[0] = node.keys[1] & (keep);
	image.keys[1] = node.keys[0] & (keep)
}

proctype Client(byte me)
{
	Slot		image;			/* what it writes */
	byte		upper;			/* keys of the sibling that it writes */
	byte		ops = OPS, adds, packet;
	mtype		step = IDLE;

end:
	do
	/* lock, READ, decide */
	:: atomic
		{
			!dead[me] && step == IDLE && ops > 0 && word == 0 ->
			word = me + 1;
			ops--;
			STRIPE_IS_EVEN;			/* a READ waits for it */
			assert(node.gen[0] == node.gen[1]);	/* under the lock a node is whole */
			if
			:: d_step { build(255); image.split = node.split; step = REDO }
			:: d_step
				{
					!node.split ->
					build(LOW_KEYS);
					image.split = true;
					upper = (node.keys[0] | node.keys[1]) & HIGH_KEYS;
					step = REDO
				}
			:: atomic
				{
					!(committed & NEW_KEY(me)) && !(node.split && (NEW_KEY(me) & HIGH_KEYS)) ->
					adds = NEW_KEY(me);
					if
					:: packet = 0
					:: packet = 1
					fi;
					step = CELL
				}
			fi
		}
	/* the chain, operation by operation, and a long WRITE packet by packet */
	:: d_step
		{
			!dead[me] && step == REDO ->
#ifndef NO_REDO
			slot[me].gen = image.gen;
			slot[me].keys[0] = image.keys[0];
			slot[me].keys[1] = image.keys[1];
			slot[me].split = image.split;
#endif
			step = (upper != 0 -> SIBLING : TAKE)
		}
	:: d_step { !dead[me] && step == SIBLING -> sibling = upper; upper = 0; step = TAKE }
#ifdef STRIPE
	:: d_step
		{
			!dead[me] && (step == TAKE || step == CELL) && stripe == 0 ->
			stripe = me + 1;
			node_write[me] = (step == TAKE);
			step = (step == TAKE -> FIRST : PUBLISH)
		}
	:: d_step { !dead[me] && step == FIRST -> store(1); step = SECOND }
	:: d_step { !dead[me] && step == SECOND -> store(0); step = EVEN }
	:: d_step { !dead[me] && step == PUBLISH -> node.keys[packet] = node.keys[packet] | adds; step = EVEN }
	:: d_step { !dead[me] && step == EVEN -> stripe = 0; node_write[me] = false; step = UNLOCK }
#else
	:: d_step { !dead[me] && (step == TAKE || step == FIRST) -> store(0); step = SECOND }
	:: d_step { !dead[me] && step == SECOND -> store(1); step = UNLOCK }
	:: d_step { !dead[me] && step == CELL -> node.keys[packet] = node.keys[packet] | adds; step = UNLOCK }
#endif
	:: d_step
		{
			!dead[me] && step == UNLOCK ->
			assert(word == me + 1);
			word = 0;
			committed = committed | adds;
			adds = 0;
			packet = 0;
			image.gen = 0;
			image.keys[0] = 0;
			image.keys[1] = 0;
			image.split = false;
			step = IDLE
		}
	od
}

#ifdef STRIPE
#define DUE(me)		(stripe == (me) + 1 && node_write[me])
#else
#define IS_OF(p, me)	(node.gen[p] == slot[me].gen || node.gen[p] + 1 == slot[me].gen)
#define MIXED			(node.gen[0] != node.gen[1])
#ifdef MIXED_ONLY
#define DUE(me)		MIXED
#else
#define DUE(me)		(MIXED && IS_OF(0, me) && IS_OF(1, me))
#endif
#endif

/*
 * the slot of a client that is fenced; what is due is due under the dead client's lock, so nobody else writes
 */
inline replay(me)
{
	if
#ifdef BLIND
	:: slot[me].gen != 0 ->
#else
	:: slot[me].gen != 0 && DUE(me) ->
#endif
		d_step { node.gen[0] = slot[me].gen; node.keys[0] = slot[me].keys[0]; node.split = slot[me].split };
		d_step { node.gen[1] = slot[me].gen; node.keys[1] = slot[me].keys[1] }
	:: else
	fi
#ifdef STRIPE
#ifndef NO_SETTLE
	;
	d_step
	{
		if
		:: stripe == me + 1 -> stripe = 0
		:: else
		fi
	}
#endif
#endif
}

/* client 0 dies, or both do, or nobody */
proctype MemoryNode()
{
	if
	:: true
	:: dead[0] = true;
		replay(0)
	:: d_step { dead[0] = true; dead[1] = true };
		if
		:: true -> replay(0); replay(1)
		:: true -> replay(1); replay(0)
		fi
	fi;
	d_step
	{
		if
		:: word != 0 && dead[word - 1] -> word = 0
		:: else
		fi;
		recovered = true
	};
	/* whenever nobody writes: everything is there, once */
	atomic
	{
		word == 0 ->
		assert(STRIPE_IS_EVEN);
		assert(node.gen[0] == node.gen[1]);
		assert((node.keys[0] & node.keys[1]) == 0);
		assert(!node.split || ((node.keys[0] | node.keys[1]) & sibling) == 0);
		assert(((node.keys[0] | node.keys[1] | (node.split -> sibling : 0)) & committed) == committed)
	}
}

init
{
	d_step
	{
		node.gen[0] = 1;
		node.gen[1] = 1;
		node.keys[0] = 1 + 4;
		node.keys[1] = 2 + 8
	};
	atomic
	{
		run Client(0);
		run Client(1);
		run MemoryNode()
	}
}

#endif

#ifdef POST

#define LEAF_N		1			/* from minus infinity; split at 3, then at 2 */
#define LEAF_2		2			/* a leaf is named after its separator */
#define LEAF_3		3
#define INFINITY	9
#define CELLS		4

typedef Inner
{
	byte		count;
	byte		child[CELLS];
	byte		separator[CELLS];
	byte		high;
};

Inner		inner[2];			/* the parent, and its sibling once it was split */
byte		posts;				/* clients that are done with posting */

hidden byte	i, place, left_place, seen;

/* the parents as they stand: cells in order, inside the fences, each child once */
inline check()
{
	seen = 0;
	i = 0;
	do
	:: i < inner[0].count ->
		assert((seen & (1 << inner[0].child[i])) == 0);	/* each child once */
		assert(i == 0 || inner[0].separator[i - 1] < inner[0].separator[i]);
		assert(inner[0].separator[i] < inner[0].high);
		seen = seen | (1 << inner[0].child[i]);
		i++
	:: else -> break
	od;
	i = 0;
	do
	:: i < inner[1].count ->
		assert((seen & (1 << inner[1].child[i])) == 0);	/* each child once */
		assert(i == 0 || inner[1].separator[i - 1] < inner[1].separator[i]);
		assert(inner[1].separator[i] >= inner[0].high);
		seen = seen | (1 << inner[1].child[i]);
		i++
	:: else -> break
	od;
	i = 0
}

/* one visit of inner[at] under its lock: done, or go right */
inline visit(left, right)
{
	d_step
	{
		place = 0;
		left_place = CELLS;
		seen = false;
		i = 0;
		do
		:: i < inner[at].count ->
			if
			:: inner[at].child[i] == right -> seen = true
			:: else
			fi;
			if
			:: inner[at].child[i] == left -> left_place = i
			:: else
			fi;
			if
			:: inner[at].separator[i] < right -> place = i + 1
			:: else
			fi;
			i++
		:: else -> break
		od;
#ifdef POST_AFTER_LEFT
		if
		:: left_place < CELLS -> place = left_place + 1
		:: else
		fi;
#endif
		if
#ifndef POST_TWICE
		:: seen -> moving = false
#endif
		:: else ->
			if
#ifdef LEFT_PROVES_FENCE
			:: right >= inner[at].high && left_place == CELLS -> at = 1
#else
			:: right >= inner[at].high -> at = 1
#endif
			:: else -> insert_cell(right)
			fi
		fi
	}
}

inline insert_cell(right)
{
	assert(inner[at].count < CELLS);
	i = inner[at].count;
	do
	:: i > place ->
		inner[at].child[i] = inner[at].child[i - 1];
		inner[at].separator[i] = inner[at].separator[i - 1];
		i--
	:: else -> break
	od;
	inner[at].child[place] = right;
	inner[at].separator[place] = right;
	inner[at].count++;
	moving = false;
	check()
}

/* posts `right`, which was seen to the right of `left`; the path says inner[0], however stale it is */
proctype Poster(byte left; byte right)
{
	byte		at;
	bool		moving = true;

	do
	:: moving -> visit(left, right)
	:: !moving -> break
	od;
	posts++
}

/* the parent is full and is split before any cell but its first */
active proctype Parent()
{
	if
	:: d_step
		{
			inner[0].count > 1 ->
			inner[1].high = inner[0].high;
			inner[1].count = inner[0].count - 1;
			inner[1].child[0] = inner[0].child[1];
			inner[1].separator[0] = inner[0].separator[1];
			inner[1].child[1] = inner[0].child[2];
			inner[1].separator[1] = inner[0].separator[2];
			inner[0].count = 1;
			inner[0].high = inner[1].separator[0];
			check()
		}
	:: d_step
		{
			inner[0].count > 2 ->
			inner[1].high = inner[0].high;
			inner[1].count = 1;
			inner[1].child[0] = inner[0].child[2];
			inner[1].separator[0] = inner[0].separator[2];
			inner[0].count = 2;
			inner[0].high = inner[1].separator[0];
			check()
		}
	:: posts == 4
	fi;
	posts == 4 -> assert(inner[0].count + inner[1].count == 3)
}

init
{
	d_step
	{
		inner[0].count = 1;
		inner[0].child[0] = LEAF_N;
		inner[0].high = INFINITY;
		inner[1].high = INFINITY
	};
	/* who splits posts, and so does whoever moved right; both splits are done, nothing is posted yet */
	atomic
	{
		run Poster(LEAF_N, LEAF_3);		/* split first: at that time to the right of N */
		run Poster(LEAF_N, LEAF_2);
		run Poster(LEAF_2, LEAF_3);		/* readers */
		run Poster(LEAF_N, LEAF_2)
	}
}

#endif

#ifdef ROOT

/*
 * The root stays at one address: a split of the root writes two children and then the root, one level up, so
 * whoever comes late finds an inner node under the lock and goes down.  ROOT_POINTER: it stays a leaf, and
 * who split it makes a new root above and swings the pointer.
 */
bool		locked;
byte		level;				/* of the root */
byte		leaves = 1;
byte		posted = 1;			/* leaves that the top level knows */
byte		done;

#ifdef ROOT_POINTER

active [2] proctype Splitter()
{
	bool		was_root;

	/* descent: there is no path above the root */
	was_root = (level == 0);
	d_step { !locked -> locked = true; leaves++ };
	locked = false;
	if
	:: was_root ->
		assert(level == 0);				/* the swing of the pointer succeeds: one root a level */
		d_step { level = 1; posted = 2 }
	:: else -> posted++
	fi;
	done++
}

#else

active [2] proctype Splitter()
{
	d_step { !locked -> locked = true };
	if
	:: level == 0 ->
		/* its two halves, then itself: two new leaves for one */
		d_step { leaves++; level = 1; posted = 2 };
		locked = false
	:: level != 0 ->
		/* not the leaf that it looked like: go down, split there, post */
		locked = false;
		leaves++;
		d_step { !locked -> posted++ }
	fi;
	done++
}

#endif

active proctype Monitor()
{
	done == 2 -> assert(level == 1 && leaves == 3 && posted == leaves)
}

#endif
