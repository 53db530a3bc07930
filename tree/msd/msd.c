/*
 * msd.c
 *		The memory node's daemon: tree/service/service.h as a program of its own.
 *
 * Exit status: 0 after SIGTERM or SIGINT, 1 if it cannot serve, 2 if the flags or the configuration are wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tree/msd/msd_machine.h"
#include "tree/msd/msd_state.h"
#include "tree/msd/msd_top.h"

#define MSD_VERSION "1.1"

/* Behind the memory file's name: the socket of one that only drops a tenant. */
#define DROP_SOCKET ".drop"

/* The first asks for an end, the second for one at once: more are the same. */
#define MSD_STOPS_MAX 2

/* While the memory is saved or loaded the service manager hears of us so often, and is asked for so long. */
#define SNAPSHOT_TELL_US 1000000u
#define SNAPSHOT_MORE_US 60000000u

/* The program's one context, for its signal handlers. */
static Msd msd_context = {.log = STDERR_FILENO};

static void
handle_stop(int signal_number)
{
	(void) signal_number;
	if (msd_context.stop_requested < MSD_STOPS_MAX)
		msd_context.stop_requested++;
	service_stop(msd_context.service);
}

static void
handle_reload(int signal_number)
{
	(void) signal_number;
	msd_context.reload_requested = 1; /* the signal ends the loop's sleep */
}

static void
print_help(void)
{
	printf(
		"msd: the daemon of a sherman memory node\n"
		"\n"
		"  msd --memory FILE --socket PATH --size BYTES [flag ...]\n"
		"  msd top [flag ...] [HOST:PORT ...]    shows memory nodes on a terminal; msd top --help\n"
		"\n"
		"  --memory FILE          the memory: a file on tmpfs or hugetlbfs; made if it is not there, and "
		"kept\n"
		"                         over restarts of msd (of the machine with --snapshot)\n"
		"  --size BYTES           node memory at most, taken as it is used; k, M, G may follow the number\n"
		"  --snapshot FILE        on disk: the memory is saved there when msd is told to stop, and loaded\n"
		"                         from it after a restart of the machine\n"
		"  --huge-pages MODE      off, try (default): where the file system has some; on: refuse to go "
		"without\n"
		"  --numa-node N          take memory from NUMA node N only; off; auto (default): prefer the node of "
		"the\n"
		"                         network card that --listen is on\n"
		"\n"
		"  --socket PATH          the socket that clients on this machine connect to, as shm:PATH\n"
		"  --client-user NAME     serve processes of this user there, too; may be repeated\n"
		"  --client-group NAME    the same of this group's members\n"
		"  --listen HOST:PORT     serve clients across the network, as tcp:HOST:PORT; port 0: any, see the "
		"log\n"
		"  --keys FILE            keys of tenants, lines of \"tenant key\", readable by nobody else\n"
		"  --verbs DEVICE         serve them with verbs, too, through this RDMA device, as verbs:HOST:PORT; "
		"takes\n"
		"                         and pins all of --size, a part for each tenant\n"
		"  --insecure-loopback    serve --listen without keys, on a loopback address\n"
		"  --tenant-quota 'TENANT SIZE'  node memory that a tenant may have; may be repeated; \"%s\" is\n"
		"                         whoever comes without a key\n"
		"\n"
		"  --channels N           processes that may use the memory at once (%u)\n"
		"  --trees N              indexes that it holds at most (%u)\n"
		"  --drain-seconds N      how long clients have to give up their locks when msd is told to stop "
		"(%u)\n"
		"  --metrics HOST:PORT    metrics for Prometheus at http://HOST:PORT/metrics; a loopback address\n"
		"  --log FILE             log to FILE instead of stderr\n"
		"  --verbose              log details\n"
		"  --config FILE          read settings from FILE: the same names, as in \"size = 4G\"; flags win\n"
		"  --drop-tenant TENANT   instead of serving: drop all indexes of a tenant that is gone, and exit\n"
		"  --list-files           instead of serving: list the files of --memory and --snapshot, and what "
		"was "
		"kept\n"
		"                         aside of them, with size, time and reason, and exit\n"
		"  --remove-file FILE     instead of serving: remove one of these that was kept aside, and exit\n"
		"  --help, --version\n"
		"\n"
		"msd runs in the foreground until SIGTERM or SIGINT: it then lets its clients finish, leaves the "
		"memory\n"
		"in place and exits with 0; a second signal does not wait for the snapshot.  SIGHUP: keys, quotas\n"
		"and other settings are read again, the log is opened\n"
		"anew.  See msd(8).  Example:\n"
		"\n"
		"  msd --memory /dev/shm/sherman --socket /run/sherman.socket --size 4G\n",
		SERVICE_LOCAL_TENANT, SERVICE_DEFAULT_CHANNELS, SERVICE_MAX_TREES, MSD_DRAIN_SECONDS);
}

