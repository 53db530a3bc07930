/*
 * test_page.c
 *		The page of metrics of figures that a test machine does not come to: clients of every transport at once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/testing.h"
#include "tree/msd/msd_metrics.h"

static void
expect_line(const char *page, const char *line)
{
	if (strstr(page, line) == NULL)
		fail_msg("the page has no \"%s\"", line);
}

static void
test_channels(void **state)
{
	MsdSnapshot snapshot = {.state = MSD_SERVING, .started_us = 1000000, .published_us = 3000000};
	char *text = NULL;
	size_t bytes = 0;
	FILE *page = open_memstream(&text, &bytes);

	assert_non_null(page);
	snapshot.figures.server.channels = 9;
	snapshot.figures.server.channels_tcp = 2;
	snapshot.figures.server.channels_verbs = 3;
	snapshot.figures.server.chains_refused = 17;
	msd_metrics_write(page, &snapshot, "1", 5000000);
	fclose(page);
	expect_line(text, "\nsherman_msd_channels{transport=\"shm\"} 4\n");
	expect_line(text, "\nsherman_msd_channels{transport=\"tcp\"} 2\n");
	expect_line(text, "\nsherman_msd_channels{transport=\"verbs\"} 3\n");
	expect_line(text, "\nsherman_msd_chains_refused_total 17\n");
	expect_line(text, "\nsherman_msd_uptime_seconds 4.000\n");
	expect_line(text, "\nsherman_msd_figures_age_seconds 2.000\n");
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_channels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
