/*
 * msd_top_screen.c
 *		What `msd top` shows: memory nodes, their rates, their calls, their tenants.
 */
#include "tree/msd/msd_top.h"

#include <string.h>

#define ADDRESS_WIDTH 24
#define SIZE_BYTES 32u
#define MINUTE 60u
#define HOUR (60u * MINUTE)
#define DAY (24u * HOUR)

/* The part of calls that a shown time is not exceeded by. */
#define SLOWEST 0.95

/* "12.3G": a number of bytes, or of anything, in four to six characters. */
static const char *
short_number(char *text, double value, double step)
{
	static const char units[] = " kMGTPE";
	size_t unit = 0;

	for (; value >= step * 0.9995 && unit < sizeof(units) - 2; unit++)
		value /= step;
	snprintf(text, SIZE_BYTES, unit == 0 || value >= 100 ? "%.0f%c" : "%.1f%c", value, units[unit]);
	if (unit == 0)
		text[strlen(text) - 1] = '\0';
	return text;
}

static const char *
size_text(char *text, double bytes)
{
	return short_number(text, bytes, 1024);
}

/* What grew, by the second; below 10 with a digit behind the point, as a call in ten seconds is no 0. */
static const char *
rate_text(char *text, double now, double before, double seconds, double step)
{
	double rate = seconds > 0 ? (now - before) / seconds : 0;

	if (rate > 0 && rate < 9.95)
		snprintf(text, SIZE_BYTES, "%.1f", rate);
	else
		short_number(text, rate, step);
	return text;
}

/* "1d02h", "3h04m", "5m06s". */
static const char *
time_text(char *text, double seconds)
{
	unsigned long long s = seconds > 0 ? (unsigned long long) seconds : 0;

	if (s >= DAY)
		snprintf(text, SIZE_BYTES, "%llud%02lluh", s / DAY, s % DAY / HOUR);
	else if (s >= HOUR)
		snprintf(text, SIZE_BYTES, "%lluh%02llum", s / HOUR, s % HOUR / MINUTE);
	else
		snprintf(text, SIZE_BYTES, "%llum%02llus", s / MINUTE, s % MINUTE);
	return text;
}

static const char *
percent_text(char *text, double part, double whole)
{
	if (whole > 0)
		snprintf(text, SIZE_BYTES, "%.0f%%", 100 * part / whole);
	else
		snprintf(text, SIZE_BYTES, "-");
	return text;
}

/* "350us", "1.2ms", "3.4s". */
static const char *
latency_text(char *text, double seconds)
{
	if (seconds < 0.001)
		snprintf(text, SIZE_BYTES, "%.0fus", seconds * 1e6);
	else if (seconds < 1)
		snprintf(text, SIZE_BYTES, "%.1fms", seconds * 1e3);
	else
		snprintf(text, SIZE_BYTES, "%.1fs", seconds);
	return text;
}

/* ---- memory nodes ---- */

static void
show_node(FILE *out, const TopNode *node)
{
	const TopPage *page = &node->page;
	char up[SIZE_BYTES], memory[SIZE_BYTES], used[SIZE_BYTES], percent[SIZE_BYTES];

	fprintf(out, "%-*.*s ", ADDRESS_WIDTH, ADDRESS_WIDTH, node->address);
	if (node->failure[0] != '\0')
		fprintf(out, "away: %s", node->failure);
	if (node->failure[0] != '\0' && node->known)
		fprintf(out, "; %s of %s were in use", size_text(used, page->used), size_text(memory, page->memory));
	if (node->failure[0] == '\0')
		fprintf(out, "%-8s %7s %7s %7s %5s %8.0f %5.0f %5.0f %5.0f %5.0f",
		        page->age > 5    ? "hangs"
		        : page->draining ? "draining"
		                         : "serving",
		        time_text(up, page->uptime), size_text(memory, page->memory), size_text(used, page->used),
		        percent_text(percent, page->used, page->memory), page->trees, page->connections, page->shm,
		        page->tcp, page->verbs);
	fputc('\n', out);
}

static void
show_rates(FILE *out, const TopNode *node)
{
	static const TopPage nothing;
	const TopPage *now = &node->page;
	const TopPage *then = node->has_before ? &node->before : &nothing;
	char chains[SIZE_BYTES], operations[SIZE_BYTES], read[SIZE_BYTES], written[SIZE_BYTES];

	fprintf(out, "%-*.*s %8s %10s %9s %9s %8.0f  %s\n", ADDRESS_WIDTH, ADDRESS_WIDTH, node->address,
	        rate_text(chains, now->chains, then->chains, node->seconds, 1000),
	        rate_text(operations, now->operations, then->operations, node->seconds, 1000),
	        rate_text(read, now->read_bytes, then->read_bytes, node->seconds, 1024),
	        rate_text(written, now->written_bytes, then->written_bytes, node->seconds, 1024),
	        now->refused - then->refused, node->has_before ? "" : "since its start");
}

