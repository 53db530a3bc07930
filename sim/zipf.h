/*
 * zipf.h
 *		Random ranks by Zipf's law, as YCSB draws them (Gray et al.: "Quickly generating billion-record
 *		synthetic databases").
 */
#ifndef SHERMAN_ZIPF_H
#define SHERMAN_ZIPF_H

#include <stdint.h>

typedef struct Zipf
{
	uint64_t count;
	double theta; /* 0: all ranks alike */
	double sum;   /* of all ranks' weights */
	double first; /* of the first two */
	double alpha;
	double eta;
} Zipf;

/* Ranks 0 to count - 1; theta from 0 to below 1. */
extern void zipf_open(Zipf *zipf, uint64_t count, double theta);
/* The rank for a random number: all 64 bits of it. */
extern uint64_t zipf_rank(const Zipf *zipf, uint64_t random);

#endif /* SHERMAN_ZIPF_H */
