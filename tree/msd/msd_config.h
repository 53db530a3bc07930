/*
 * msd_config.h
 *		The settings of msd: from its flags and its configuration file.  Private to msd.
 *
 * A setting has one name, `--name value` as a flag and `name = value` in the file, and flags win.  In the file `#`
 * begins a comment, and a value may stand in single or double quotes.
 */
#ifndef SHERMAN_MSD_CONFIG_H
#define SHERMAN_MSD_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tree/service/service.h"

#define MSD_PATH_BYTES 1024
/* A host and a port: a name has at most 253 bytes. */
#define MSD_ADDRESS_BYTES 272
/* One message about what is wrong, with its place. */
#define MSD_MESSAGE_BYTES 1400

/* Values of MsdConfig.numa_node that are no number of a node. */
#define MSD_NUMA_AUTO (-1) /* the node of the network card that `listen` is on, if that is known */
#define MSD_NUMA_OFF (-2)

/* The time that clients have to finish when the daemon is stopped, unless a setting says otherwise. */
#define MSD_DRAIN_SECONDS 2u

typedef struct MsdConfig
{
	char memory[MSD_PATH_BYTES];
	char socket[MSD_PATH_BYTES];
	char log[MSD_PATH_BYTES];       /* empty: stderr */
	char keys[MSD_PATH_BYTES];      /* key file; empty: none */
	char snapshot[MSD_PATH_BYTES];  /* file that the memory is saved to; empty: none */
	char listen[MSD_ADDRESS_BYTES]; /* host:port; empty: the unix socket only */
	char metrics[MSD_ADDRESS_BYTES];
	uint64_t size;              /* bytes; 0 = not given */
	uint32_t channels;          /* 0 = the service's default */
	char verbs[MSD_PATH_BYTES]; /* name of an RDMA device; empty: access class CPU */
	uint32_t trees;
	uint32_t drain_seconds;
	int32_t numa_node; /* or MSD_NUMA_* */
	FabricHugePages huge_pages;
	FabricUsers users;      /* served at the socket, beside our own */
	bool insecure_loopback; /* serve `listen` without keys, on loopback */
	bool verbose;           /* log debug lines too */
	/* Flags only, for what is done instead of serving. */
	char drop_tenant[FABRIC_TENANT_BYTES]; /* empty: none */
	char remove_file[MSD_PATH_BYTES];      /* empty: none */
	bool list_files;
	bool show_help;
	bool show_version;
	ServiceQuotas quotas;
} MsdConfig;

/*
 * Reads the flags, and the file that --config names, and checks that the settings go together.  False: `message`
 * (MSD_MESSAGE_BYTES) says what is wrong and what would be right.
 */
extern bool msd_config_read(int argc, char *const *argv, MsdConfig *config, char *message);

/* Every setting at its default. */
extern void msd_config_defaults(MsdConfig *config);

/* The lines of an open file into *config; `name` is the file's for messages. */
extern bool msd_config_lines(FILE *file, const char *name, MsdConfig *config, char *message);

/* Whether files are to be listed or removed, and no client is served. Then only their paths are needed. */
extern bool msd_config_is_about_files(const MsdConfig *config);

/* Whether the settings are complete and without contradictions; false: with a message. */
extern bool msd_config_check(const MsdConfig *config, char *message);

/*
 * Names of the settings that differ and that only a restart changes, with commas between, into `names`
 * (MSD_MESSAGE_BYTES); empty: there are none.
 */
extern void msd_config_fixed(const MsdConfig *old, const MsdConfig *now, char *names);

/* Bytes of "64M", "2 GB", "1073741824". False: not such a number, or beyond 64 bits. */
extern bool msd_config_size(const char *text, uint64_t *bytes);

/*
 * Cuts "host:port" or "[host]:port" into its parts (room MSD_ADDRESS_BYTES for the host); port is 0..65535.  False: it
 * is neither.
 */
extern bool msd_config_address(const char *text, char *host, uint16_t *port);

#endif /* SHERMAN_MSD_CONFIG_H */