/* Says in the log why msd cannot serve, and what would help; the exit status. */
static int
cannot_serve(const Msd *msd, const char *why, const char *hint)
{
	msd_log(msd, FABRIC_LOG_ERROR, "cannot serve: %s", why);
	msd_log(msd, FABRIC_LOG_ERROR, "hint: %s", hint);
	return 1;
}

/* ---- serving ---- */

static void
publish(Msd *msd, MsdState state)
{
	MsdSnapshot snapshot = {.state = state, .started_us = msd->started_us, .published_us = msd_now_us()};

	if (msd->metrics == NULL)
		return;
	service_figures(msd->service, &snapshot.figures);
	msd_metrics_publish(msd->metrics, &snapshot);
}

/* Work of the serving loop in every round, beside serving. */
static bool
loop_round(void *argument)
{
	Msd *msd = argument;

	msd_notify_alive(&msd->notify);
	if (msd_metrics_due(msd->metrics))
		publish(msd, MSD_SERVING);
	if (msd->reload_requested)
	{
		msd->reload_requested = 0;
		msd_reload(msd);
	}
	return msd->stop_requested != 0;
}

/* The memory is being saved or loaded: notifies the service manager; false breaks it off. */
static bool
snapshot_go_on(void *argument, bool saving, uint64_t done, uint64_t total)
{
	Msd *msd = argument;
	uint64_t now = msd_now_us();

	if (now - msd->snapshot_told_us >= SNAPSHOT_TELL_US)
	{
		msd->snapshot_told_us = now;
		msd_notify_send(&msd->notify,
		                "EXTEND_TIMEOUT_USEC=%u\nWATCHDOG=1\nSTATUS=%s the snapshot: %llu of %llu MB",
		                SNAPSHOT_MORE_US, saving ? "saving" : "loading", (unsigned long long) done >> 20,
		                (unsigned long long) total >> 20);
	}
	return msd->stop_requested < (saving ? MSD_STOPS_MAX : 1);
}

static const char *
open_hint(FabricStatus status)
{
	switch (status)
	{
		case FABRIC_EXISTS:
			return "another msd serves this memory: stop it, or give this one another --memory and --socket";
		case FABRIC_NO_MEMORY:
			return "the file system of the memory file is full: make room (on hugetlbfs raise "
				   "vm.nr_hugepages), or "
				   "lower --size or --channels";
		case FABRIC_UNREACHABLE:
			return "the directories of the memory file, of the socket and of the snapshot must exist and be "
				   "writable; "
				   "the address of \"listen\" must be one of this machine's, and its port free; "
				   "of each file 16 can be kept aside at most (msd --list-files)";
		case FABRIC_DENIED:
			return "what lies at the paths of memory, socket and snapshot must be msd's own, with mode 600: "
				   "move anything else away, or give msd other paths; "
				   "without keys \"listen\" is 127.0.0.1 or [::1]";
		case FABRIC_NOT_SUPPORTED:
			return "put the memory file on hugetlbfs or on a tmpfs mounted with huge=always, or "
				   "set "
				   "\"huge-pages = try\"; for verbs install libibverbs1 and name a device that \"rdma link\" "
				   "shows";
		default:
			return "msd --help tells the flags";
	}
}

/* Binds this process to a NUMA node, if the settings say so. False: they ask for one that cannot be had. */
static bool
bind_to_node(const Msd *msd, char *message, size_t bytes)
{
	int32_t node = msd->config.numa_node;
	char host[MSD_ADDRESS_BYTES];
	uint16_t port;

	if (node == MSD_NUMA_AUTO && msd_config_address(msd->config.listen, host, &port))
		node = msd_machine_node_of(host);
	if (node < 0)
		return true;
	if (!msd_machine_bind((uint32_t) node, msd->config.numa_node >= 0, message, bytes))
	{
		if (msd->config.numa_node >= 0)
			return false;
		msd_log(msd, FABRIC_LOG_WARNING, "%s", message);
		return true;
	}
	msd_log(msd, FABRIC_LOG_INFO, "memory is taken from NUMA node %d", (int) node);
	return true;
}

/* Reads the key file, if there is one. */
static bool
read_keys(Msd *msd, char *detail)
{
	return msd->config.keys[0] == '\0' || fabric_keys_read(msd->config.keys, &msd->keys, detail) == FABRIC_OK;
}