/* ---- calls ---- */

static const TopCalls *
calls_before(const TopNode *node, const char *method)
{
	static const TopCalls nothing;

	for (uint32_t i = 0; node->has_before && i < node->before.methods; i++)
	{
		if (strcmp(node->before.calls[i].method, method) == 0)
			return &node->before.calls[i];
	}
	return &nothing;
}

/* The time that so many of the calls between did not exceed, by their histogram; below 0: it is more than all of its limits. */
static double
slowest(const TopCalls *now, const TopCalls *then)
{
	double wanted = SLOWEST * (now->count - then->count);

	for (uint32_t i = 0; i + 1 < now->buckets; i++)
	{
		if (now->bucket[i] - (i < then->buckets ? then->bucket[i] : 0) >= wanted)
			return now->limit[i];
	}
	return -1;
}

static void
show_calls(FILE *out, const TopNode *node, const TopCalls *now)
{
	const TopCalls *then = calls_before(node, now->method);
	double count = now->count - then->count;
	double limit = slowest(now, then);
	char rate[SIZE_BYTES], mean[SIZE_BYTES], most[SIZE_BYTES];

	if (count <= 0)
		return;
	fprintf(out, "%-*.*s %-16.16s %8s %8s %2s%8s %8.0f\n", ADDRESS_WIDTH, ADDRESS_WIDTH, node->address,
	        now->method, rate_text(rate, now->count, then->count, node->seconds, 1000),
	        latency_text(mean, (now->seconds - then->seconds) / count), limit < 0 ? ">" : "<=",
	        latency_text(most, limit >= 0         ? limit
	                           : now->buckets > 1 ? now->limit[now->buckets - 2]
	                                              : 0),
	        now->failed - then->failed);
}

static void
show_tenants(FILE *out, const TopNode *node)
{
	char bytes[SIZE_BYTES], quota[SIZE_BYTES], percent[SIZE_BYTES];

	for (uint32_t i = 0; i < node->page.tenant_count; i++)
	{
		const TopTenant *tenant = &node->page.tenants[i];

		fprintf(out, "%-*.*s %-16.16s %8s %8s %5s %8.0f\n", ADDRESS_WIDTH, ADDRESS_WIDTH, node->address,
		        tenant->name, size_text(bytes, tenant->bytes),
		        tenant->quota > 0 ? size_text(quota, tenant->quota) : "-",
		        percent_text(percent, tenant->bytes, tenant->quota), tenant->trees);
	}
}

void
top_screen(FILE *out, const TopNode *nodes, uint32_t count)
{
	fprintf(out, "%-*s %-8s %7s %7s %7s %5s %8s %5s %5s %5s %5s\n", ADDRESS_WIDTH, "MEMORY NODE", "STATE",
	        "UP", "MEMORY", "USED", "", "INDEXES", "CONN", "SHM", "TCP", "VERBS");
	for (uint32_t i = 0; i < count; i++)
		show_node(out, &nodes[i]);
	fprintf(out, "\n%-*s %8s %10s %9s %9s %8s\n", ADDRESS_WIDTH, "A SECOND", "CHAINS", "OPERATIONS", "READ",
	        "WRITTEN", "REFUSED");
	for (uint32_t i = 0; i < count; i++)
	{
		if (nodes[i].failure[0] == '\0')
			show_rates(out, &nodes[i]);
	}
	fprintf(out, "\n%-*s %-16s %8s %8s %10s %8s\n", ADDRESS_WIDTH, "CALLS", "METHOD", "A SECOND", "MEAN",
	        "95 %", "FAILED");
	for (uint32_t i = 0; i < count; i++)
	{
		for (uint32_t call = 0; nodes[i].failure[0] == '\0' && call < nodes[i].page.methods; call++)
			show_calls(out, &nodes[i], &nodes[i].page.calls[call]);
	}
	fprintf(out, "\n%-*s %-16s %8s %8s %5s %8s\n", ADDRESS_WIDTH, "TENANTS", "NAME", "USED", "QUOTA", "",
	        "INDEXES");
	for (uint32_t i = 0; i < count; i++)
	{
		if (nodes[i].failure[0] == '\0')
			show_tenants(out, &nodes[i]);
	}
}
