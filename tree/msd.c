/*
 * msd.c
 *		The memory node's daemon: tree/service.h as a program of its own.
 *
 * Exit status: 0 after SIGTERM or SIGINT, 1 if it cannot serve, 2 if the flags or the configuration are wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "msd_config.h"
#include "service.h"

#define MSD_VERSION "1.0"

/* Clients have this long to go when the daemon is told to stop. */
#define DRAIN_MS 2000

/* From linux/magic.h: memory that does not outlive the machine, as crash safety wants it. */
#define MAGIC_TMPFS 0x01021994
#define MAGIC_HUGETLBFS 0x958458f6

typedef struct Msd
{
	MsdConfig config;
	int log; /* descriptor that log lines go to */
} Msd;

static Service *msd_service; /* for the signal handlers */
static volatile sig_atomic_t stop_requested;
static volatile sig_atomic_t reopen_requested;

static void
handle_stop(int signal_number)
{
	(void) signal_number;
	stop_requested = 1;
	service_stop(msd_service);
}

static void
handle_reopen(int signal_number)
{
	(void) signal_number;
	reopen_requested = 1;
}

static void
print_help(void)
{
	printf(
		"msd: the daemon of a sherman memory node\n"
		"\n"
		"  msd --memory FILE --socket PATH --size BYTES [flag ...]\n"
		"\n"
		"  --memory FILE      the memory: a file on tmpfs or hugetlbfs; made if it is not there, and kept\n"
		"                     over restarts of msd (not of the machine)\n"
		"  --socket PATH      the socket that clients connect to, as shm:PATH\n"
		"  --size BYTES       node memory at most, taken as it is used; k, M, G may follow the number\n"
		"  --channels N       processes that may use the memory at once (%u)\n"
		"  --trees N          indexes that it can hold (%u)\n"
		"  --other-users      serve processes of other users, too\n"
		"  --log FILE         log to FILE instead of stderr; SIGHUP opens it anew\n"
		"  --verbose          log details\n"
		"  --config FILE      read settings from FILE: the same names, as in \"size = 4G\"; flags win\n"
		"  --help, --version\n"
		"\n"
		"msd runs in the foreground until SIGTERM or SIGINT: it then lets its clients finish for %d "
		"seconds,\n"
		"leaves the memory in place and exits with 0.  Example:\n"
		"\n"
		"  msd --memory /dev/shm/sherman --socket /run/sherman.socket --size 4G\n",
		SERVICE_DEFAULT_CHANNELS, SERVICE_DEFAULT_TREES, DRAIN_MS / 1000);
}

/* ---- log ---- */

/* One line by one write(), so that lines of several processes do not mix. */
static void
msd_log(void *argument, FabricLogLevel level, const char *message)
{
	static const char *const names[] = {"debug", "info", "warning", "error"};
	const Msd *msd = argument;
	char line[FABRIC_DETAIL_BYTES + MSD_MESSAGE_BYTES];
	char stamp[32];
	struct timespec now;
	struct tm local;
	int length;

	if (level == FABRIC_LOG_DEBUG && !msd->config.verbose)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &local);
	strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &local);
	length = snprintf(line, sizeof(line), "%s.%03ld [%d] %s: %.1400s\n", stamp, now.tv_nsec / 1000000,
	                  (int) getpid(), names[level], message);
	if (length > 0 && write(msd->log, line, (size_t) length) < 0)
		return; /* a full disk must not end the service */
}

/* Opens the log anew; keeps the old one if that fails. */
static bool
log_open(Msd *msd)
{
	int opened;

	if (msd->config.log[0] == '\0')
		return true;
	opened = open(msd->config.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
	if (opened < 0)
		return false;
	if (msd->log != STDERR_FILENO)
		close(msd->log);
	msd->log = opened;
	return true;
}

static bool
msd_should_stop(void *argument)
{
	Msd *msd = argument;

	if (reopen_requested)
	{
		reopen_requested = 0;
		if (!log_open(msd))
			msd_log(msd, FABRIC_LOG_WARNING, "the log file cannot be opened anew: going on with the old one");
		else
			msd_log(msd, FABRIC_LOG_INFO, "log opened anew");
	}
	return stop_requested != 0;
}

/* ---- starting ---- */

static void
handle_signal(int number, void (*handler)(int))
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = handler;
	sigemptyset(&action.sa_mask);
	sigaction(number, &action, NULL);
}

