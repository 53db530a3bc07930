/*
 * techniques.c
 *		The techniques of the papers that an instance uses by default.
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
