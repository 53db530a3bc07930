/*
 * msd_page.c
 *		The page of metrics: a snapshot in Prometheus's text format, version 0.0.4.
 */
#include <inttypes.h>
#include <stddef.h>

#include "tree/msd/msd_metrics.h"

#define MICROSECONDS_PER_SECOND 1e6

/* A metric that is one word of the snapshot. */
typedef struct Metric
{
	const char *name; /* without its prefix */
	const char *type;
	const char *help;
	size_t offset; /* in MsdSnapshot */
} Metric;

#define FIGURE(field) offsetof(MsdSnapshot, figures.field)

static const Metric metrics[] = {
	{"generation", "gauge", "Starts of the daemon over this memory.", FIGURE(generation)},
	{"memory_bytes", "gauge", "Node memory that may be granted.", FIGURE(bytes_total)},
	{"memory_used_bytes", "gauge", "Node memory granted to trees.", FIGURE(bytes_used)},
	{"memory_quarantined_bytes", "gauge", "Node memory that was freed and not given back yet.",
     FIGURE(bytes_quarantined)},
	{"trees", "gauge", "Trees, and shares of trees of other memory nodes.", FIGURE(trees)},
	{"extents", "gauge", "Extents that trees have.", FIGURE(extents)},
	{"connections", "gauge", "Control connections.", FIGURE(server.connections)},
	{"connections_accepted_total", "counter", "Control connections accepted.",
     FIGURE(server.connections_accepted)},
	{"connections_refused_total", "counter",
     "Connections that were refused: permission, draining, no channel left, another protocol.",
     FIGURE(server.connections_refused)},
	{"authentication_failures_total", "counter", "Connections without a key or with a wrong one.",
     FIGURE(server.authentication_failures)},
	{"channels_granted_total", "counter", "Data channels granted.", FIGURE(server.channels_granted)},
	{"channels_killed_total", "counter", "Data channels ended, by their client or by fencing.",
     FIGURE(server.channels_killed)},
	{"channels_settled_total", "counter", "Data channels that died inside an operation and were made whole.",
     FIGURE(server.channels_settled)},
	{"processes_killed_total", "counter", "Client processes killed because they would not leave the memory.",
     FIGURE(server.processes_killed)},
	{"incarnations_total", "counter", "Incarnations granted, each after fencing all older channels.",
     FIGURE(server.incarnations)},
	{"locks_recovered_total", "counter", "Lock words of fenced incarnations that were freed.",
     FIGURE(server.locks_recovered)},
	{"chains_total", "counter", "Chains executed for clients that do not map the memory.",
     FIGURE(server.chains)},
	{"chain_operations_total", "counter", "Operations in these chains.", FIGURE(server.operations)},
	{"chains_refused_total", "counter", "Chains against the contract, or to what their client may not reach.",
     FIGURE(server.chains_refused)},
	{"chain_read_bytes_total", "counter", "Bytes read by these chains.", FIGURE(server.chain_read_bytes)},
	{"chain_written_bytes_total", "counter", "Bytes written by these chains.",
     FIGURE(server.chain_written_bytes)},
};

static void
write_head(FILE *page, const char *name, const char *type, const char *help)
{
	fprintf(page, "# HELP sherman_msd_%s %s\n# TYPE sherman_msd_%s %s\n", name, help, name, type);
}

/*
 * The value of a label in quotes. Names are of letters and digits; whatever they are, the page is well
 * formed.
 */
static void
write_quoted(FILE *page, const char *text)
{
	fputc('"', page);
	for (; *text != '\0'; text++)
	{
		if (*text == '"' || *text == '\\')
			fputc('\\', page);
		if (*text == '\n')
			fputs("\\n", page);
		else
			fputc(*text, page);
	}
	fputc('"', page);
}

static void
write_words(FILE *page, const MsdSnapshot *snapshot)
{
	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++)
	{
		const Metric *metric = &metrics[i];
		const uint64_t *word = (const uint64_t *) (const void *) ((const char *) snapshot + metric->offset);

		write_head(page, metric->name, metric->type, metric->help);
		fprintf(page, "sherman_msd_%s %" PRIu64 "\n", metric->name, *word);
	}
}

