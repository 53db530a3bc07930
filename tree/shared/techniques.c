/*
 * techniques.c
 *		What an instance does of what the papers propose: the choice that is made if none is asked for.
 */
#include "tree/internal.h"

const TreeTechniques tree_techniques = {
	.combine_lock = true,
	.combine_unlock = true,
	.hierarchy = true,
	.handovers = HANDOVER_MAX,
	.entry_writes = true,
	.back_off = true,
	.adaptive = true,
};

const TreeTechniques tree_owner_techniques = {
	.combine_lock = true,
	.combine_unlock = true,
	.hierarchy = true,
	.handovers = HANDOVER_MAX,
	.entry_writes = true,
	.back_off = true,
	.adaptive = true,
	.exclusive = true,
};

const TreeTechniques *
shared_techniques(const TreeSharedOptions *options)
{
	return options->techniques != NULL ? options->techniques : &tree_techniques;
}
