/*
 * test_top.c
 *		`msd top`: what it reads of a page of metrics, and what it shows of two of them.  The program is test_msd_top.sh's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/testing.h"
#include "tree/msd/msd_metrics.h"
#include "tree/msd/msd_top.h"

/* A node that has said this page, so many seconds behind what it said before. */
static void
say(TopNode *node, const char *text, double seconds)
{
	char *copy = strdup(text);
	TopPage page;

	assert_non_null(copy);
	top_page_parse(copy, &page);
	free(copy);
	assert_true(page.is_msd);
	top_node_take(node, &page, seconds);
}

/* What is shown, for the caller to free. */
static char *
shown(const TopNode *node)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	top_screen(out, node, 1);
	fclose(out);
	return text;
}

static void
expect_shown(const TopNode *node, const char *part)
{
	char *text = shown(node);

	if (strstr(text, part) == NULL)
		fail_msg("there is no \"%s\" in:\n%s", part, text);
	free(text);
}

static void
expect_not_shown(const TopNode *node, const char *part)
{
	char *text = shown(node);

	if (strstr(text, part) != NULL)
		fail_msg("there is a \"%s\" in:\n%s", part, text);
	free(text);
}

#define INFO "sherman_msd_info{version=\"1.1\",memory=\"kept\"} 1\n"

/* What msd itself writes is read word by word. */
static void
test_page(void **state)
{
	MsdSnapshot snapshot = {.state = MSD_DRAINING, .started_us = 0, .published_us = 93784000000};
	ServiceFigures *figures = &snapshot.figures;
	TopNode node = {.address = "127.0.0.1:9464"};
	char *text = NULL;
	size_t bytes = 0;
	FILE *page = open_memstream(&text, &bytes);

	assert_non_null(page);
	figures->bytes_total = 8ull << 30;
	figures->bytes_used = 2ull << 30;
	figures->trees = 12;
	figures->server.connections = 7;
	figures->server.channels = 6;
	figures->server.channels_tcp = 2;
	figures->server.channels_verbs = 1;
	figures->server.chains = 93784ull * 1500;
	figures->server.operations = 93784ull * 3000;
	figures->server.chain_read_bytes = 93784ull * 2048;
	figures->server.chain_written_bytes = 93784ull * 512;
	figures->server.chains_refused = 1;
	figures->server.connections_refused = 2;
	figures->server.authentication_failures = 4;
	figures->tenants = 1;
	strcpy(figures->tenant[0].name, "orders");
	figures->tenant[0].bytes = 1ull << 30;
	figures->tenant[0].quota = 2ull << 30;
	figures->tenant[0].trees = 5;
	figures->calls[0].buckets[0] = 99;
	figures->calls[0].buckets[SERVICE_BUCKETS - 1] = 1;
	figures->calls[0].total_us = 100 * 250;
	figures->calls[0].failed = 3;
	msd_metrics_write(page, &snapshot, "1.1", 93784000000);
	fclose(page);
	say(&node, text, 0);
	free(text);
	expect_shown(
		&node,
		"127.0.0.1:9464           draining   1d02h    8.0G    2.0G   25%       12     7     3     2     1\n");
	/* Behind one look: the means since the start. */
	expect_shown(
		&node,
		"127.0.0.1:9464               1.5k       3.0k      2.0k       512        7  since its start\n");
	expect_shown(&node, "orders               1.0G     2.0G   50%        5\n");
	expect_shown(&node, service_method_name(0));
	expect_shown(&node, "   250us <=");
	/* Methods that nobody called are left out. */
	expect_not_shown(&node, service_method_name(1));
}

static void
test_rates(void **state)
{
	TopNode node = {.address = "a:1"};

	say(&node,
	    INFO "sherman_msd_uptime_seconds 100\nsherman_msd_chains_total 1000000\n"
	         "sherman_msd_call_duration_seconds_bucket{method=\"create\",le=\"0.001\"} 10\n"
	         "sherman_msd_call_duration_seconds_bucket{method=\"create\",le=\"+Inf\"} 10\n"
	         "sherman_msd_call_duration_seconds_sum{method=\"create\"} 0.001\n"
	         "sherman_msd_call_duration_seconds_count{method=\"create\"} 10\n",
	    0);
	expect_shown(&node, "create                0.1    100us");
	say(&node,
	    INFO "sherman_msd_uptime_seconds 104\nsherman_msd_chains_total 1000200\n"
	         "sherman_msd_call_duration_seconds_bucket{method=\"create\",le=\"0.001\"} 12\n"
	         "sherman_msd_call_duration_seconds_bucket{method=\"create\",le=\"+Inf\"} 30\n"
	         "sherman_msd_call_duration_seconds_sum{method=\"create\"} 4.001\n"
	         "sherman_msd_call_duration_seconds_count{method=\"create\"} 30\n",
	    4);
	expect_shown(&node, "a:1                            50 ");
	expect_not_shown(&node, "since its start");
	/* Of the 20 calls between, 18 took longer than all limits. */
	expect_shown(&node, "create                5.0  200.0ms  >   1.0ms");
	/* One that was started anew counts from 0: what it did before is not subtracted. */
	say(&node, INFO "sherman_msd_uptime_seconds 2\nsherman_msd_chains_total 40\n", 4);
	expect_shown(&node, "a:1                            20 ");
	expect_shown(&node, "since its start");
	expect_not_shown(&node, "create");
}

static void
test_age(void **state)
{
	TopNode node = {.address = "a:1"};

	say(&node, INFO "sherman_msd_uptime_seconds 100\nsherman_msd_figures_age_seconds 6.5\n", 0);
	expect_shown(&node, "hangs");
	strcpy(node.failure, "Connection refused");
	expect_shown(&node, "a:1                      away: Connection refused; 0 of 0 were in use\n");
	expect_not_shown(&node, "hangs");
}

/* What another process says is shown as it is neither longer nor stranger than names are. */
static void
test_strangers(void **state)
{
	TopNode node = {.address = "a:1"};
	char *many = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&many, &bytes);

	assert_non_null(out);
	fputs(INFO "nothing\n{\n}\nsherman_msd_\nsherman_msd_x\nsherman_msd_tenant_trees{tenant=\"\n"
	           "sherman_msd_tenant_trees{tenant=\"a\033[2Jb\007\"} 3\nsherman_msd_uptime_seconds\n"
	           "sherman_msd_call_failures_total{method=\"\303\251\"} 1e999\n",
	      out);
	for (int i = 0; i < 200; i++)
		fprintf(out,
		        "sherman_msd_tenant_trees{tenant=\"%0200d\"} "
		        "1\nsherman_msd_call_duration_seconds_count{method=\"%d\"} 1\n"
		        "sherman_msd_call_duration_seconds_bucket{method=\"1\",le=\"%d\"} 1\n",
		        i, i, i);
	fclose(out);
	say(&node, many, 0);
	free(many);
	assert_int_equal(node.page.methods, TOP_METHODS);
	expect_shown(&node, "a?[2Jb? ");
	expect_not_shown(&node, "\033");
	expect_not_shown(&node, "\007");
}

static void
test_not_ours(void **state)
{
	char text[] = "# HELP node_load1 x\nnode_load1 0.5\nsherman_msd_infos 1\n";
	TopPage page;

	top_page_parse(text, &page);
	assert_false(page.is_msd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page),      cmocka_unit_test(test_rates),    cmocka_unit_test(test_age),
		cmocka_unit_test(test_strangers), cmocka_unit_test(test_not_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
