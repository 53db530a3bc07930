/*
 * daemon.c
 *		See daemon.h.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"
#include "daemon.h"
#include "../../sim/files.h"

static char program[512]; /* msd */

static Daemon daemon_of_test;

void
daemon_find(const char *test)
{
	char path[512];

	snprintf(path, sizeof(path), "%s", test);
	snprintf(program, sizeof(program), "%s/msd", dirname(path));
}

/* ---- files ---- */

void
write_file(const char *path, const char *format, ...)
{
	va_list arguments;
	int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	FILE *file = fdopen(descriptor, "w");

	assert_non_null(file);
	va_start(arguments, format);
	vfprintf(file, format, arguments);
	va_end(arguments);
	assert_int_equal(fclose(file), 0);
}

const char *
key_line(const char *tenant, char digit)
{
	static char lines[4][128];
	static unsigned next;
	char *line = lines[next++ % 4];
	int length = snprintf(line, sizeof(lines[0]), "%s ", tenant);

	memset(line + length, digit, 64);
	strcpy(line + length + 64, "\n");
	return line;
}

const char *
read_log(Daemon *msd)
{
	FILE *file = fopen(msd->log, "r");
	size_t length = 0;

	if (file != NULL)
	{
		length = fread(msd->text, 1, sizeof(msd->text) - 1, file);
		fclose(file);
	}
	msd->text[length] = '\0';
	return msd->text;
}

const char *
wait_for_log(Daemon *msd, size_t from, const char *text)
{
	uint64_t deadline = test_now_us() + TEST_PATIENCE_US;

	for (;;)
	{
		const char *log = read_log(msd);
		const char *found = strlen(log) >= from ? strstr(log + from, text) : NULL;

		if (found != NULL)
			return found;
		if (test_now_us() > deadline)
			fail_msg("the log has nothing like \"%s\": %s", text, log + (strlen(log) >= from ? from : 0));
		test_sleep_us(2000);
	}
}

/* ---- the daemon ---- */

void
daemon_configure(const Daemon *msd, const char *more)
{
	write_file(msd->config,
	           "memory = %s\nsocket = %s\nlog = %s\nsize = 16M\nlisten = 127.0.0.1:0\nmetrics = 127.0.0.1:0\n"
	           "%s%s\n%s",
	           msd->node.memory_path, msd->node.socket_path, msd->log,
	           msd->keyed ? "keys = " : "insecure-loopback = on", msd->keyed ? msd->keys : "", more);
}

static uint16_t
port_after(Daemon *msd, size_t from, const char *text)
{
	unsigned port = 0;
	const char *found = wait_for_log(msd, from, text);

	assert_int_equal(sscanf(strstr(found, "port "), "port %u", &port), 1);
	return (uint16_t) port;
}

void
daemon_start(Daemon *msd)
{
	size_t from = strlen(read_log(msd));
	pid_t parent = getpid();

	fflush(NULL);
	msd->node.pid = fork();
	assert_true(msd->node.pid >= 0);
	if (msd->node.pid == 0)
	{
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			execl(program, "msd", "--config", msd->config, (char *) NULL);
		_exit(127);
	}
	(void) wait_for_log(msd, from, "info: ready");
	msd->metrics = port_after(msd, from, "metrics at");
	snprintf(msd->node.address, sizeof(msd->node.address), "tcp:127.0.0.1:%u",
	         (unsigned) port_after(msd, from, "listening at"));
}

int
daemon_drop_tenant(const Daemon *msd, const char *tenant)
{
	pid_t child;
	int state;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
	{
		execl(program, "msd", "--config", msd->config, "--drop-tenant", tenant, (char *) NULL);
		_exit(127);
	}
	assert_true(waitpid(child, &state, 0) == child && WIFEXITED(state));
	return WEXITSTATUS(state);
}

void
daemon_end(Daemon *msd, int signal_number, int status)
{
	int state;

	assert_int_equal(kill(msd->node.pid, signal_number), 0);
	assert_true(waitpid(msd->node.pid, &state, 0) == msd->node.pid);
	if (status >= 0)
		assert_true(WIFEXITED(state) && WEXITSTATUS(state) == status);
	else
		assert_true(WIFSIGNALED(state));
	msd->node.pid = 0;
}

void
daemon_reload(Daemon *msd)
{
	size_t from = strlen(read_log(msd));

	assert_int_equal(kill(msd->node.pid, SIGHUP), 0);
	(void) wait_for_log(msd, from, "info: reloaded");
}

void
place(const Daemon *msd, const char *name, char *path, size_t bytes)
{
	snprintf(path, bytes, "%.60s/%s", msd->node.directory, name);
}

int
daemon_prepare(void **state)
{
	Daemon *msd = &daemon_of_test;

	memset(msd, 0, sizeof(*msd));
	if (!files_make(msd->node.directory, sizeof(msd->node.directory), "sherman-daemon"))
		return 1;
	place(msd, "memory", msd->node.memory_path, sizeof(msd->node.memory_path));
	place(msd, "socket", msd->node.socket_path, sizeof(msd->node.socket_path));
	place(msd, "config", msd->config, sizeof(msd->config));
	place(msd, "keys", msd->keys, sizeof(msd->keys));
	place(msd, "keys.a", msd->tenant_a, sizeof(msd->tenant_a));
	place(msd, "keys.b", msd->tenant_b, sizeof(msd->tenant_b));
	place(msd, "log", msd->log, sizeof(msd->log));
	snprintf(msd->shm, sizeof(msd->shm), "shm:%.96s", msd->node.socket_path);
	write_file(msd->keys, "%s%s", key_line("a", KEY_OLD), key_line("b", KEY_OTHER));
	write_file(msd->tenant_a, "%s", key_line("a", KEY_OLD));
	write_file(msd->tenant_b, "%s", key_line("b", KEY_OTHER));
	msd->keyed = true;
	*state = msd;
	return 0;
}

int
daemon_remove(void **state)
{
	static const char *const names[] = {"config", "keys", "keys.a", "keys.b", "log", "saved", "manager"};
	Daemon *msd = *state;

	if (msd->node.pid > 0)
	{
		kill(msd->node.pid, SIGKILL);
		waitpid(msd->node.pid, NULL, 0);
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		files_remove_one(msd->node.directory, names[i]);
	files_remove(msd->node.directory);
	return 0;
}

/* ---- metrics ---- */

double
metric(const Daemon *msd, const char *sample)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(msd->metrics)};
	static const char request[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	static char page[256u << 10];
	int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t length = 0;
	ssize_t got;
	char line[256];
	const char *found;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(descriptor, (struct sockaddr *) &address, sizeof(address)), 0);
	assert_int_equal(write(descriptor, request, sizeof(request) - 1), sizeof(request) - 1);
	while ((got = read(descriptor, page + length, sizeof(page) - 1 - length)) > 0)
		length += (size_t) got;
	close(descriptor);
	page[length] = '\0';
	snprintf(line, sizeof(line), "\nsherman_msd_%s ", sample);
	found = strstr(page, line);
	return found == NULL ? -1 : strtod(found + strlen(line), NULL);
}

void
wait_for_metric(const Daemon *msd, const char *sample, double value)
{
	uint64_t deadline = test_now_us() + TEST_PATIENCE_US;

	while (metric(msd, sample) < value)
	{
		if (test_now_us() > deadline)
			fail_msg("%s is %g, not %g", sample, metric(msd, sample), value);
		test_sleep_us(20000);
	}
}
