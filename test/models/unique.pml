/*
 * unique.pml
 *		One key of a unique index, and how rows with it are added: am/access/unique.c, am/access/key_parts.c.
 *
 * The index has an entry of a dead row with the key, which VACUUM removes at some time.  Rows are added with the same key.  Each
 * first tries to add its entry on condition that no other with the key is there, which the leaf's lock makes one step, and holds
 * no key lock.  If that fails, it takes the key lock, looks at the entries that are there, at their rows, and adds its own on no
 * condition, in three steps.  Nobody deletes: so at most one row may have the key at last.
 *
 * Switches, each of which must break it:
 *	NOLOOK		who adds does not ask whether somebody checks
 *	NOWAIT		who checks does not wait until nobody adds
 *	LOOKFIRST	who adds asks first, and says afterwards that it adds
 *	NOKEYLOCK	checks take no key lock
 *	UNTIL_READ	who has read the entries lets others add again
 */
#define ROWS 3

bool dead = true;		/* the entry of the dead row is there */
byte entries;			/* of rows that live */
byte adding;
byte checking;
bool locked;			/* the key */

#ifdef NOLOOK
#define CHECKED 0
#else
#define CHECKED checking
#endif

active [ROWS] proctype row()
{
	bool alone;
	byte seen;

#ifdef LOOKFIRST
	alone = !CHECKED;
	adding++;
#else
	adding++;
	alone = !CHECKED;
#endif
	if
	:: alone ->
		atomic {
			if
			:: !dead && entries == 0 -> entries++
			:: else -> alone = false
			fi
		}
	:: else -> skip
	fi;
	adding--;
	if
	:: alone -> goto done
	:: else -> skip
	fi;

#ifndef NOKEYLOCK
	atomic { !locked; locked = true };
#endif
	checking++;
#ifndef NOWAIT
	adding == 0;
#endif
	seen = entries;
#ifdef UNTIL_READ
	checking--;
#endif
	if
	:: seen == 0 -> entries++
	:: else -> skip			/* a duplicate */
	fi;
#ifndef UNTIL_READ
	checking--;
#endif
#ifndef NOKEYLOCK
	locked = false;
#endif
done:
	skip
}

active proctype vacuum()
{
	dead = false
}

active proctype judge()
{
	timeout;
	assert(entries == 1);
	assert(adding == 0 && checking == 0 && !locked)
}
