/*
 * fuzz_config.c
 *		Any flags and any configuration file for msd: a byte says how many flags, each ends with a zero; the rest is the
 *		file.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "tree/msd/msd_config.h"

#define MOST_FLAGS 8

static void
check_config(const MsdConfig *config, const char *message)
{
	fuzz_require(message[0] == '\0');
	if (config->show_help || config->show_version)
		return;
	fuzz_require(memchr(config->memory, '\0', sizeof(config->memory)) != NULL && config->memory[0] != '\0');
	fuzz_require(memchr(config->socket, '\0', sizeof(config->socket)) != NULL && config->socket[0] != '\0');
	fuzz_require(memchr(config->log, '\0', sizeof(config->log)) != NULL);
	fuzz_require(config->size >= 1u << 20 && config->size <= 1ull << 44);
	fuzz_require(config->channels <= 65535 && config->trees <= 1u << 20);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FuzzInput input = {data, size};
	int flags = fuzz_byte(&input) % MOST_FLAGS;
	char *arguments[MOST_FLAGS + 4] = {"msd"};
	int count = 1;
	MsdConfig config;
	char message[MSD_MESSAGE_BYTES];

	for (int i = 0; i < flags; i++)
	{
		size_t length = 0;
		const uint8_t *text = fuzz_bytes(&input, strnlen((const char *) input.data, input.size), &length);

		arguments[count] = strndup((const char *) text, length);
		fuzz_require(arguments[count++] != NULL);
		fuzz_byte(&input);
	}
	arguments[count] = "--config";
	arguments[count + 1] = (char *) fuzz_file(input.data, input.size);
	memset(message, 'x', sizeof(message));
	if (msd_config_read(count + 2, arguments, &config, message))
		check_config(&config, message);
	else
		fuzz_require(memchr(message, '\0', sizeof(message)) != NULL && message[0] != '\0');
	for (int i = 1; i < count; i++)
		free(arguments[i]);
	return 0;
}
