/*
 * test_proxy_threads.c
 *		Connection workers and their clients in threads, for ThreadSanitizer to see.
 */
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include "support/proxy_fixture.h"

#define THREAD_CLIENTS 6u
#define THREAD_SLOTS 4u /* fewer than clients: some have to come again */
#define THREAD_SESSIONS 40u
#define THREAD_CHAINS 50u

typedef struct Sleeper
{
	sem_t wake;
} Sleeper;

static struct
{
	Sleeper workers[MAX_WORKERS];
	Sleeper clients[THREAD_CLIENTS];
	bool stop;
} threads;

static void
sleep_on(Sleeper *sleeper, int milliseconds)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long) milliseconds * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (sem_timedwait(&sleeper->wake, &until) == 0 && sem_trywait(&sleeper->wake) == 0)
		;
}

static void
thread_wake_client(void *argument, uint32_t owner)
{
	sem_post(&threads.clients[owner].wake);
}

static int
thread_worker_wait(void *argument, const int *descriptors, int count, int milliseconds)
{
	sleep_on(argument, milliseconds);
	return 0;
}

static void
thread_wake_worker(void *argument, uint32_t worker)
{
	sem_post(&threads.workers[worker].wake);
}

static void
thread_client_sleep(void *argument, int milliseconds)
{
	sleep_on(argument, milliseconds);
}

static void *
worker_thread(void *argument)
{
	uint32_t number = (uint32_t) (uintptr_t) argument;
	FabricWorkerOptions options = {
		.area = fixture.area,
		.worker = number,
		.argument = &threads.workers[number],
		.wake_client = thread_wake_client,
		.wait = thread_worker_wait,
	};
	FabricWorker *worker;

	CHECK(fabric_worker_open(&options, &worker) == FABRIC_OK);
	while (!__atomic_load_n(&threads.stop, __ATOMIC_ACQUIRE))
		CHECK(fabric_worker_step(worker, 20) == FABRIC_OK);
	fabric_worker_close(worker);
	return NULL;
}

/* Counts under a lock word, and keeps a stripe of its own. */
static void
session(TestChannel *channel, uint32_t number, uint32_t turn)
{
	uint64_t own[STRIPE_WORDS];
	uint64_t found[STRIPE_WORDS];
	uint64_t counted[16];

	for (uint32_t i = 0; i < THREAD_CHAINS; i++)
	{
		FabricOp lock[] = {
			op_compare_swap(FABRIC_LOCKS, 8, 0, number + 1),
			op_read(stripe_offset(0), counted, sizeof(counted)),
		};
		FabricOp unlock[] = {
			op_write(stripe_offset(0), counted, sizeof(counted)),
			op_compare_swap(FABRIC_LOCKS, 8, number + 1, 0),
		};
		FabricOp keep[] = {
			op_write(stripe_offset(1 + number), own, sizeof(own)),
			op_read(stripe_offset(1 + number), found, sizeof(found)),
		};

		do
			CHECK(fabric_execute(channel->endpoint, lock, 2) == FABRIC_OK);
		while (lock[0].result != 0);
		for (int word = 0; word < 16; word++)
			CHECK(++counted[word] == counted[0]);
		CHECK(fabric_execute(channel->endpoint, unlock, 2) == FABRIC_OK);
		CHECK(unlock[1].result == number + 1);
		memset(own, (int) (number * 40 + turn + i), sizeof(own));
		CHECK(fabric_execute(channel->endpoint, keep, 2) == FABRIC_OK);
		CHECK(memcmp(own, found, sizeof(own)) == 0);
	}
}

static void *
client_thread(void *argument)
{
	uint32_t number = (uint32_t) (uintptr_t) argument;
	FabricProxy proxy = {
		.area = fixture.area,
		.owner = number,
		.argument = &threads.clients[number],
		.wake_worker = thread_wake_worker,
		.sleep = thread_client_sleep,
	};
	FabricOptions options = {
		.operation_timeout_ms = 60000,
		.connect_timeout_ms = 60000,
		.cluster = {fixture.cluster, ~fixture.cluster},
		.incarnation = fixture.incarnation,
		.proxy = &proxy,
	};

	for (uint32_t turn = 0; turn < THREAD_SESSIONS;)
	{
		TestChannel channel;
		FabricStatus status;

		CHECK(fabric_open(&options, &channel.fabric) == FABRIC_OK);
		status = fabric_connect(channel.fabric, fixture.address, &channel.endpoint);
		CHECK(status == FABRIC_OK || status == FABRIC_NO_MEMORY || status == FABRIC_BUSY);
		if (status == FABRIC_OK)
			session(&channel, number, turn++);
		channel_close(&channel);
	}
	return NULL;
}

static void
test_threads(void **state)
{
	pthread_t clients[THREAD_CLIENTS];
	pthread_t workers[MAX_WORKERS];
	uint64_t count;

	begin(MAX_WORKERS, THREAD_SLOTS);
	for (uint32_t i = 0; i < MAX_WORKERS; i++)
		close_worker(i);
	count = true_word(stripe_offset(0));
	{
		TestChannel direct;
		uint64_t counted[16];

		channel_open(&direct, fixture.process.address, fixture.cluster, fixture.incarnation);
		for (int word = 0; word < 16; word++)
			counted[word] = count;
		channel_write(&direct, stripe_offset(0), counted, sizeof(counted));
		channel_close(&direct);
	}
	threads.stop = false;
	for (uint32_t i = 0; i < MAX_WORKERS; i++)
	{
		sem_init(&threads.workers[i].wake, 0, 0);
		assert_int_equal(pthread_create(&workers[i], NULL, worker_thread, (void *) (uintptr_t) i), 0);
	}
	for (uint32_t i = 0; i < THREAD_CLIENTS; i++)
	{
		sem_init(&threads.clients[i].wake, 0, 0);
		assert_int_equal(pthread_create(&clients[i], NULL, client_thread, (void *) (uintptr_t) i), 0);
	}
	for (uint32_t i = 0; i < THREAD_CLIENTS; i++)
		pthread_join(clients[i], NULL);
	__atomic_store_n(&threads.stop, true, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < MAX_WORKERS; i++)
		pthread_join(workers[i], NULL);
	assert_true(true_word(stripe_offset(0)) == count + THREAD_CLIENTS * THREAD_SESSIONS * THREAD_CHAINS);
	assert_int_equal(figures(0).clients + figures(1).clients, 0);
	finish();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
