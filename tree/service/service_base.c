/*
 * service_base.c
 *		Used by all parts of the service: time, log, owners of trees, limits of tenants.
 */
#include <stdarg.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "tree/service/service_state.h"

uint64_t
service_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000u + (uint64_t) now.tv_nsec / 1000u;
}

uint64_t
service_random(void)
{
	uint64_t value;

	if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != (ssize_t) sizeof(value))
		value = service_now_us() * 0x9e3779b97f4a7c15ull ^ (uint64_t) getpid() << 32;
	return value;
}

void
service_log(const Service *service, FabricLogLevel level, const char *format, ...)
{
	char line[FABRIC_DETAIL_BYTES];
	va_list arguments;

	assert(service != NULL);
	assert(format != NULL);
	if (service->options.log == NULL)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	service->options.log(service->options.log_argument, level, line);
}

const char *
service_tenant_name(const Service *service, uint32_t tenant)
{
	return tenant == 0 ? SERVICE_LOCAL_TENANT : fabric_server_tenant(service->server, tenant);
}

uint64_t
service_quota(const Service *service, uint32_t tenant)
{
	const ServiceQuotas *quotas = &service->options.quotas;

	for (uint32_t i = 0; i < quotas->count; i++)
	{
		if (strcmp(quotas->quotas[i].tenant, service_tenant_name(service, tenant)) == 0)
			return quotas->quotas[i].bytes;
	}
	return 0;
}

uint64_t
service_bytes_total(const Service *service)
{
	uint64_t has = service->tables.count * FABRIC_UNIT_BYTES;

	return has < service->options.node_bytes ? has : service->options.node_bytes;
}

TablesOwner
service_owner(const FabricPeer *peer)
{
	return (TablesOwner){.cluster = {peer->cluster[0], peer->cluster[1]}, .tenant = peer->tenant};
}

ServiceRecord *
service_peer_tree(Service *service, const FabricPeer *peer, uint64_t tree)
{
	TablesOwner owner = service_owner(peer);

	return tables_find(&service->tables, &owner, tree);
}
