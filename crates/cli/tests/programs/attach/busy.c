/* A program under load: threads that lock, that wait for long, that run, and a file that it loads
 * when it is told to. `busy THREADS [PLUGIN]`: one line "ready", then one line for each line that it
 * reads. Ends with its input, with status 0 if every count is right. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t of_child = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER, soon = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static sem_t idle, handled;
static long counted, rounds;
static atomic_long did;
static atomic_int over;

static void nap(long nanos) {
	struct timespec time = { 0, nanos };
	nanosleep(&time, NULL);
}

static void *worker(void *unused) {
	while (!over) {
		pthread_mutex_lock(&hot);
		counted++;
		pthread_mutex_unlock(&hot); /* the hot place */
		did++;
		pthread_rwlock_rdlock(&table);
		free(malloc(64));
		pthread_rwlock_unlock(&table);
		if (did % 64 == 0)
			nap(200000);
	}
	return unused;
}

/* Handles a signal for a while, on a stack of its own. */
static void handles(int number) {
	(void)number;
	sem_post(&handled);
	nap(500000000);
}

/* Has the thread that waits wait anew, and then handle a signal. */
static void interrupts(pthread_t waiting) {
	struct sigaction action = { .sa_handler = handles, .sa_flags = SA_ONSTACK | SA_RESTART };
	long before;
	sigaction(SIGUSR1, &action, NULL);
	pthread_mutex_lock(&queue_lock);
	before = rounds;
	pthread_cond_broadcast(&never);
	while (rounds == before) {
		pthread_mutex_unlock(&queue_lock);
		nap(100000);
		pthread_mutex_lock(&queue_lock);
	}
	/* It waits: it has given the mutex back. */
	pthread_mutex_unlock(&queue_lock);
	pthread_kill(waiting, SIGUSR1);
	while (sem_wait(&handled) != 0)
		;
}

/* Sleeps in the C library for as long as the program lasts. */
static void *waits(void *unused) {
	static char other[65536];
	stack_t stack = { .ss_sp = other, .ss_size = sizeof other };
	sigaltstack(&stack, NULL);
	pthread_mutex_lock(&queue_lock);
	while (!over) {
		rounds++;
		pthread_cond_wait(&never, &queue_lock);
	}
	pthread_mutex_unlock(&queue_lock);
	return unused;
}

static void *sleeps(void *unused) {
	while (!over)
		sem_wait(&idle);
	return unused;
}

/* A wait with a limit has to end when it should. */
static void *ticks(void *late) {
	pthread_mutex_lock(&queue_lock);
	while (!over) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 2000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		if (pthread_cond_timedwait(&soon, &queue_lock, &until) == 0)
			*(int *)late = 1;
	}
	pthread_mutex_unlock(&queue_lock);
	return NULL;
}

static void *plugin_thread(void *function) {
	while (!over) {
		((void (*)(void))function)();
		nap(100000);
	}
	return NULL;
}

int main(int count, char **words) {
	int threads = count > 1 ? atoi(words[1]) : 1, woken = 0;
	pthread_t all[256], plugin;
	char line[256];
	void *loaded = NULL;
	/* A file of the program's own, whose name is like one of the command's. */
	memfd_create("lockstead-jobs", 0);
	sem_init(&idle, 0, 0);
	sem_init(&handled, 0, 0);
	for (int i = 0; i < threads; i++)
		pthread_create(&all[i], NULL, worker, NULL);
	pthread_create(&all[threads], NULL, waits, NULL);
	pthread_create(&all[threads + 1], NULL, sleeps, NULL);
	pthread_create(&all[threads + 2], NULL, ticks, &woken);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		if (strcmp(line, "load\n") == 0 && count > 2) {
			loaded = dlopen(words[2], RTLD_NOW);
			if (!loaded)
				return 3;
			pthread_create(&plugin, NULL, plugin_thread, dlsym(loaded, "plugin_work"));
		} else if (strcmp(line, "signal\n") == 0) {
			interrupts(all[threads]);
		} else if (strcmp(line, "fork\n") == 0) {
			if (fork() == 0) {
				/* A child goes on alone, with all that its parent had. */
				for (;;) {
					pthread_mutex_lock(&of_child);
					pthread_mutex_unlock(&of_child);
					nap(1000000);
				}
			}
		}
		printf("%ld\n", (long)did);
		fflush(stdout);
	}
	over = 1;
	pthread_cond_broadcast(&never);
	sem_post(&idle);
	for (int i = 0; i < threads + 3; i++)
		pthread_join(all[i], NULL);
	if (loaded)
		pthread_join(plugin, NULL);
	return woken || counted != did ? 2 : 0;
}