/* Warns if memory that was there has other sizes than the settings ask for. */
static void
warn_of_sizes(const Msd *msd)
{
	uint64_t bytes;
	uint32_t channels;

	service_sizes(msd->service, &bytes, &channels);
	if (bytes > msd->config.size)
	{
		msd_log(msd, FABRIC_LOG_WARNING,
		        "the memory keeps %llu MB, more than the setting: indexes lie in it up to there; nobody gets "
		        "more "
		        "as long as they have more than %llu MB",
		        (unsigned long long) bytes >> 20, (unsigned long long) msd->config.size >> 20);
		msd_log(msd, FABRIC_LOG_WARNING,
		        "hint: raise \"size\", or drop or rebuild indexes on the servers, and start msd again");
	}
	if (bytes + FABRIC_UNIT_BYTES <= msd->config.size || channels < msd->config.channels)
	{
		msd_log(
			msd, FABRIC_LOG_WARNING,
			"the memory has %llu MB and %u channels, less than the settings: there is no room for more; its "
			"content is kept",
			(unsigned long long) bytes >> 20, channels);
		msd_log(msd, FABRIC_LOG_WARNING,
		        "hint: make room on the file system of the memory file (on hugetlbfs raise vm.nr_hugepages) "
		        "and start "
		        "msd again, or lower \"size\" or \"channels\"");
	}
}

static FabricStatus
open_service(Msd *msd, char *detail)
{
	bool serves = msd->config.drop_tenant[0] == '\0';
	char own_socket[MSD_PATH_BYTES + sizeof(DROP_SOCKET)];
	ServiceOptions options;
	FabricStatus status;

	memset(&options, 0, sizeof(options));
	options.memory_path = msd->config.memory;
	options.socket_path = msd->config.socket;
	if (!serves)
	{
		/* No client is to come any more; and the socket's directory may vanish with the daemon, as systemd's does. */
		snprintf(own_socket, sizeof(own_socket), "%s" DROP_SOCKET, msd->config.memory);
		options.socket_path = own_socket;
	}
	options.node_bytes = msd->config.size;
	options.max_channels = msd->config.channels;
	options.max_trees = msd->config.trees;
	options.verbs_device = msd->config.verbs[0] != '\0' ? msd->config.verbs : NULL;
	options.users = msd->config.users;
	options.huge_pages = msd->config.huge_pages;
	options.quotas = msd->config.quotas;
	options.listen = serves && msd->config.listen[0] != '\0' ? msd->config.listen : NULL;
	options.keys = msd->config.keys[0] != '\0' ? &msd->keys : NULL;
	options.insecure_loopback = msd->config.insecure_loopback;
	options.snapshot_path = msd->config.snapshot[0] != '\0' ? msd->config.snapshot : NULL;
	options.snapshot_go_on = snapshot_go_on;
	options.snapshot_argument = msd;
	options.set_aside_hint =
		"msd --list-files with these settings lists files that were kept, --remove-file removes one";
	options.log = msd_log_line;
	options.log_argument = msd;
	options.should_stop = loop_round;
	options.should_stop_argument = msd;
	status = service_open(&options, &msd->service, detail);
	if (status == FABRIC_OK)
		warn_of_sizes(msd);
	return status;
}

/*
 * Tells the clients, waits for them, saves the memory if it is to be saved, closes. The handlers' pointer goes
 * first.
 */
static void
close_service(Msd *msd, bool save)
{
	int drain_ms = (int) msd->config.drain_seconds * 1000;
	Service *service = msd->service;

	msd_notify_send(&msd->notify, "STOPPING=1\nSTATUS=draining");
	publish(msd, MSD_DRAINING);
	msd->service = NULL;
	if (save)
		(void) service_save(service, drain_ms);
	service_close(service, drain_ms, false);
	msd_metrics_close(msd->metrics);
}

/* Drops the trees of a tenant in the memory of a daemon that does not run; the exit status. */
static int
drop_tenant(Msd *msd)
{
	const char *name = msd->config.drop_tenant;
	uint64_t trees, bytes;
	FabricStatus status = service_drop_tenant(msd->service, name, &trees, &bytes);

	if (status == FABRIC_OK)
		msd_log(msd, FABRIC_LOG_INFO, "tenant \"%s\": %llu trees dropped, %llu KB given back", name,
		        (unsigned long long) trees, (unsigned long long) bytes >> 10);
	else
		msd_log(msd, FABRIC_LOG_ERROR, "tenant \"%s\" never came to this memory", name);
	close_service(msd, true);
	return status == FABRIC_OK ? 0 : 1;
}

