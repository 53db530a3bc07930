/*
 * msd_config.c
 *		See msd_config.h.
 */
#include "tree/msd/msd_config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Longest line of a configuration file. */
#define LINE_MAX_BYTES 2048

/* Longest drain: systemd's usual patience with a service that stops is 90 seconds. */
#define DRAIN_MAX_SECONDS 3600u

/* Machines have fewer NUMA nodes. */
#define NUMA_MAX_NODES 1024u

typedef enum SettingKind
{
	SETTING_PATH,
	SETTING_ADDRESS,
	SETTING_SIZE,
	SETTING_COUNT,
	SETTING_SWITCH,
	SETTING_HUGE_PAGES,
	SETTING_NUMA_NODE,
	SETTING_USER,
	SETTING_GROUP,
	SETTING_QUOTA
} SettingKind;

typedef struct Setting
{
	const char *name;
	SettingKind kind;
	size_t offset; /* in MsdConfig */
	size_t bytes;
	uint64_t least;
	uint64_t most;
	bool reloadable; /* SIGHUP applies a new value */
} Setting;

#define FIELD(name) offsetof(MsdConfig, name), sizeof(((MsdConfig *) NULL)->name)

static const Setting settings[] = {
	{"memory", SETTING_PATH, FIELD(memory), 0, 0, false},
	{"socket", SETTING_PATH, FIELD(socket), 0, 0, false},
	{"snapshot", SETTING_PATH, FIELD(snapshot), 0, 0, false},
	{"log", SETTING_PATH, FIELD(log), 0, 0, true},
	{"size", SETTING_SIZE, FIELD(size), SERVICE_MIN_BYTES, SERVICE_MAX_BYTES, false},
	{"channels", SETTING_COUNT, FIELD(channels), 1, 65535, false},
	{"trees", SETTING_COUNT, FIELD(trees), 1, SERVICE_MAX_TREES, false},
	{"listen", SETTING_ADDRESS, FIELD(listen), 0, 0, false},
	{"keys", SETTING_PATH, FIELD(keys), 0, 0, true},
	{"verbs", SETTING_PATH, FIELD(verbs), 0, 0, false},
	{"insecure-loopback", SETTING_SWITCH, FIELD(insecure_loopback), 0, 0, false},
	{"metrics", SETTING_ADDRESS, FIELD(metrics), 0, 0, false},
	{"huge-pages", SETTING_HUGE_PAGES, FIELD(huge_pages), 0, 0, false},
	{"numa-node", SETTING_NUMA_NODE, FIELD(numa_node), 0, NUMA_MAX_NODES - 1, false},
	{"tenant-quota", SETTING_QUOTA, FIELD(quotas), FABRIC_UNIT_BYTES, SERVICE_MAX_BYTES, true},
	{"drain-seconds", SETTING_COUNT, FIELD(drain_seconds), 0, DRAIN_MAX_SECONDS, true},
	{"client-user", SETTING_USER, FIELD(users), 0, 0, false},
	{"client-group", SETTING_GROUP, FIELD(users), 0, 0, false},
	{"verbose", SETTING_SWITCH, FIELD(verbose), 0, 0, true},
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

/* ---- values ---- */

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

bool
msd_config_address(const char *text, char *host, uint16_t *port)
{
	const char *colon = strrchr(text, ':');
	size_t length = colon == NULL ? 0 : (size_t) (colon - text);
	unsigned long number;
	char *end;

	if (length == 0 || length >= MSD_ADDRESS_BYTES || !isdigit((unsigned char) colon[1]))
		return false;
	number = strtoul(colon + 1, &end, 10);
	if (*end != '\0' || number > UINT16_MAX)
		return false;
	if (text[0] == '[')
	{
		if (length < 3 || text[length - 1] != ']')
			return false;
		text++;
		length -= 2;
	}
	else if (memchr(text, ':', length) != NULL)
		return false; /* an IPv6 address without brackets: where it ends is a guess */
	for (size_t i = 0; i < length; i++)
	{
		if (isspace((unsigned char) text[i]) || text[i] == '[' || text[i] == ']')
			return false;
	}
	memcpy(host, text, length);
	host[length] = '\0';
	*port = (uint16_t) number;
	return true;
}

static bool set_failed(char *message, const char *place, const Setting *setting, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Writes the message "place: "name" ..." and returns false. */
static bool
set_failed(char *message, const char *place, const Setting *setting, const char *format, ...)
{
	va_list arguments;
	int length = snprintf(message, MSD_MESSAGE_BYTES, "%.900s: \"%s\" ", place, setting->name);

	if (length > 0 && length < MSD_MESSAGE_BYTES)
	{
		va_start(arguments, format);
		vsnprintf(message + length, MSD_MESSAGE_BYTES - (size_t) length, format, arguments);
		va_end(arguments);
	}
	return false;
}

static bool
set_path(const Setting *setting, const char *value, char *field, const char *place, char *message)
{
	if (value[0] == '\0' || strlen(value) >= setting->bytes)
		return set_failed(message, place, setting, "needs a path shorter than %zu bytes", setting->bytes);
	memset(field, 0, setting->bytes); /* so that equal values are equal bytes */
	strcpy(field, value);
	return true;
}

static bool
set_address(const Setting *setting, const char *value, char *field, const char *place, char *message)
{
	char host[MSD_ADDRESS_BYTES];
	uint16_t port;

	if (strlen(value) >= setting->bytes || !msd_config_address(value, host, &port))
		return set_failed(message, place, setting, "must be host:port or [IPv6 address]:port, not \"%.200s\"",
		                  value);
	memset(field, 0, setting->bytes); /* so that equal values are equal bytes */
	strcpy(field, value);
	return true;
}

static bool
set_number(const Setting *setting, const char *value, void *field, const char *place, char *message)
{
	uint64_t number;
	uint32_t count;

	if (!msd_config_size(value, &number) || number < setting->least || number > setting->most)
		return set_failed(message, place, setting, "must be a number from %llu to %llu%s, not \"%.200s\"",
		                  (unsigned long long) setting->least, (unsigned long long) setting->most,
		                  setting->kind == SETTING_SIZE ? " bytes (k, M, G may follow it)" : "", value);
	count = (uint32_t) number;
	if (setting->kind == SETTING_SIZE)
		memcpy(field, &number, sizeof(number));
	else
		memcpy(field, &count, sizeof(count));
	return true;
}

static bool
set_switch(const Setting *setting, const char *value, bool *field, const char *place, char *message)
{
	if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
		return set_failed(message, place, setting, "must be on or off, not \"%.200s\"", value);
	*field = strcmp(value, "on") == 0;
	return true;
}

static bool
set_huge_pages(const Setting *setting, const char *value, FabricHugePages *field, const char *place,
               char *message)
{
	if (strcmp(value, "off") == 0)
		*field = FABRIC_HUGE_OFF;
	else if (strcmp(value, "try") == 0)
		*field = FABRIC_HUGE_TRY;
	else if (strcmp(value, "on") == 0)
		*field = FABRIC_HUGE_ON;
	else
		return set_failed(message, place, setting, "must be off, try or on, not \"%.200s\"", value);
	return true;
}

static bool
set_numa_node(const Setting *setting, const char *value, int32_t *field, const char *place, char *message)
{
	uint64_t number;

	if (strcmp(value, "auto") == 0)
		*field = MSD_NUMA_AUTO;
	else if (strcmp(value, "off") == 0)
		*field = MSD_NUMA_OFF;
	else if (msd_config_size(value, &number) && number <= setting->most)
		*field = (int32_t) number;
	else
		return set_failed(message, place, setting, "must be auto, off or a node's number, not \"%.200s\"",
		                  value);
	return true;
}

/* The number of a user, or of a group, by its name or number.  False: there is none. */
static bool
number_of(const char *name, bool group, uint32_t *number)
{
	const struct passwd *user = group ? NULL : getpwnam(name);
	const struct group *members = group ? getgrnam(name) : NULL;
	unsigned long value;
	char *end;

	if (user != NULL)
		*number = (uint32_t) user->pw_uid;
	else if (members != NULL)
		*number = (uint32_t) members->gr_gid;
	else
	{
		errno = 0;
		value = strtoul(name, &end, 10);
		if (!isdigit((unsigned char) name[0]) || *end != '\0' || errno != 0 || value >= UINT32_MAX)
			return false;
		*number = (uint32_t) value;
	}
	return true;
}

/* One user or group more who is served. */
static bool
set_user(const Setting *setting, const char *value, FabricUsers *users, const char *place, char *message)
{
	bool group = setting->kind == SETTING_GROUP;
	uint32_t *count = group ? &users->group_count : &users->user_count;
	uint32_t *numbers = group ? users->groups : users->users;
	uint32_t number;

	if (!number_of(value, group, &number))
		return set_failed(message, place, setting,
		                  "must be a %s of this machine, by name or number, not \"%.200s\"",
		                  group ? "group" : "user", value);
	for (uint32_t i = 0; i < *count; i++)
	{
		if (numbers[i] == number)
			return true;
	}
	if (*count == FABRIC_MAX_USERS)
		return set_failed(message, place, setting, "is given more than %u times", FABRIC_MAX_USERS);
	numbers[(*count)++] = number;
	return true;
}

/* "NAME SIZE": a quota of that tenant, in place of an earlier one. */
static bool
set_quota(const Setting *setting, const char *value, ServiceQuotas *quotas, const char *place, char *message)
{
	size_t length = strcspn(value, " \t");
	const char *size = value + length + strspn(value + length, " \t");
	ServiceQuota *quota = NULL;
	uint64_t bytes;

	if (length == 0 || length >= FABRIC_TENANT_BYTES || !msd_config_size(size, &bytes) ||
	    bytes < setting->least || bytes > setting->most)
		return set_failed(
			message, place, setting,
			"must be a tenant's name and a size from 64k on, as in \"orders 4G\", not \"%.200s\"", value);
	for (uint32_t i = 0; i < quotas->count && quota == NULL; i++)
	{
		if (strlen(quotas->quotas[i].tenant) == length &&
		    strncmp(quotas->quotas[i].tenant, value, length) == 0)
			quota = &quotas->quotas[i];
	}
	if (quota == NULL && quotas->count == SERVICE_MAX_QUOTAS)
		return set_failed(message, place, setting, "is given for more than %u tenants", SERVICE_MAX_QUOTAS);
	if (quota == NULL)
		quota = &quotas->quotas[quotas->count++];
	memset(quota, 0, sizeof(*quota));
	memcpy(quota->tenant, value, length);
	quota->bytes = bytes;
	return true;
}

/* Sets one setting from its text. `place`: the place of the text, for messages. */
static bool
setting_set(const Setting *setting, const char *value, MsdConfig *config, const char *place, char *message)
{
	void *field = (char *) config + setting->offset;

	switch (setting->kind)
	{
		case SETTING_PATH:
			return set_path(setting, value, field, place, message);
		case SETTING_ADDRESS:
			return set_address(setting, value, field, place, message);
		case SETTING_SIZE:
		case SETTING_COUNT:
			return set_number(setting, value, field, place, message);
		case SETTING_SWITCH:
			return set_switch(setting, value, field, place, message);
		case SETTING_HUGE_PAGES:
			return set_huge_pages(setting, value, field, place, message);
		case SETTING_NUMA_NODE:
			return set_numa_node(setting, value, field, place, message);
		case SETTING_USER:
		case SETTING_GROUP:
			return set_user(setting, value, field, place, message);
		case SETTING_QUOTA:
			return set_quota(setting, value, field, place, message);
	}
	return false;
}

/* ---- the file ---- */

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

bool
msd_config_lines(FILE *file, const char *name, MsdConfig *config, char *message)
{
	char line[LINE_MAX_BYTES];
	char place[MSD_PATH_BYTES];
	bool good = true;

	for (int number = 1; good && fgets(line, sizeof(line), file) != NULL; number++)
	{
		snprintf(place, sizeof(place), "%.900s line %d", name, number);
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
		snprintf(message, MSD_MESSAGE_BYTES, "cannot read the configuration file \"%.900s\"", name);
		good = false;
	}
	return good;
}

static bool
file_read(const char *path, MsdConfig *config, char *message)
{
	/* Without O_NONBLOCK a FIFO would make the loop that serves wait before it sees that it is one. */
	int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "r");
	struct stat state;
	bool good;

	if (file == NULL || fstat(descriptor, &state) != 0 || !S_ISREG(state.st_mode))
	{
		snprintf(message, MSD_MESSAGE_BYTES, "cannot read the configuration file \"%.900s\": %s", path,
		         file == NULL ? strerror(errno) : "it is no regular file");
		if (file != NULL)
			fclose(file);
		else if (descriptor >= 0)
			close(descriptor);
		return false;
	}
	good = msd_config_lines(file, path, config, message);
	fclose(file);
	return good;
}

/* ---- flags ---- */

/* Flags that drop or remove something: orders, not settings, so they cannot be in the file. */
static bool
set_order(char *field, size_t bytes, const char *name, const char *value, char *message)
{
	if (value[0] == '\0' || strlen(value) >= bytes)
	{
		snprintf(message, MSD_MESSAGE_BYTES, "command line: %s, not \"%.200s\"", name, value);
		return false;
	}
	strcpy(field, value);
	return true;
}

static bool
flag_is(const char *name, size_t length, const char *flag)
{
	return length == strlen(flag) && strncmp(name, flag, length) == 0;
}

/*
 * One flag at argv[*i]; *i moves on by the flag's length. `path` takes the value of --config; with `only_config` all
 * other flags are only checked.
 */
static bool
flag_read(int argc, char *const *argv, int *i, MsdConfig *config, const char **path, bool only_config,
          char *message)
{
	const char *name = argv[*i] + 2;
	size_t length = strcspn(name, "=");
	bool is_config = flag_is(name, length, "config");
	bool is_drop = flag_is(name, length, "drop-tenant");
	bool is_remove = flag_is(name, length, "remove-file");
	const Setting *setting = setting_find(name, length);
	const char *value = name[length] == '=' ? name + length + 1 : NULL;

	if (setting == NULL && !is_config && !is_drop && !is_remove)
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
		*path = value;
	if (is_config || only_config)
		return true;
	if (is_drop)
		return set_order(config->drop_tenant, sizeof(config->drop_tenant),
		                 "\"drop-tenant\" must be a tenant's name", value, message);
	if (is_remove)
		return set_order(config->remove_file, sizeof(config->remove_file),
		                 "\"remove-file\" must be a file that --list-files shows", value, message);
	return setting_set(setting, value, config, "command line", message);
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
		else if (strcmp(argv[i], "--list-files") == 0)
			config->list_files = true;
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

/* ---- the whole ---- */

void
msd_config_defaults(MsdConfig *config)
{
	memset(config, 0, sizeof(*config));
	config->huge_pages = FABRIC_HUGE_TRY;
	config->numa_node = MSD_NUMA_AUTO;
	config->drain_seconds = MSD_DRAIN_SECONDS;
}

/* Checks that at most one action instead of serving is asked for; NULL: nothing is wrong. */
static const char *
check_orders(const MsdConfig *config)
{
	if (config->list_files + (config->remove_file[0] != '\0') + (config->drop_tenant[0] != '\0') > 1)
		return "\"list-files\", \"remove-file\" and \"drop-tenant\" exclude each other";
	if (config->memory[0] == '\0' && config->snapshot[0] == '\0')
		return "\"memory\" or \"snapshot\" is missing: files are looked for beside these";
	return NULL;
}

bool
msd_config_check(const MsdConfig *config, char *message)
{
	const char *wrong = NULL;

	if (msd_config_is_about_files(config))
		wrong = check_orders(config);
	else if (config->memory[0] == '\0')
		wrong = "\"memory\" is missing";
	else if (config->socket[0] == '\0')
		wrong = "\"socket\" is missing";
	else if (config->size == 0)
		wrong = "\"size\" is missing";
	else if (config->snapshot[0] != '\0' && strcmp(config->snapshot, config->memory) == 0)
		wrong = "\"snapshot\" and \"memory\" are the same file";
	else if (config->listen[0] != '\0' && config->keys[0] == '\0' && !config->insecure_loopback)
		wrong = "\"listen\" needs \"keys = FILE\"; without keys only loopback addresses are served, after "
				"\"insecure-loopback = on\"";
	else if (config->keys[0] != '\0' && config->insecure_loopback)
		wrong = "\"keys\" and \"insecure-loopback\" exclude each other: with keys, clients on loopback need "
				"one, too";
	else if (config->listen[0] == '\0' && config->keys[0] != '\0')
		wrong = "\"keys\" is for clients across the network: \"listen = host:port\" is missing";
	else if (config->listen[0] == '\0' && config->insecure_loopback)
		wrong = "\"insecure-loopback\" is for clients across the network: \"listen = host:port\" is missing";
	if (wrong != NULL)
		snprintf(message, MSD_MESSAGE_BYTES, "%s", wrong);
	return wrong == NULL;
}

bool
msd_config_read(int argc, char *const *argv, MsdConfig *config, char *message)
{
	const char *path = NULL;

	msd_config_defaults(config);
	message[0] = '\0';
	if (!flags_read(argc, argv, config, &path, true, message))
		return false;
	if (config->show_help || config->show_version)
		return true;
	if (path != NULL && !file_read(path, config, message))
		return false;
	if (!flags_read(argc, argv, config, &path, false, message))
		return false;
	return msd_config_check(config, message);
}

bool
msd_config_is_about_files(const MsdConfig *config)
{
	return config->list_files || config->remove_file[0] != '\0';
}

void
msd_config_fixed(const MsdConfig *old, const MsdConfig *now, char *names)
{
	size_t length = 0;

	names[0] = '\0';
	for (size_t i = 0; i < SETTINGS; i++)
	{
		const Setting *setting = &settings[i];

		if (setting->reloadable || memcmp((const char *) old + setting->offset,
		                                  (const char *) now + setting->offset, setting->bytes) == 0)
			continue;
		length += (size_t) snprintf(names + length, MSD_MESSAGE_BYTES - length, "%s\"%s\"",
		                            length > 0 ? ", " : "", setting->name);
	}
}
