/*
 * buffer.c
 *		See buffer.h.
 */
#include <stdlib.h>
#include <string.h>

#include "rdma/base/buffer.h"

/* Memory is taken in steps, so that a buffer that grows does so a few times only. */
#define STEP_BYTES 4096u

bool
buffer_grow(Buffer *buffer, uint32_t bytes)
{
	uint32_t used = buffer_used(buffer);
	/* What is aligned stays so, also behind a part of a frame that was sent. */
	uint32_t begin = buffer->begin % BUFFER_ALIGNMENT;
	uint64_t wanted = (uint64_t) begin + used + bytes;
	uint8_t *data = buffer->data;

	if (wanted > buffer->capacity)
	{
		if (wanted < 2ull * buffer->capacity && 2ull * buffer->capacity <= UINT32_MAX)
			wanted = 2ull * buffer->capacity;
		wanted = (wanted + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
		data = wanted > UINT32_MAX ? NULL : malloc(wanted);
		if (data == NULL)
			return false;
	}
	if (used > 0)
		memmove(data + begin, buffer->data + buffer->begin, used);
	if (data != buffer->data)
	{
		free(buffer->data);
		buffer->data = data;
		buffer->capacity = (uint32_t) wanted;
	}
	buffer->begin = begin;
	buffer->end = begin + used;
	return true;
}

void
buffer_free(Buffer *buffer)
{
	free(buffer->data);
	*buffer = (Buffer){0};
}
