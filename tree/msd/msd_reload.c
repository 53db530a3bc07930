/*
 * msd_reload.c
 *		SIGHUP: reads the settings again, and applies those that may change while clients are served.
 */
#include <string.h>

#include "tree/msd/msd_state.h"

/* Says how the quota of one tenant changed. */
static void
log_quota(const Msd *msd, const char *tenant, uint64_t before, uint64_t after)
{
	if (after == 0)
		msd_log(msd, FABRIC_LOG_INFO, "tenant \"%s\" has no quota any more", tenant);
	else if (before == 0)
		msd_log(msd, FABRIC_LOG_INFO, "tenant \"%s\" has a quota of %llu KB now", tenant,
		        (unsigned long long) after >> 10);
	else
		msd_log(msd, FABRIC_LOG_INFO, "tenant \"%s\" has a quota of %llu KB now, it was %llu KB", tenant,
		        (unsigned long long) after >> 10, (unsigned long long) before >> 10);
}

static uint64_t
quota_of(const ServiceQuotas *quotas, const char *tenant)
{
	for (uint32_t i = 0; i < quotas->count; i++)
	{
		if (strcmp(quotas->quotas[i].tenant, tenant) == 0)
			return quotas->quotas[i].bytes;
	}
	return 0;
}

static void
reload_quotas(Msd *msd, const ServiceQuotas *now)
{
	const ServiceQuotas *old = &msd->config.quotas;

	for (uint32_t i = 0; i < old->count; i++)
	{
		if (quota_of(now, old->quotas[i].tenant) == 0)
			log_quota(msd, old->quotas[i].tenant, old->quotas[i].bytes, 0);
	}
	for (uint32_t i = 0; i < now->count; i++)
	{
		uint64_t before = quota_of(old, now->quotas[i].tenant);

		if (before != now->quotas[i].bytes)
			log_quota(msd, now->quotas[i].tenant, before, now->quotas[i].bytes);
	}
	service_set_quotas(msd->service, now);
}

/* Names the keys that are not among the others. */
static void
log_keys(const Msd *msd, const FabricKeys *keys, const FabricKeys *others, const char *change)
{
	for (uint32_t i = 0; i < keys->count; i++)
	{
		/* The identity tells keys apart and gives nothing away. */
		if (fabric_keys_find(others, keys->keys[i].identity) == NULL)
			msd_log(msd, FABRIC_LOG_INFO, "key %s is %s", keys->keys[i].identity, change);
	}
}

static void
reload_keys(Msd *msd, const char *path)
{
	char detail[FABRIC_DETAIL_BYTES];
	FabricKeys now;

	if (path[0] == '\0')
		return;
	if (fabric_keys_read(path, &now, detail) != FABRIC_OK)
	{
		msd_log(msd, FABRIC_LOG_ERROR, "the old keys stay in force: %s", detail);
		return;
	}
	log_keys(msd, &now, &msd->keys, "added");
	log_keys(msd, &msd->keys, &now, "removed: its clients are disconnected");
	msd->keys = now;
	(void) fabric_server_set_keys(service_server(msd->service), &now);
	fabric_keys_forget(&now);
}

/* Takes over new settings. */
static void
reload_settings(Msd *msd, const MsdConfig *now)
{
	char names[MSD_MESSAGE_BYTES];
	MsdConfig kept = msd->config;

	msd_config_fixed(&msd->config, now, names);
	if (names[0] != '\0')
		msd_log(msd, FABRIC_LOG_WARNING, "changes of %s wait for a restart", names);
	reload_quotas(msd, &now->quotas);
	reload_keys(msd, now->keys);
	if (msd->config.drain_seconds != now->drain_seconds)
		msd_log(msd, FABRIC_LOG_INFO, "clients will have %u seconds to go, it was %u", now->drain_seconds,
		        msd->config.drain_seconds);
	if (msd->config.verbose != now->verbose)
		msd_log(msd, FABRIC_LOG_INFO, "details are %slogged now", now->verbose ? "" : "not ");
	/* The settings in force: those that a restart waits for stay. */
	kept.quotas = now->quotas;
	kept.drain_seconds = now->drain_seconds;
	kept.verbose = now->verbose;
	memcpy(kept.log, now->log, sizeof(kept.log));
	memcpy(kept.keys, now->keys, sizeof(kept.keys));
	msd->config = kept;
}

void
msd_reload(Msd *msd)
{
	MsdConfig now;
	char message[MSD_MESSAGE_BYTES];

	msd_notify_send(&msd->notify, "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long) msd_now_us());
	if (!msd_config_read(msd->argc, msd->argv, &now, message))
		msd_log(msd, FABRIC_LOG_ERROR, "the old settings stay in force: %s", message);
	else
		reload_settings(msd, &now);
	if (!msd_log_open(msd))
		msd_log(msd, FABRIC_LOG_WARNING, "the log file cannot be opened anew: going on with the old one");
	else
		msd_log(msd, FABRIC_LOG_INFO, "reloaded: the log is opened anew");
	msd_notify_send(&msd->notify, "READY=1");
}
