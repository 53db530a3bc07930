/*
 * node_list.c
 *		The syntax of sherman.memory_nodes: addresses of memory nodes, with commas between them.
 */
#include "am/base/sherman.h"

#include <ctype.h>

#include "am/base/shared.h"

/* Schemes of fabric_connect() that an address may begin with; without one it is a host and a port. */
static const char *const network_schemes[] = {"tcp:", "verbs:"};
static const char path_scheme[] = "shm:";

/*
 * Whether text, which has no scheme, is a host and a port: "host:port", "[address]:port".
 */
static bool
valid_host_and_port(const char *text, Size bytes)
{
	const char *colon = text + bytes;
	const char *host_end;
	long		port = 0;

	while (colon > text && colon[-1] != ':')
	{
		colon--;
		if (!isdigit((unsigned char) *colon))
			return false;
	}
	if (colon == text || colon == text + bytes || text + bytes - colon > 5)
		return false;
	for (const char *digit = colon; digit < text + bytes; digit++)
		port = port * 10 + (*digit - '0');
	host_end = colon - 1;
	if (port < 1 || port > 65535 || host_end == text)
		return false;
	if (text[0] == '[')
		return host_end - text > 2 && host_end[-1] == ']';
	for (const char *c = text; c < host_end; c++)
	{
		if (!isalnum((unsigned char) *c) && *c != '.' && *c != '-' && *c != '_')
			return false;
	}
	return true;
}

/*
 * Makes an address of one element of the list, without spaces around it.  NULL: why not.
 */
static const char *
parse_node(const char *text, Size bytes, char *address)
{
	Size		scheme = 0;

	if (bytes == 0)
		return "An element of the list is empty.";
	if (bytes + sizeof("tcp:") > SHERMAN_ADDRESS_BYTES)
		return "An address is too long.";
	if (bytes > strlen(path_scheme) && strncmp(text, path_scheme, strlen(path_scheme)) == 0)
	{
		if (text[strlen(path_scheme)] != '/')
			return "A path after \"shm:\" must be absolute.";
		snprintf(address, SHERMAN_ADDRESS_BYTES, "%.*s", (int) bytes, text);
		return NULL;
	}
	for (size_t i = 0; i < lengthof(network_schemes); i++)
	{
		if (bytes > strlen(network_schemes[i]) &&
			strncmp(text, network_schemes[i], strlen(network_schemes[i])) == 0)
			scheme = strlen(network_schemes[i]);
	}
	if (!valid_host_and_port(text + scheme, bytes - scheme))
		return "An address is \"host:port\", \"tcp:host:port\", \"verbs:host:port\" or \"shm:/path\".";
	snprintf(address, SHERMAN_ADDRESS_BYTES, "%s%.*s", scheme == 0 ? network_schemes[0] : "", (int) bytes,
			 text);
	return NULL;
}

int
sherman_parse_nodes(const char *list, char (*addresses)[SHERMAN_ADDRESS_BYTES], const char **problem)
{
	char		parsed[TREE_MAX_NODES][SHERMAN_ADDRESS_BYTES];
	const char *from = list;
	int			count = 0;

	*problem = NULL;
	while (isspace((unsigned char) *from))
		from++;
	if (*from == '\0')
		return 0;
	for (;;)
	{
		const char *comma = strchrnul(from, ',');
		const char *end = comma;

		while (from < end && isspace((unsigned char) *from))
			from++;
		while (end > from && isspace((unsigned char) end[-1]))
			end--;
		if (count == TREE_MAX_NODES)
		{
			*problem = "There are more than " CppAsString2(TREE_MAX_NODES) " memory nodes.";
			return -1;
		}
		*problem = parse_node(from, end - from, parsed[count]);
		for (int i = 0; i < count && *problem == NULL; i++)
		{
			if (strcmp(parsed[i], parsed[count]) == 0)
				*problem = "An address is there twice.";
		}
		if (*problem != NULL)
			return -1;
		count++;
		if (*comma == '\0')
			break;
		from = comma + 1;
	}
	if (addresses != NULL)
		memcpy(addresses, parsed, count * sizeof(parsed[0]));
	return count;
}

bool
sherman_node_is_mapped(const char *address)
{
	return strncmp(address, path_scheme, strlen(path_scheme)) == 0;
}

bool
sherman_nodes_are_remote(const char *list)
{
	char		addresses[TREE_MAX_NODES][SHERMAN_ADDRESS_BYTES];
	const char *problem;
	int			count = list != NULL ? sherman_parse_nodes(list, addresses, &problem) : 0;

	for (int i = 0; i < count; i++)
	{
		if (!sherman_node_is_mapped(addresses[i]))
			return true;
	}
	return false;
}
