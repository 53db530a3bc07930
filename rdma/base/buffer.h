/*
 * buffer.h
 *		Bytes on their way in or out of a stream.  Private to rdma/.
 *
 * What is put in at the end is taken out at the beginning.  Frames are padded to 8 bytes on the wire, so
 * that their parts are aligned here as well, as long as whole frames are taken.
 */
#ifndef SHERMAN_BUFFER_H
#define SHERMAN_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#define BUFFER_ALIGNMENT 8u

/* All zeroes: empty, with no memory. */
typedef struct Buffer
{
	uint8_t *data;
	uint32_t capacity;
	uint32_t begin; /* first byte that is still there */
	uint32_t end;   /* behind the last one */
} Buffer;

static inline uint32_t
buffer_used(const Buffer *buffer)
{
	return buffer->end - buffer->begin;
}

/* Room behind the end. */
static inline uint32_t
buffer_room(const Buffer *buffer)
{
	return buffer->capacity - buffer->end;
}

extern bool buffer_grow(Buffer *buffer, uint32_t bytes);

/*
 * Makes room for `bytes` more behind the end, perhaps by moving what is there.  False: no memory; the
 * buffer is as it was.
 */
static inline bool
buffer_reserve(Buffer *buffer, uint32_t bytes)
{
	if (buffer->begin == buffer->end)
		buffer->begin = buffer->end = 0;
	return buffer_room(buffer) >= bytes || buffer_grow(buffer, bytes);
}

extern void buffer_free(Buffer *buffer);

/* Gives the memory of an empty buffer back, if it is more than that. */
static inline void
buffer_trim(Buffer *buffer, uint32_t most)
{
	if (buffer->begin == buffer->end && buffer->capacity > most)
		buffer_free(buffer);
}

#endif /* SHERMAN_BUFFER_H */
