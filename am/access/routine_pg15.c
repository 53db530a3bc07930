/*
 * routine_pg15.c
 *		Callbacks whose arguments are others in later versions: those of PostgreSQL 15 and 16.
 */
#include "am/base/sherman.h"

#include "am/access/access.h"
#include "am/scan/scan.h"

static Size
estimate_parallel_scan(void)
{
	return sherman_parallel_scan_bytes();
}

void
sherman_routine_of_version(IndexAmRoutine *routine)
{
	routine->amestimateparallelscan = estimate_parallel_scan;
}
