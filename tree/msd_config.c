/*
 * msd_config.c
 *		See msd_config.h.
 */
#include "msd_config.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longest line of a configuration file. */
#define LINE_MAX_BYTES 2048

typedef enum SettingKind
{
	SETTING_PATH,
	SETTING_SIZE,
	SETTING_COUNT,
	SETTING_SWITCH
} SettingKind;

typedef struct Setting
{
	const char *name;
	SettingKind kind;
	size_t offset; /* in MsdConfig */
	uint64_t least;
	uint64_t most;
} Setting;

static const Setting settings[] = {
	{"memory", SETTING_PATH, offsetof(MsdConfig, memory), 0, 0},
	{"socket", SETTING_PATH, offsetof(MsdConfig, socket), 0, 0},
	{"log", SETTING_PATH, offsetof(MsdConfig, log), 0, 0},
	{"size", SETTING_SIZE, offsetof(MsdConfig, size), 1u << 20, 1ull << 44},
	{"channels", SETTING_COUNT, offsetof(MsdConfig, channels), 1, 65535},
	{"trees", SETTING_COUNT, offsetof(MsdConfig, trees), 1, 1u << 20},
	{"other-users", SETTING_SWITCH, offsetof(MsdConfig, other_users), 0, 0},
	{"verbose", SETTING_SWITCH, offsetof(MsdConfig, verbose), 0, 0},
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

static const Setting *
setting_find(const char *name, size_t length)
{
	for (size_t i = 0; i < SETTINGS; i++)
	{
		if (strlen(settings[i].name) == length && strncmp(settings[i].name, name, length) == 0)
			return &settings[i];
	}
	return NULL;
}

bool
msd_config_size(const char *text, uint64_t *bytes)
{
	char *end;
	unsigned shift = 0;

	while (isspace((unsigned char) *text))
		text++;
	if (!isdigit((unsigned char) *text))
		return false;
	errno = 0;
	*bytes = strtoull(text, &end, 10);
	if (errno != 0)
		return false;
	while (isspace((unsigned char) *end))
		end++;
	switch (tolower((unsigned char) *end))
	{
		case 'k':
			shift = 10;
			break;
		case 'm':
			shift = 20;
			break;
		case 'g':
			shift = 30;
			break;
		case 't':
			shift = 40;
			break;
		default:
			break;
	}
	if (shift > 0)
	{
		end++;
		if (tolower((unsigned char) *end) == 'b')
			end++;
	}
	if (*end != '\0' || *bytes > UINT64_MAX >> shift)
		return false;
	*bytes <<= shift;
	return true;
}

/* Sets one setting from its text. `place` says where it stands, for the message. */
static bool
setting_set(const Setting *setting, const char *value, MsdConfig *config, const char *place, char *message)
{
	char *field = (char *) config + setting->offset;
	uint64_t number;

	switch (setting->kind)
	{
		case SETTING_PATH:
			if (value[0] == '\0' || strlen(value) >= MSD_PATH_BYTES)
			{
				snprintf(message, MSD_MESSAGE_BYTES, "%s: \"%s\" needs a path shorter than %d bytes", place,
				         setting->name, MSD_PATH_BYTES);
				return false;
			}
			strcpy(field, value);
			return true;
		case SETTING_SIZE:
		case SETTING_COUNT:
			if (!msd_config_size(value, &number) || number < setting->least || number > setting->most)
			{
				snprintf(message, MSD_MESSAGE_BYTES,
				         "%s: \"%s\" must be a number from %llu to %llu%s, not \"%.200s\"", place,
				         setting->name, (unsigned long long) setting->least,
				         (unsigned long long) setting->most,
				         setting->kind == SETTING_SIZE ? " bytes (k, M, G may follow it)" : "", value);
				return false;
			}
			if (setting->kind == SETTING_SIZE)
				memcpy(field, &number, sizeof(number));
			else
			{
				uint32_t count = (uint32_t) number;

				memcpy(field, &count, sizeof(count));
			}
			return true;
		case SETTING_SWITCH:
			if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
			{
				snprintf(message, MSD_MESSAGE_BYTES, "%s: \"%s\" must be on or off, not \"%.200s\"", place,
				         setting->name, value);
				return false;
			}
			*(bool *) field = strcmp(value, "on") == 0;
			return true;
	}
	return false;
}

/* Cuts white space at both ends, and one pair of quotes. */
static char *
trim(char *text)
{
	size_t length;

	while (isspace((unsigned char) *text))
		text++;
	length = strlen(text);
	while (length > 0 && isspace((unsigned char) text[length - 1]))
		text[--length] = '\0';
	if (length >= 2 && (text[0] == '"' || text[0] == '\'') && text[length - 1] == text[0])
	{
		text[length - 1] = '\0';
		text++;
	}
	return text;
}

/* One line of the file. */
static bool
line_read(char *line, MsdConfig *config, const char *place, char *message)
{
	char *equals;
	char *name;
	const Setting *setting;

	/* A comment: but not inside of quotes. */
	for (char *c = line, quote = '\0'; *c != '\0'; c++)
	{
		if (quote == '\0' && *c == '#')
		{
			*c = '\0';
			break;
		}
		if (quote == '\0' && (*c == '"' || *c == '\''))
			quote = *c;
		else if (*c == quote)
			quote = '\0';
	}
	name = trim(line);
	if (name[0] == '\0')
		return true;
	equals = strchr(name, '=');
	if (equals == NULL)
	{
		snprintf(message, MSD_MESSAGE_BYTES, "%s: a line is \"name = value\", not \"%.200s\"", place, name);
		return false;
	}
	*equals = '\0';
	name = trim(name);
	setting = setting_find(name, strlen(name));
	if (setting == NULL)
	{
		snprintf(message, MSD_MESSAGE_BYTES, "%s: there is no setting \"%.200s\"; msd --help lists them",
		         place, name);
		return false;
	}
	return setting_set(setting, trim(equals + 1), config, place, message);
}

static bool
file_read(const char *path, MsdConfig *config, char *message)
{
	FILE *file = fopen(path, "r");
	char line[LINE_MAX_BYTES];
	char place[MSD_PATH_BYTES];
	bool good = true;

	if (file == NULL)
	{
		snprintf(message, MSD_MESSAGE_BYTES, "cannot read the configuration file \"%.900s\": %s", path,
		         strerror(errno));
		return false;
	}
	for (int number = 1; good && fgets(line, sizeof(line), file) != NULL; number++)
	{
		snprintf(place, sizeof(place), "%.900s line %d", path, number);
		if (strlen(line) == sizeof(line) - 1 && line[sizeof(line) - 2] != '\n')
		{
			snprintf(message, MSD_MESSAGE_BYTES, "%s is longer than %d bytes", place, LINE_MAX_BYTES - 1);
			good = false;
		}
		else
			good = line_read(line, config, place, message);
	}
	if (good && ferror(file))
	{
		snprintf(message, MSD_MESSAGE_BYTES, "cannot read the configuration file \"%.900s\"", path);
		good = false;
	}
	fclose(file);
	return good;
}

/*
 * One flag at argv[*i], which is moved on by what it takes.  `path` takes the value of --config; with `only_config` all
 * other flags are only looked at.
 */
static bool
flag_read(int argc, char *const *argv, int *i, MsdConfig *config, const char **path, bool only_config,
          char *message)
{
	const char *name = argv[*i] + 2;
	size_t length = strcspn(name, "=");
	bool is_config = length == strlen("config") && strncmp(name, "config", length) == 0;
	const Setting *setting = setting_find(name, length);
	const char *value = name[length] == '=' ? name + length + 1 : NULL;

	if (setting == NULL && !is_config)
	{
		snprintf(message, MSD_MESSAGE_BYTES, "unknown flag \"%.200s\"", argv[*i]);
		return false;
	}
	if (value == NULL && setting != NULL && setting->kind == SETTING_SWITCH)
		value = "on";
	if (value == NULL)
	{
		if (*i + 1 >= argc)
		{
			snprintf(message, MSD_MESSAGE_BYTES, "\"%.200s\" needs a value", argv[*i]);
			return false;
		}
		value = argv[++*i];
	}
	if (is_config)
	{
		*path = value;
		return true;
	}
	return only_config || setting_set(setting, value, config, "command line", message);
}

/* All flags, in their order. */
static bool
flags_read(int argc, char *const *argv, MsdConfig *config, const char **path, bool only_config, char *message)
{
	for (int i = 1; i < argc; i++)
	{
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-?") == 0 || strcmp(argv[i], "-h") == 0)
			config->show_help = true;
		else if (strcmp(argv[i], "--version") == 0 || strcmp(argv[i], "-V") == 0)
			config->show_version = true;
		else if (strncmp(argv[i], "--", 2) != 0 || argv[i][2] == '\0')
		{
			snprintf(message, MSD_MESSAGE_BYTES, "\"%.200s\" is not a flag", argv[i]);
			return false;
		}
		else if (!flag_read(argc, argv, &i, config, path, only_config, message))
			return false;
	}
	return true;
}

bool
msd_config_read(int argc, char *const *argv, MsdConfig *config, char *message)
{
	const char *path = NULL;

	memset(config, 0, sizeof(*config));
	message[0] = '\0';
	if (!flags_read(argc, argv, config, &path, true, message))
		return false;
	if (config->show_help || config->show_version)
		return true;
	if (path != NULL && !file_read(path, config, message))
		return false;
	if (!flags_read(argc, argv, config, &path, false, message))
		return false;
	if (config->memory[0] == '\0' || config->socket[0] == '\0' || config->size == 0)
	{
		snprintf(message, MSD_MESSAGE_BYTES, "\"%s\" is missing",
		         config->memory[0] == '\0'   ? "memory"
		         : config->socket[0] == '\0' ? "socket"
		                                     : "size");
		return false;
	}
	return true;
}
