/*
 * frame_table.c
 *		See frame_table.h.
 */
#include "tree/shared/frame_table.h"

/* At most: the heads of 64 sets of leaves are 16 pages, which the system maps at one page fault. */
#define NEIGHBORS 64u

uint64_t
frames_set_bytes(uint32_t ways, uint32_t image_bytes)
{
	assert(image_bytes % LINE_BYTES == 0);
	return ways * (sizeof(uint64_t) + LINE_BYTES + (uint64_t) image_bytes);
}

void
frames_lay_out(FrameTable *table, void *memory)
{
	assert(((uintptr_t) memory & (LINE_BYTES - 1)) == 0);
	assert(table->sets > 0 && (uint64_t) table->sets * table->ways <= UINT32_MAX);
	assert(table->ways % LINE_WORDS == 0 && (table->ways & (table->ways - 1)) == 0);
	assert(table->fills_of_tick > 0);
	table->number_shift = 63u - (uint32_t) __builtin_clzll(pointer_make(0, table->image_bytes));
	table->neighbors = NEIGHBORS;
	while (table->neighbors > table->sets)
		table->neighbors /= 2;
	table->tags = memory;
	table->frames = (char *) (table->tags + frames_count(table));
	table->images = (uint64_t *) (table->frames + (size_t) frames_count(table) * LINE_BYTES);
}

void
frames_reset(FrameTable *table)
{
	memset(table->tags, 0, (size_t) ((char *) table->images - (char *) table->tags));
}

FrameVictim
frame_victim(const FrameTable *table, const FrameKey *key, uint32_t way, uint32_t span, FrameWorth *worth)
{
	FrameVictim victim = {.worth = FRAME_KEPT};

	for (uint32_t i = 0; i < table->ways && victim.worth > 0; i++)
	{
		uint32_t number = key->first + (way + i) % table->ways;
		uint64_t sequence = sequence_begin_read(&frame_head(table, number)->sequence);
		uint64_t lost = worth(table, number, span);

		/* Another process fills the frame, or was killed while it did. */
		if ((sequence & 1) == 0 && lost < victim.worth)
			victim = (FrameVictim){.number = number, .sequence = sequence, .worth = lost};
	}
	return victim;
}

void
frames_tick(FrameTable *table)
{
	assert(table->fills_of_tick > 0);
	if (__atomic_add_fetch(&table->fills, 1, __ATOMIC_RELAXED) % table->fills_of_tick == 0)
		__atomic_fetch_add(&table->clock, 1, __ATOMIC_RELAXED);
}
