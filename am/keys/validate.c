/*
 * validate.c
 *		Checks of operator classes.
 */
#include "am/base/sherman.h"

#include "access/nbtree.h"

#include "am/keys/keys.h"

/*
 * amvalidate: our operator classes are btree's in all but the access method, with the same strategies and
 * support functions, so btree's checks are ours.  Its messages (level INFO) name btree.
 */
bool
sherman_validate(Oid opclass)
{
	return btvalidate(opclass);
}
