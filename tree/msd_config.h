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

#define MSD_PATH_BYTES 1024
/* One message about what is wrong, with its place. */
#define MSD_MESSAGE_BYTES 1400

typedef struct MsdConfig
{
	char memory[MSD_PATH_BYTES];
	char socket[MSD_PATH_BYTES];
	char log[MSD_PATH_BYTES]; /* empty: stderr */
	uint64_t size;            /* bytes; 0 = not given */
	uint32_t channels;        /* 0 = the service's default */
	uint32_t trees;
	bool other_users; /* serve peers of another uid */
	bool verbose;     /* log debug lines too */
	bool show_help;
	bool show_version;
} MsdConfig;

/*
 * Reads the flags, and the file that --config names.  False: `message` (MSD_MESSAGE_BYTES) says what is wrong and what
 * would be right.
 */
extern bool msd_config_read(int argc, char *const *argv, MsdConfig *config, char *message);

/* Bytes of "64M", "2 GB", "1073741824". False: not such a number, or beyond 64 bits. */
extern bool msd_config_size(const char *text, uint64_t *bytes);

#endif /* SHERMAN_MSD_CONFIG_H */
