/*
 * test_detail.c
 *		A line of detail that has no room: the middles of what stands in quotes go, and the cause behind them stays.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/testing.h"
#include "rdma/base/detail.h"
#include "rdma/base/transport.h"

/* A path of so many bytes: "/begin", then what fills it, then "end". */
static char *
path_of(size_t bytes, const char *filler)
{
	char *path = malloc(bytes + 1);
	size_t place = strlen("/begin");

	assert_non_null(path);
	assert_true(bytes > place + strlen("end"));
	memcpy(path, "/begin", place);
	for (size_t i = 0; place + i < bytes - strlen("end"); i++)
		path[place + i] = filler[i % strlen(filler)];
	memcpy(path + bytes - strlen("end"), "end", strlen("end") + 1);
	return path;
}

static void
assert_ends(const char *line, const char *end)
{
	assert_true(strlen(line) >= strlen(end));
	assert_string_equal(line + strlen(line) - strlen(end), end);
}

/* What has room is as it is, to the last byte; one byte more costs a middle. */
static void
test_room(void **state)
{
	static const char rest[] = "\"\": no such file";
	char detail[FABRIC_DETAIL_BYTES + 1];
	const size_t most = FABRIC_DETAIL_BYTES - 1 - strlen(rest);

	for (size_t bytes = most - 2; bytes <= most + 5; bytes++)
	{
		char *path = path_of(bytes, "directory/");
		char whole[2 * FABRIC_DETAIL_BYTES];

		snprintf(whole, sizeof(whole), "\"%s\": no such file", path);
		detail[FABRIC_DETAIL_BYTES] = 'x';
		detail_set(detail, "\"%s\": no such file", path);
		assert_int_equal(detail[FABRIC_DETAIL_BYTES], 'x');
		if (bytes <= most)
			assert_string_equal(detail, whole);
		else
		{
			assert_int_equal(strlen(detail), FABRIC_DETAIL_BYTES - 1);
			assert_non_null(strstr(detail, "..."));
			assert_int_equal(strncmp(detail, "\"/begin", 7), 0);
			assert_ends(detail, "end\": no such file");
		}
		free(path);
	}
	detail_set(NULL, "\"%s\"", "nobody reads it");
}

/* Of two paths, however long, something of both ends is left, and all of the text between and behind them. */
static void
test_two_paths(void **state)
{
	static const size_t lengths[][2] = {{4000, 4000}, {4000, 30},  {30, 4000},
	                                    {150, 150},   {130, 4000}, {100, 110}};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
	{
		char *first = path_of(lengths[i][0], "one/");
		char *second = path_of(lengths[i][1], "two/");
		char detail[FABRIC_DETAIL_BYTES];
		const char *between;

		detail_set(detail, "cannot rename \"%s\" to \"%s\": %s", first, second, "the disk is full");
		assert_true(strlen(detail) < FABRIC_DETAIL_BYTES);
		assert_int_equal(strncmp(detail, "cannot rename \"/begin", 20), 0);
		between = strstr(detail, "end\" to \"/begin");
		assert_non_null(between);
		assert_ends(between, "end\": the disk is full");
		/* What is short is whole. */
		if (lengths[i][0] == 30)
			assert_non_null(strstr(detail, first));
		if (lengths[i][1] == 30)
			assert_non_null(strstr(detail, second));
		if (lengths[i][0] + lengths[i][1] == 210)
			assert_null(strstr(detail, "..."));
		free(first);
		free(second);
	}
}

/* No character of several bytes is cut, wherever the middle lies. */
static void
test_characters(void **state)
{
	for (size_t bytes = 300; bytes < 320; bytes++)
	{
		/* Three bytes a character, and the path's length makes the middle any of them. */
		char *path = path_of(6 + 3 * 100 + 3, "\xe2\x82\xac");
		char detail[FABRIC_DETAIL_BYTES];
		uint32_t characters = 0;

		detail_set(detail, "%.*s\"%s\": no", (int) (bytes - 300), "....................", path);
		for (const char *c = strstr(detail, "/begin") + 6; strncmp(c, "end", 3) != 0; c += 3)
		{
			if (strncmp(c, "...", 3) == 0)
				continue;
			assert_int_equal(strncmp(c, "\xe2\x82\xac", 3), 0);
			characters++;
		}
		assert_in_range(characters, 60, 85);
		assert_ends(detail, "end\": no");
		free(path);
	}
}

/* Without quotes, or with too much around them, the line ends where its room does. */
static void
test_no_quotes(void **state)
{
	char text[2 * FABRIC_DETAIL_BYTES];
	char detail[FABRIC_DETAIL_BYTES];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	detail_set(detail, "%s", text);
	assert_int_equal(strlen(detail), FABRIC_DETAIL_BYTES - 1);
	detail_set(detail, "\"open %s", text);
	assert_int_equal(strlen(detail), FABRIC_DETAIL_BYTES - 1);
	detail_set(detail, "\"short\" %s", text);
	assert_int_equal(strncmp(detail, "\"short\" xxx", 11), 0);
	assert_int_equal(strlen(detail), FABRIC_DETAIL_BYTES - 1);
	/* Of 44 bytes one can go, of 43 none. */
	detail_set(detail, "\"%.43s\" %.210s", text, text);
	assert_null(strstr(detail, "..."));
	assert_int_equal(strlen(detail), FABRIC_DETAIL_BYTES - 1);
	detail_set(detail, "\"%.44s\" %.208s", text, text);
	assert_null(strstr(detail, "..."));
	assert_int_equal(strlen(detail), FABRIC_DETAIL_BYTES - 1);
	detail_set(detail, "\"%.44s\" %.209s", text, text);
	assert_non_null(strstr(detail, "..."));
	assert_int_equal(strlen(detail), FABRIC_DETAIL_BYTES - 1);
	assert_int_equal(strspn(strchr(detail, ' ') + 1, "x"), 209);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_two_paths),
		cmocka_unit_test(test_characters),
		cmocka_unit_test(test_no_quotes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
