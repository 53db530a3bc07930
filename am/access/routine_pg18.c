/*
 * routine_pg18.c
 *		What PostgreSQL 18 asks an access method for, beside what older versions do: callbacks with other arguments, and what the numbers of its
 *		strategies mean, which are btree's.
 */
#include "am/base/sherman.h"

#include "access/stratnum.h"

#include "am/access/access.h"
#include "am/scan/scan.h"

static Size
estimate_parallel_scan(Relation index, int nkeys, int norderbys)
{
	return sherman_parallel_scan_bytes();
}

static bool
is_strategy(int number)
{
	return number >= BTLessStrategyNumber && number <= BTGreaterStrategyNumber;
}

/*
 * amtranslatestrategy.  CompareType has btree's numbers.
 */
static CompareType
translate_strategy(StrategyNumber strategy, Oid family)
{
	return is_strategy(strategy) ? (CompareType) strategy : COMPARE_INVALID;
}

/*
 * amtranslatecmptype.
 */
static StrategyNumber
translate_comparison(CompareType comparison, Oid family)
{
	return is_strategy(comparison) ? (StrategyNumber) comparison : InvalidStrategy;
}

void
sherman_routine_of_version(IndexAmRoutine *routine)
{
	routine->amestimateparallelscan = estimate_parallel_scan;
	/* As btree's: the operators of a family are of one order, whatever their types. */
	routine->amconsistentequality = true;
	routine->amconsistentordering = true;
	routine->amtranslatestrategy = translate_strategy;
	routine->amtranslatecmptype = translate_comparison;
}
