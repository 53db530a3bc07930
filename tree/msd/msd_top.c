/*
 * msd_top.c
 *		`msd top`: shows memory nodes on a terminal until told to stop, or writes what it knows to a file or a pipe.
 *
 * Exit status: 0; 1 if a memory node did not answer at the last look; 2 if the flags are wrong.
 */
#include "tree/msd/msd_top.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define NODES_MAX 32u
#define INTERVAL_SECONDS 2u
#define INTERVAL_MAX 3600u
#define COUNT_MAX 1000000000u
#define DEFAULT_ADDRESS "127.0.0.1:9464"

/* Of a terminal that does not tell its size. */
#define ROWS 24u
#define COLUMNS 80u

typedef struct Top
{
	TopNode nodes[NODES_MAX];
	uint32_t count;
	uint32_t interval; /* seconds */
	uint32_t looks;    /* to take; 0: until told to stop */
	bool terminal;     /* standard output is one */
	struct termios before;
	bool input; /* standard input is one, whose settings were changed */
} Top;

static volatile sig_atomic_t told_to_stop;
static volatile sig_atomic_t resized;

static void
handle_stop(int number)
{
	(void) number;
	told_to_stop = 1;
}

static void
handle_resize(int number)
{
	(void) number;
	resized = 1;
}

static void
print_help(void)
{
	printf("msd top: memory nodes on a terminal\n"
	       "\n"
	       "  msd top [flag ...] [HOST:PORT ...]\n"
	       "\n"
	       "HOST:PORT is the setting \"metrics\" of a memory node; " DEFAULT_ADDRESS " if none is given.\n"
	       "\n"
	       "  -c, --config FILE       take the address from the settings of a memory node\n"
	       "  -d, --delay SECONDS     look again so often (%u)\n"
	       "  -n, --count N           end behind so many looks\n"
	       "      --once              the same as --count 1\n"
	       "      --help\n"
	       "\n"
	       "q ends it.  The first look shows the means since a memory node was started, each further one "
	       "what was\n"
	       "done since the last.  If the output is no terminal one look is written below the other.\n",
	       INTERVAL_SECONDS);
}

static double
now_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

/* ---- flags ---- */

static bool
add_node(Top *top, const char *address)
{
	char host[MSD_ADDRESS_BYTES];
	uint16_t port;

	if (strlen(address) >= MSD_ADDRESS_BYTES || !msd_config_address(address, host, &port))
	{
		fprintf(stderr, "msd top: \"%.200s\" is not host:port\n", address);
		return false;
	}
	if (top->count == NODES_MAX)
	{
		fprintf(stderr, "msd top: more than %u memory nodes\n", NODES_MAX);
		return false;
	}
	strcpy(top->nodes[top->count++].address, address);
	return true;
}

static bool
add_configured(Top *top, const char *path)
{
	static MsdConfig config;
	char message[MSD_MESSAGE_BYTES];
	FILE *file = fopen(path, "re");
	bool good;

	if (file == NULL)
	{
		fprintf(stderr, "msd top: cannot read \"%s\": %s\n", path, strerror(errno));
		return false;
	}
	msd_config_defaults(&config);
	good = msd_config_lines(file, path, &config, message);
	fclose(file);
	if (!good)
		fprintf(stderr, "msd top: %s\n", message);
	else if (config.metrics[0] == '\0')
		fprintf(stderr,
		        "msd top: \"%s\" has no setting \"metrics\"; add one, as in \"metrics = " DEFAULT_ADDRESS
		        "\"\n",
		        path);
	return good && config.metrics[0] != '\0' && add_node(top, config.metrics);
}

static bool
set_number(const char *name, const char *text, uint32_t most, uint32_t *number)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || value < 1 || value > most)
	{
		fprintf(stderr, "msd top: --%s must be a number from 1 to %u, not \"%.200s\"\n", name, most, text);
		return false;
	}
	*number = (uint32_t) value;
	return true;
}

