/*
 * switch.h
 *		What the parts of the test switch share: the rules of its links, and the frames under way.
 */
#ifndef SHERMAN_TEST_SWITCH_H
#define SHERMAN_TEST_SWITCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Machines on one switch. */
#define MAX_PORTS 16

/* Room for the largest frame of a port: QEMU's and a TAP device's are far smaller. */
#define MAX_FRAME_BYTES 65536

/* Bytes of a command and of its reply: the counters of all links fit. */
#define MAX_COMMAND_BYTES 256
#define MAX_REPLY_BYTES 32768

/* Frames from one port to another. */
typedef struct Link
{
	bool cut;
	double loss;      /* chance that a frame is lost, 0..1 */
	double duplicate; /* chance that it comes twice */
	uint64_t delay_ns;
	uint64_t jitter_ns; /* up to so much later; frames overtake each other then */
	uint32_t resets;    /* TCP segments still to be answered by a reset of both ends */
	uint64_t passed;
	uint64_t dropped;
	uint64_t answered; /* by a reset */
} Link;

typedef struct Rules
{
	uint32_t ports;
	Link links[MAX_PORTS][MAX_PORTS]; /* [from][to] */
} Rules;

/*
 * Carries out one command (see switch.c) and writes a reply of at most MAX_REPLY_BYTES, which begins with "ok" or
 * "error". False: the command was not understood, and nothing has changed.
 */
extern bool rules_command(Rules *rules, const char *command, char *reply);

/*
 * Makes the two segments that end the connection that the frame belongs to: `forward` as if its sender, `backward` as if
 * its receiver had given up.  Each has room for MAX_FRAME_BYTES; their length is *bytes.  False: the frame is no TCP
 * segment of IPv4 that a reset would answer.
 */
extern bool reset_frames(const uint8_t *frame, size_t length, uint8_t *forward, uint8_t *backward,
                         size_t *bytes);

#endif /* SHERMAN_TEST_SWITCH_H */
