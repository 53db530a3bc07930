/*
 * replay.pml
 *	Whose WRITE left a node torn?  Two clients of one instance have a node of two packets under one lock word,
 *	rewrite it, or do not, and free the word or pass it on to each other.  A WRITE follows the client's redo
 *	slot, which stays behind.  Lines of a packet land in any order, so that the one with the generation may be
 *	the last.  The memory node kills the channel of client 0 at any time: the packet that is under way lands
 *	whole, nothing behind it does.  Then it judges the slot, look by look, while client 1 goes on: torn, with
 *	the generation of the slot, is made whole from it.  That must be the WRITE of client 0.
 *
 * README.md lists the switches.
 */

#ifndef OPS
#define OPS				2		/* holds per client */
#endif

typedef Slot
{
	byte		gen;			/* 0: nothing was written there yet */
	byte		word;
};

mtype = { IDLE, REDO, FIRST, GENERATION, REST, SECOND, RELEASE };

byte		generation;			/* of the node, in line 0 */
byte		rest;				/* the generation that the other lines of the first packet are of */
byte		second;				/* and those of the second packet */
byte		word;				/* lock word: 0, or a ticket */
byte		tickets;
byte		owner;				/* who has the lock, in the local table: the client + 1 */
byte		left[2];			/* holds to come */
Slot		slot[2];
bool		dead;				/* client 0 */
bool		busy;				/* a packet of client 0 is under way */

#define WHOLE			(generation == rest && rest == second)
#define ALIVE(me)		(!dead || (me) == 1)

proctype Client(byte me)
{
	byte		new;			/* generation of the image */
	bool		used;			/* the slot, in this hold */
	mtype		step = IDLE;

end:
	do
	:: atomic
		{
			ALIVE(me) && step == IDLE && left[me] > 0 && (word == 0 || owner == me + 1) ->
			if
			:: word == 0 -> tickets++; word = tickets
			:: else
			fi;
			owner = me + 1;
			left[me]--;
			assert(WHOLE);			/* under the lock a node is whole */
			new = generation + 1;
			if
			:: step = REDO
			:: step = RELEASE
			fi
		}
	:: d_step
		{
			ALIVE(me) && step == REDO ->
			slot[me].gen = new;
			slot[me].word = word;
			used = true;
			step = FIRST
		}
	/* the first packet, which lands whole even if its channel is killed meanwhile */
	:: d_step { ALIVE(me) && step == FIRST -> generation = new; busy = (me == 0 -> true : busy); step = REST }
	:: d_step { ALIVE(me) && step == FIRST -> rest = new; busy = (me == 0 -> true : busy); step = GENERATION }
	:: d_step { step == REST -> rest = new; busy = (me == 0 -> false : busy); step = SECOND }
	:: d_step { step == GENERATION -> generation = new; busy = (me == 0 -> false : busy); step = SECOND }
	:: d_step { ALIVE(me) && step == SECOND -> second = new; step = RELEASE }
	:: d_step { ALIVE(me) && step == RELEASE -> word = 0; owner = 0; used = false; new = 0; step = IDLE }
	:: d_step
		{
			ALIVE(me) && step == RELEASE && left[1 - me] > 0 && ALIVE(1 - me) ->
			owner = 2 - me;
#ifndef SAME_WORD
			if
			:: used -> tickets++; word = tickets
			:: else
			fi;
#endif
			used = false;
			new = 0;
			step = IDLE
		}
	od
}

proctype MemoryNode()
{
	bool		due = true;

	dead = true;
	!busy;
	due = (slot[0].gen != 0 && generation == slot[0].gen);
	due = due && !WHOLE;
#ifndef ANY_WORD
	due = due && word == slot[0].word;
#endif
#ifndef NO_REPLAY
	if
	:: d_step
		{
			due ->
			assert(owner == 1);		/* it is the dead channel's WRITE, and nobody else's */
			generation = slot[0].gen;
			rest = slot[0].gen;
			second = slot[0].gen
		}
	:: else
	fi;
#endif
	/* the word of the dead, or one that was passed on to him just before */
	d_step
	{
		if
		:: owner == 1 -> word = 0; owner = 0
		:: else
		fi
	}
}

init
{
	d_step
	{
		generation = 1;
		rest = 1;
		second = 1;
		left[0] = OPS;
		left[1] = OPS
	};
	atomic
	{
		run Client(0);
		run Client(1);
		run MemoryNode()
	}
}
