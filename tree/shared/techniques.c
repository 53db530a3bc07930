/*
 * techniques.c
 *		The techniques that an instance chooses by default.
 */
#include "tree/internal.h"

const TreeTechniques tree_techniques = {
	.handovers = HANDOVER_MAX,
};

const TreeTechniques tree_owner_techniques = {
	.handovers = HANDOVER_MAX,
	.exclusive = true,
};

const TreeTechniques *
shared_techniques(const TreeSharedOptions *options)
{
	return options->techniques != NULL ? options->techniques : &tree_techniques;
}
