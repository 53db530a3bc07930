/*
 * routine_pg17.c
 *		Callbacks whose arguments are others in other versions: those of PostgreSQL 17.
 */
#include "am/base/sherman.h"

#include "am/access/access.h"
#include "am/scan/scan.h"

static Size
estimate_parallel_scan(int nkeys, int norderbys)
{
	return sherman_parallel_scan_bytes();
}

void
sherman_routine_of_version(IndexAmRoutine *routine)
{
	routine->amestimateparallelscan = estimate_parallel_scan;
}