/* Takes as many descriptors as the system lets us have: each client is one or two. */
static void
raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void) setrlimit(RLIMIT_NOFILE, &limit);
}

/* Serves until told to stop; the exit status. */
static int
serve(Msd *msd)
{
	char detail[FABRIC_DETAIL_BYTES] = "";
	char message[MSD_MESSAGE_BYTES];
	FabricStatus status;

	msd_notify_send(&msd->notify, "STATUS=opening the memory");
	if (!bind_to_node(msd, message, sizeof(message)))
		return cannot_serve(msd, message, "set \"numa-node\" to one of this machine's, to auto or to off");
	if (!read_keys(msd, detail))
		return cannot_serve(
			msd, detail,
			"the key file has lines of \"tenant key\", the key as 64 hexadecimal digits (openssl "
			"rand -hex 32); only msd's user may have a right to it (chmod 600)");
	status = open_service(msd, detail);
	if (status == FABRIC_STOPPED)
	{
		msd_log(msd, FABRIC_LOG_INFO, "stopped: %s", detail);
		return 0;
	}
	if (status != FABRIC_OK)
		return cannot_serve(msd, detail[0] != '\0' ? detail : fabric_status_name(status), open_hint(status));
	if (msd->config.drop_tenant[0] != '\0')
		return drop_tenant(msd);
	if (msd->config.metrics[0] != '\0' &&
	    !msd_metrics_open(msd->config.metrics, MSD_VERSION, &msd->metrics, message, sizeof(message)))
	{
		close_service(msd, false);
		return cannot_serve(msd, message,
		                    "\"metrics\" is a free port of 127.0.0.1 or [::1], as in 127.0.0.1:9464");
	}
	if (msd->metrics != NULL)
		msd_log(msd, FABRIC_LOG_INFO, "metrics at port %u of the loopback address",
		        msd_metrics_port(msd->metrics));
	if (msd->config.listen[0] != '\0')
		msd_log(msd, msd->config.insecure_loopback ? FABRIC_LOG_WARNING : FABRIC_LOG_INFO,
		        "listening at %s, port %u%s", msd->config.listen,
		        fabric_server_port(service_server(msd->service)),
		        msd->config.insecure_loopback ? ", without keys: everybody on this machine is served" : "");
	publish(msd, MSD_SERVING);
	msd_log(msd, FABRIC_LOG_INFO, "ready");
	msd_notify_send(&msd->notify, "READY=1\nSTATUS=serving");
	status = msd->stop_requested ? FABRIC_OK : service_run(msd->service);
	if (status != FABRIC_OK)
		msd_log(msd, FABRIC_LOG_ERROR, "serving ended: %s", fabric_status_name(status));
	else
		msd_log(msd, FABRIC_LOG_INFO, "stopping");
	close_service(msd, status == FABRIC_OK);
	msd_log(msd, FABRIC_LOG_INFO, "stopped");
	return status == FABRIC_OK ? 0 : 1;
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

int
main(int argc, char **argv)
{
	Msd *msd = &msd_context;
	char message[MSD_MESSAGE_BYTES];
	int status;

	if (argc > 1 && strcmp(argv[1], "top") == 0)
		return msd_top(argc - 1, argv + 1);
	msd->argc = argc;
	msd->argv = argv;
	if (!msd_config_read(argc, argv, &msd->config, message))
	{
		fprintf(stderr, "msd: %s\nTry \"msd --help\".\n", message);
		return 2;
	}
	if (msd->config.show_help)
	{
		print_help();
		return 0;
	}
	if (msd->config.show_version)
	{
		printf("msd (sherman) %s\n", MSD_VERSION);
		return 0;
	}
	if (msd_config_is_about_files(&msd->config))
		return msd_files(&msd->config);
	if (!msd_log_open(msd))
	{
		fprintf(stderr,
		        "msd: cannot open the log file \"%s\": %s\nhint: its directory must exist and be writable\n",
		        msd->config.log, strerror(errno));
		return 1;
	}
	raise_descriptors();
	msd->started_us = msd_now_us();
	msd_notify_open(&msd->notify);
	handle_signal(SIGTERM, handle_stop);
	handle_signal(SIGINT, handle_stop);
	handle_signal(SIGHUP, handle_reload);
	handle_signal(SIGPIPE, SIG_IGN);
	status = serve(msd);
	fabric_keys_forget(&msd->keys);
	msd_notify_close(&msd->notify);
	return status;
}
