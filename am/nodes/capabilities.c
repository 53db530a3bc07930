/*
 * capabilities.c
 *		What a memory node vouches for over a connection, in words.
 */
#include "am/base/sherman.h"

#include "lib/stringinfo.h"

#include "am/base/shared.h"
#include "am/nodes/nodes.h"

char *
sherman_capabilities_text(const FabricCapabilities *capabilities)
{
	StringInfoData text;

	initStringInfo(&text);
	if (capabilities->flags & FABRIC_CAP_OPERATION_ATOMIC)
		appendStringInfoString(&text, "operations atomic, ");
	appendStringInfoString(&text, capabilities->flags & FABRIC_CAP_LINE_ATOMIC ? "lines atomic, " :
						   "lines not atomic, ");
	if (capabilities->flags & FABRIC_CAP_ORDERED_CAS_READ)
		appendStringInfoString(&text, "reads ordered behind swaps, ");
	appendStringInfo(&text, "chains of %u, %u outstanding, writes whole to %u bytes, "
					 "%u lock words in the %s's memory",
					 capabilities->max_chain, capabilities->max_outstanding, capabilities->one_packet,
					 capabilities->lock_words, capabilities->flags & FABRIC_CAP_DEVICE_LOCKS ? "device" : "host");
	return text.data;
}