/* False: they are wrong, and it was said. */
static bool
read_flags(int argc, char *const *argv, Top *top, bool *help)
{
	static const struct option flags[] = {
		{"config", required_argument, NULL, 'c'}, {"delay", required_argument, NULL, 'd'},
		{"count", required_argument, NULL, 'n'},  {"once", no_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
	bool good = true;
	int flag;

	while (good && (flag = getopt_long(argc, argv, "c:d:n:h", flags, NULL)) != -1)
	{
		if (flag == 'c')
			good = add_configured(top, optarg);
		else if (flag == 'd')
			good = set_number("delay", optarg, INTERVAL_MAX, &top->interval);
		else if (flag == 'n')
			good = set_number("count", optarg, COUNT_MAX, &top->looks);
		else if (flag == 'o')
			top->looks = 1;
		else if (flag == 'h')
			*help = true;
		else
			good = false;
	}
	for (; good && optind < argc; optind++)
		good = add_node(top, argv[optind]);
	return good && (top->count > 0 || add_node(top, DEFAULT_ADDRESS));
}

/* ---- the terminal ---- */

static void
open_terminal(Top *top)
{
	struct termios raw;

	if (!top->terminal)
		return;
	top->input = tcgetattr(STDIN_FILENO, &top->before) == 0;
	if (top->input)
	{
		/* Keys come one by one and are not shown; ^C stays a signal, and ^Z would leave the terminal as it is now. */
		raw = top->before;
		raw.c_lflag &= ~(tcflag_t) (ICANON | ECHO);
		raw.c_cc[VMIN] = 1;
		raw.c_cc[VTIME] = 0;
		raw.c_cc[VSUSP] = _POSIX_VDISABLE;
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	/* A screen of its own, without a cursor. */
	fputs("\033[?1049h\033[?25l", stdout);
}

static void
close_terminal(const Top *top)
{
	if (!top->terminal)
		return;
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	if (top->input)
		tcsetattr(STDIN_FILENO, TCSANOW, &top->before);
}

/* Writes the text from the upper left corner on, as far as there is room. */
static void
write_screen(const char *text)
{
	struct winsize size = {0};
	unsigned rows, columns;

	(void) ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	rows = size.ws_row > 0 ? size.ws_row : ROWS;
	columns = size.ws_col > 0 ? size.ws_col : COLUMNS;
	fputs("\033[H", stdout);
	for (unsigned row = 0; row < rows && *text != '\0'; row++)
	{
		size_t length = strcspn(text, "\n");

		printf("%s%.*s\033[K", row > 0 ? "\n" : "", (int) (length < columns ? length : columns), text);
		text += length + (text[length] == '\n');
	}
	fputs("\033[J", stdout);
	fflush(stdout);
}

static void
write_look(const Top *top, bool first)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (out == NULL)
		return;
	top_screen(out, top->nodes, top->count);
	if (top->terminal)
		fprintf(out, "\nevery %u s; q ends it\n", top->interval);
	fclose(out);
	if (text != NULL && top->terminal)
		write_screen(text);
	else if (text != NULL)
	{
		printf("%s%s", first ? "" : "\n", text);
		fflush(stdout);
	}
	free(text);
}

/* Sleeps until the next look is due; shows the last one again when the terminal's size changes.  False: it is to end. */
static bool
pause_until(const Top *top, double until)
{
	for (double now = now_seconds(); now < until && !told_to_stop; now = now_seconds())
	{
		struct pollfd input = {.fd = top->input ? STDIN_FILENO : -1, .events = POLLIN};
		char key = 0;

		if (poll(&input, 1, (int) ((until - now) * 1000) + 1) > 0 &&
		    (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q'))
			return false;
		if (resized)
		{
			resized = 0;
			write_look(top, false);
		}
	}
	return !told_to_stop;
}

static void
handle(int number, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler};

	sigemptyset(&action.sa_mask);
	sigaction(number, &action, NULL);
}

/* Whether all memory nodes have answered. */
static bool
look(Top *top)
{
	bool all = true;

	for (uint32_t i = 0; i < top->count; i++)
		all &= top_node_read(&top->nodes[i], now_seconds());
	return all;
}

int
msd_top(int argc, char *const *argv)
{
	static Top top = {.interval = INTERVAL_SECONDS};
	bool help = false;
	bool all = true;
	double due;

	if (!read_flags(argc, argv, &top, &help))
	{
		fprintf(stderr, "Try \"msd top --help\".\n");
		return 2;
	}
	if (help)
	{
		print_help();
		return 0;
	}
	top.terminal = isatty(STDOUT_FILENO) && top.looks != 1;
	handle(SIGINT, handle_stop);
	handle(SIGTERM, handle_stop);
	handle(SIGHUP, handle_stop);
	handle(SIGWINCH, handle_resize);
	open_terminal(&top);
	due = now_seconds();
	for (uint32_t looks = 0; !told_to_stop && (top.looks == 0 || looks < top.looks); looks++)
	{
		if (looks > 0 && !pause_until(&top, due))
			break;
		all = look(&top);
		write_look(&top, looks == 0);
		due = now_seconds() + top.interval;
	}
	close_terminal(&top);
	return all ? 0 : 1;
}
