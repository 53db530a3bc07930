/*
 * zipf.c
 *		See zipf.h.
 */
#include <math.h>

#include "zipf.h"

/*
 * So many weights are added up; what is left is an integral, which differs from the sum by less than the last
 * weight's slope.
 */
#define ADDED_UP 100000u

static double
weights(uint64_t count, double theta)
{
	uint64_t added = count < ADDED_UP ? count : ADDED_UP;
	double sum = 0;

	for (uint64_t i = 1; i <= added; i++)
		sum += pow(1.0 / (double) i, theta);
	if (count > added)
		sum += (pow((double) count + 0.5, 1 - theta) - pow((double) added + 0.5, 1 - theta)) / (1 - theta);
	return sum;
}

void
zipf_open(Zipf *zipf, uint64_t count, double theta)
{
	zipf->count = count;
	zipf->theta = theta;
	if (theta == 0)
		return;
	zipf->sum = weights(count, theta);
	zipf->first = weights(2, theta);
	zipf->alpha = 1 / (1 - theta);
	zipf->eta = (1 - pow(2.0 / (double) count, 1 - theta)) / (1 - zipf->first / zipf->sum);
}

uint64_t
zipf_rank(const Zipf *zipf, uint64_t random)
{
	double part = (double) (random >> 11) * 0x1p-53;
	uint64_t rank;

	if (zipf->theta == 0)
		return (uint64_t) ((double) zipf->count * part);
	if (part * zipf->sum < 1)
		return 0;
	if (part * zipf->sum < zipf->first)
		return 1;
	rank = (uint64_t) ((double) zipf->count * pow(zipf->eta * part - zipf->eta + 1, zipf->alpha));
	return rank < zipf->count ? rank : zipf->count - 1;
}