/* One word of each tenant. */
static void
write_tenants(FILE *page, const ServiceFigures *figures, const char *name, const char *help, size_t offset)
{
	write_head(page, name, "gauge", help);
	for (uint64_t i = 0; i < figures->tenants; i++)
	{
		const ServiceTenant *tenant = &figures->tenant[i];

		fprintf(page, "sherman_msd_%s{tenant=", name);
		write_quoted(page, tenant->name);
		fprintf(page, "} %" PRIu64 "\n", *(const uint64_t *) (const void *) ((const char *) tenant + offset));
	}
}

/* The calls of one method as a histogram. */
static void
write_calls(FILE *page, const char *method, const ServiceCalls *calls)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < SERVICE_BUCKETS; i++)
	{
		count += calls->buckets[i];
		fprintf(page, "sherman_msd_call_duration_seconds_bucket{method=\"%s\",le=\"", method);
		if (i < SERVICE_BUCKETS - 1)
			fprintf(page, "%g", service_bucket_us[i] / MICROSECONDS_PER_SECOND);
		else
			fputs("+Inf", page);
		fprintf(page, "\"} %" PRIu64 "\n", count);
	}
	fprintf(page, "sherman_msd_call_duration_seconds_sum{method=\"%s\"} %.6f\n", method,
	        (double) calls->total_us / MICROSECONDS_PER_SECOND);
	fprintf(page, "sherman_msd_call_duration_seconds_count{method=\"%s\"} %" PRIu64 "\n", method, count);
}

void
msd_metrics_write(FILE *page, const MsdSnapshot *snapshot, const char *version, uint64_t now_us)
{
	static const char *const memory_states[] = {"new", "kept", "recovered", "loaded"};
	const ServiceFigures *figures = &snapshot->figures;

	write_head(page, "info", "gauge", "The daemon, and how it found its memory.");
	fprintf(page, "sherman_msd_info{version=\"%s\",memory=\"%s\"} 1\n", version,
	        memory_states[figures->memory_state % (sizeof(memory_states) / sizeof(memory_states[0]))]);
	write_head(page, "state", "gauge", "1 for the state that the daemon is in.");
	fprintf(page, "sherman_msd_state{state=\"serving\"} %d\n", snapshot->state == MSD_SERVING);
	fprintf(page, "sherman_msd_state{state=\"draining\"} %d\n", snapshot->state == MSD_DRAINING);
	write_head(page, "uptime_seconds", "gauge", "Since the daemon started.");
	fprintf(page, "sherman_msd_uptime_seconds %.3f\n",
	        (double) (now_us - snapshot->started_us) / MICROSECONDS_PER_SECOND);
	write_head(page, "figures_age_seconds", "gauge",
	           "Since the loop that serves clients gave these figures: more than a few seconds is trouble.");
	fprintf(page, "sherman_msd_figures_age_seconds %.3f\n",
	        (double) (now_us - snapshot->published_us) / MICROSECONDS_PER_SECOND);
	write_words(page, snapshot);
	write_head(page, "channels", "gauge", "Data channels now.");
	fprintf(page, "sherman_msd_channels{transport=\"shm\"} %" PRIu64 "\n",
	        figures->server.channels - figures->server.channels_tcp - figures->server.channels_verbs);
	fprintf(page, "sherman_msd_channels{transport=\"tcp\"} %" PRIu64 "\n", figures->server.channels_tcp);
	fprintf(page, "sherman_msd_channels{transport=\"verbs\"} %" PRIu64 "\n", figures->server.channels_verbs);
	write_tenants(page, figures, "tenant_memory_bytes", "Node memory granted to a tenant.",
	              offsetof(ServiceTenant, bytes));
	write_tenants(page, figures, "tenant_quota_bytes", "The most that a tenant may have; 0 is no quota.",
	              offsetof(ServiceTenant, quota));
	write_tenants(page, figures, "tenant_trees", "Trees and shares of a tenant.",
	              offsetof(ServiceTenant, trees));
	write_head(page, "call_duration_seconds", "histogram", "Calls of the service, by method.");
	for (uint32_t i = 0; i < SERVICE_METHODS; i++)
		write_calls(page, service_method_name(i), &figures->calls[i]);
	write_head(page, "call_failures_total", "counter", "Calls that did not return ok.");
	for (uint32_t i = 0; i < SERVICE_METHODS; i++)
		fprintf(page, "sherman_msd_call_failures_total{method=\"%s\"} %" PRIu64 "\n", service_method_name(i),
		        figures->calls[i].failed);
}
