/*
 * traffic.c
 *		See traffic.h.  Who measures reads the sums of this process before and behind what is measured: so work that another statement does
 *		inside, in a function, counts for both, as buffers do.
 */
#include "am/nodes/traffic.h"

#include "lib/stringinfo.h"

#include "am/nodes/nodes.h"

void
sherman_traffic_read(ShermanTraffic *traffic)
{
	TreeClient *client = sherman_connection_if_open();
	TreeCounters counters;

	memset(traffic, 0, sizeof(*traffic));
	traffic->waited_us = sherman_connection_waited_us();
	/* It stays open until the process ends. */
	if (client == NULL)
		return;
	tree_client_counters(client, &counters);
	traffic->leaf_hits = counters.leaf_hits;
	traffic->leaf_misses = counters.leaf_misses;
	traffic->round_trips = counters.round_trips;
	traffic->read_bytes = counters.read_bytes;
	traffic->written_bytes = counters.written_bytes;
}

void
sherman_traffic_add_since(ShermanTraffic *sum, const ShermanTraffic *before)
{
	ShermanTraffic now;

	sherman_traffic_read(&now);
	sum->leaf_hits += now.leaf_hits - before->leaf_hits;
	sum->leaf_misses += now.leaf_misses - before->leaf_misses;
	sum->round_trips += now.round_trips - before->round_trips;
	sum->read_bytes += now.read_bytes - before->read_bytes;
	sum->written_bytes += now.written_bytes - before->written_bytes;
	sum->waited_us += now.waited_us - before->waited_us;
}

static void
explain_text(const ShermanTraffic *traffic, ExplainState *es)
{
	StringInfoData line;

	if (traffic->leaf_hits + traffic->leaf_misses + traffic->round_trips == 0)
		return;
	initStringInfo(&line);
	appendStringInfo(&line, "leaf cache hits=" UINT64_FORMAT " misses=" UINT64_FORMAT ", round trips=" UINT64_FORMAT,
					 traffic->leaf_hits, traffic->leaf_misses, traffic->round_trips);
	appendStringInfo(&line, ", bytes read=" UINT64_FORMAT " written=" UINT64_FORMAT, traffic->read_bytes, traffic->written_bytes);
	if (es->timing)
		appendStringInfo(&line, ", wait time=%0.3f", traffic->waited_us / 1000.0);
	ExplainPropertyText("Sherman", line.data, es);
	pfree(line.data);
}

void
sherman_traffic_explain(const ShermanTraffic *traffic, ExplainState *es)
{
	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		explain_text(traffic, es);
		return;
	}
	ExplainOpenGroup("Sherman", "Sherman", true, es);
	ExplainPropertyUInteger("Leaf Cache Hits", NULL, traffic->leaf_hits, es);
	ExplainPropertyUInteger("Leaf Cache Misses", NULL, traffic->leaf_misses, es);
	ExplainPropertyUInteger("Round Trips", NULL, traffic->round_trips, es);
	ExplainPropertyUInteger("Bytes Read", NULL, traffic->read_bytes, es);
	ExplainPropertyUInteger("Bytes Written", NULL, traffic->written_bytes, es);
	if (es->timing)
		ExplainPropertyFloat("Wait Time", "ms", traffic->waited_us / 1000.0, 3, es);
	ExplainCloseGroup("Sherman", "Sherman", true, es);
}
