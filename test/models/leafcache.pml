/*
 * leafcache.pml
 *		The image of a leaf in shared memory: tree/lock/leaf_cache.c.
 *
 * The leaf at the memory node is a number, which each WRITE raises.  Two writers take its lock entry, in turn; each takes the leaf out of
 * the image if that is valid, else READs it; makes the version odd and the image void, posts the WRITE, which lands at any later time, and,
 * when it is acknowledged, brings the image up to date and gives the entry up.  One of them may lose its chain, and reset the
 * channel, behind which nothing of it lands any more; or be killed anywhere, which leaves the entry to nobody.  Two readers take
 * the image if it is valid, else they look at the version, READ, fill the one frame there is, and make it valid.  One of them may
 * be killed in that.  Another writer of the same entry, whose leaf is another one, changes the version alone.
 *
 *	- whoever takes a valid image has what a READ would bring at that instant;
 *	- a writer never writes over what it has not seen.
 *
 * Switches, each of which must break it:
 *	NOT_VOID		an image stays valid while its leaf is written
 *	VOID_LATE		it is made void behind the posting of the WRITE
 *	NO_VERSION		a reader makes what it has READ valid without a look at the version
 *	VERSION_LATE	it takes the version behind its READ
 *	VALID_ANYWAY	it makes its frame valid although a writer has made that void
 *	DOUBT_ENDS		the version becomes even while a chain may still land
 *	LOST_IS_KEPT	the image is brought up to date although the WRITE was lost
 */
#define VOID		0
#define BEGUN		1
#define VALID		2

#ifndef WRITES
#define WRITES		2
#endif
#ifndef READS
#define READS		1			/* of each reader */
#endif

byte leaf;						/* at the memory node */
bool under_way;					/* a WRITE that was posted, and may land */
byte written;					/* what it writes */
byte version;					/* of the lock entry */
bool entry;						/* somebody owns it */

/* The frame. */
bool filling;					/* its sequence is odd */
byte valid;
byte image;

byte writes = WRITES;
bool may_die = true;
bool may_lose = true;

/* What memory reads and writes here are sequentially consistent in the code, too. */

inline take_up_to_date(what)
{
	if
	:: d_step { !filling -> filling = true; valid = BEGUN };
		image = what;
		d_step { valid = (valid == BEGUN -> VALID : valid); filling = false }
	:: filling -> skip
	fi
}

proctype writer()
{
	byte seen;

end:
	do
	:: d_step { writes > 0 && !entry -> writes--; entry = true };
		if
		:: d_step { !filling && valid == VALID ->
			assert(image == leaf);				/* the owner has the leaf itself */
			seen = image }
		:: d_step { valid != VALID -> seen = leaf }
		fi;
		version++;
#ifndef NOT_VOID
#ifndef VOID_LATE
		valid = VOID;
#endif
#endif
		d_step { assert(!under_way); under_way = true; written = seen + 1 };
#ifdef VOID_LATE
		valid = VOID;
#endif
		if
		/* acknowledged */
		:: !under_way ->
			assert(leaf == seen + 1);
			take_up_to_date(seen + 1);
			version++;
			entry = false
		/* lost: a reset ends what is under way; until then the version is odd */
		:: d_step { may_lose -> may_lose = false };
#ifdef LOST_IS_KEPT
			take_up_to_date(seen + 1);
#endif
#ifdef DOUBT_ENDS
			version++;
			under_way = false;
#else
			under_way = false;
			version++;
#endif
			entry = false
		/* killed: nobody gives the entry up */
		:: d_step { may_die -> may_die = false }; goto dead
		fi;
		seen = 0
	od;
dead:
	skip
}

/* A writer of another leaf with the same entry. */
proctype neighbor()
{
end:
	d_step { !entry -> entry = true };
	version++;
	version++;
	entry = false
}

proctype memory_node()
{
end:
	do
	:: d_step { under_way ->
		assert(written == leaf + 1);			/* nothing is written over that was not seen */
		leaf = written;
		under_way = false }
	od
}

proctype reader()
{
	byte reads, before, seen;

	do
	:: reads < READS ->
		reads++;
		if
		:: d_step { !filling && valid == VALID -> assert(image == leaf) }
		:: d_step { filling || valid != VALID -> skip };
#ifdef VERSION_LATE
			seen = leaf;
			before = version;
#else
			before = version;
			seen = leaf;
#endif
			if
			:: d_step { !filling -> filling = true; valid = BEGUN };
				image = seen;
				if
				/* killed: the frame is nobody's */
				:: d_step { may_die -> may_die = false }; goto dead
				:: true
				fi;
				if
#ifdef NO_VERSION
				:: true ->
#else
				:: before % 2 == 0 && version == before ->
#endif
#ifdef VALID_ANYWAY
					valid = VALID
#else
					d_step { valid = (valid == BEGUN -> VALID : valid) }
#endif
#ifndef NO_VERSION
				:: else -> valid = VOID
#endif
				fi;
				filling = false
			:: filling -> skip
			fi
		fi;
		before = 0;
		seen = 0
	:: reads == READS -> break
	od;
dead:
	skip
}

init
{
	atomic {
		run writer();
		run writer();
		run neighbor();
		run memory_node();
		run reader();
		run reader()
	}
}