/* Memory on a disk's file system comes back after a crash of the machine in pieces: say so. */
static void
check_file_system(Msd *msd)
{
	struct statfs figures;

	if (statfs(msd->config.memory, &figures) != 0)
		return;
	if (figures.f_type != MAGIC_TMPFS && (unsigned long) figures.f_type != MAGIC_HUGETLBFS)
		msd_log(msd, FABRIC_LOG_WARNING,
		        "the memory file is not on tmpfs or hugetlbfs: it will be slow; /dev/shm is the usual place");
}

static const char *
open_hint(FabricStatus status)
{
	switch (status)
	{
		case FABRIC_EXISTS:
			return "another msd serves this memory: stop it, or give this one another --memory and --socket";
		case FABRIC_NO_MEMORY:
			return "the file system of the memory file is full: make room, or lower --size, --channels or "
				   "--trees";
		case FABRIC_UNREACHABLE:
			return "the directories of the memory file and of the socket must exist and be writable; "
				   "a socket's path has at most 107 bytes";
		case FABRIC_DENIED:
			return "the memory file belongs to another user";
		default:
			return "msd --help tells the flags";
	}
}

static int
serve(Msd *msd)
{
	ServiceOptions options;
	char detail[FABRIC_DETAIL_BYTES] = "";
	char message[MSD_MESSAGE_BYTES];
	FabricStatus status;

	memset(&options, 0, sizeof(options));
	options.memory_path = msd->config.memory;
	options.socket_path = msd->config.socket;
	options.node_bytes = msd->config.size;
	options.max_channels = msd->config.channels;
	options.max_trees = msd->config.trees;
	options.allow_other_users = msd->config.other_users;
	options.log = msd_log;
	options.log_argument = msd;
	options.should_stop = msd_should_stop;
	options.should_stop_argument = msd;
	status = service_open(&options, &msd_service, detail);
	if (status != FABRIC_OK)
	{
		snprintf(message, sizeof(message), "cannot serve: %s",
		         detail[0] != '\0' ? detail : fabric_status_name(status));
		msd_log(msd, FABRIC_LOG_ERROR, message);
		snprintf(message, sizeof(message), "hint: %s", open_hint(status));
		msd_log(msd, FABRIC_LOG_ERROR, message);
		return 1;
	}
	check_file_system(msd);
	status = stop_requested ? FABRIC_OK : service_run(msd_service);
	if (status != FABRIC_OK)
	{
		snprintf(message, sizeof(message), "serving ended: %s", fabric_status_name(status));
		msd_log(msd, FABRIC_LOG_ERROR, message);
	}
	else
		msd_log(msd, FABRIC_LOG_INFO, "stopping");
	service_close(msd_service, DRAIN_MS, false);
	msd_service = NULL;
	msd_log(msd, FABRIC_LOG_INFO, "stopped");
	return status == FABRIC_OK ? 0 : 1;
}

int
main(int argc, char **argv)
{
	static Msd msd;
	char message[MSD_MESSAGE_BYTES];

	msd.log = STDERR_FILENO;
	if (!msd_config_read(argc, argv, &msd.config, message))
	{
		fprintf(stderr, "msd: %s\nTry \"msd --help\".\n", message);
		return 2;
	}
	if (msd.config.show_help)
	{
		print_help();
		return 0;
	}
	if (msd.config.show_version)
	{
		printf("msd (sherman) %s\n", MSD_VERSION);
		return 0;
	}
	if (!log_open(&msd))
	{
		fprintf(stderr,
		        "msd: cannot open the log file \"%s\": %s\nhint: its directory must exist and be writable\n",
		        msd.config.log, strerror(errno));
		return 1;
	}
	handle_signal(SIGTERM, handle_stop);
	handle_signal(SIGINT, handle_stop);
	handle_signal(SIGHUP, handle_reopen);
	handle_signal(SIGPIPE, SIG_IGN);
	return serve(&msd);
}
