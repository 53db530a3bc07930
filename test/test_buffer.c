/*
 * test_buffer.c
 *		Bytes on their way in or out of a stream: they stay, in order and as aligned as they were, and there is the room asked for.
 */
#include <string.h>

#include "support/testing.h"
#include "rdma/base/buffer.h"

/* Puts in as many bytes as there is room for, and takes out the first `begin`: a buffer that has `used` of them. */
static void
fill(Buffer *buffer, uint32_t begin, uint32_t used)
{
	*buffer = (Buffer){0};
	assert_true(buffer_reserve(buffer, begin + used));
	for (uint32_t i = 0; i < begin + used; i++)
		buffer->data[i] = (uint8_t) (i * 7 + i / 256);
	buffer->end = begin + used;
	buffer->begin = begin;
}

/* More room, by moving or by more memory: all is there, as aligned as before, and the room may be written. */
static void
expect_room(uint32_t begin, uint32_t used, uint32_t bytes)
{
	Buffer buffer;
	uint32_t capacity;

	fill(&buffer, begin, used);
	capacity = buffer.capacity;
	assert_true(buffer_reserve(&buffer, bytes));
	assert_true(buffer.end <= buffer.capacity && buffer_room(&buffer) >= bytes);
	assert_int_equal(buffer_used(&buffer), used);
	assert_int_equal(buffer.begin % BUFFER_ALIGNMENT, begin % BUFFER_ALIGNMENT);
	for (uint32_t i = 0; i < used; i++)
		assert_int_equal(buffer.data[buffer.begin + i], (uint8_t) ((begin + i) * 7 + (begin + i) / 256));
	/* One that grows does so a few times only. */
	assert_true(buffer.capacity == capacity || buffer.capacity >= 2 * capacity);
	memset(buffer.data + buffer.end, 0xff, bytes);
	buffer_free(&buffer);
	assert_true(buffer.data == NULL && buffer.capacity == 0);
}

static void
test_room(void **state)
{
	Buffer buffer;
	uint32_t capacity;

	fill(&buffer, 0, 1);
	capacity = buffer.capacity;
	buffer_free(&buffer);
	for (uint32_t begin = 0; begin < 3 * BUFFER_ALIGNMENT; begin++)
	{
		for (uint32_t used = 1; used < 100; used += 13)
		{
			/* Around the place where moving is no longer enough. */
			for (uint32_t bytes = capacity - used - 2 * BUFFER_ALIGNMENT; bytes <= capacity - used + 4;
			     bytes++)
				expect_room(begin, used, bytes);
			expect_room(begin, used, 3 * capacity);
		}
	}
	expect_room(0, 5 * capacity, 1);
}

/* What cannot be had changes nothing. */
static void
test_no_memory(void **state)
{
	Buffer buffer;
	Buffer before;

	fill(&buffer, 3, 50);
	before = buffer;
	assert_false(buffer_reserve(&buffer, UINT32_MAX));
	assert_memory_equal(&buffer, &before, sizeof(buffer));
	/* And only an empty one gives its memory back, if it is more than that. */
	buffer_trim(&buffer, 0);
	assert_memory_equal(&buffer, &before, sizeof(buffer));
	buffer.begin = buffer.end;
	buffer_trim(&buffer, buffer.capacity);
	assert_true(buffer.data == before.data);
	buffer_trim(&buffer, buffer.capacity - 1);
	assert_true(buffer.data == NULL && buffer_room(&buffer) == 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
