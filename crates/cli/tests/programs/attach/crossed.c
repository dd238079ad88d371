/* Two threads and two mutexes: one line "ready" when the first thread waits. `crossed before`: both hold
 * one and wait for the other's. `crossed half`: the second begins to wait when the input has ended.
 * `crossed never`: it does not. `crossed timed`: as before, and the first waits for an hour at most. Does
 * not end by itself. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER, cache = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static const char *when;

/* Waits until somebody waits for the mutex, as its word says. */
static void until_wanted(pthread_mutex_t *mutex) {
	while (__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) != 2)
		usleep(1000);
}

static void *first(void *unused) {
	pthread_mutex_lock(&journal);
	pthread_barrier_wait(&both);
	if (strcmp(when, "timed") == 0) {
		struct timespec limit;
		clock_gettime(CLOCK_REALTIME, &limit);
		limit.tv_sec += 3600;
		pthread_mutex_timedlock(&cache, &limit);
	} else {
		pthread_mutex_lock(&cache); /* the wait from before */
	}
	return unused;
}

static void *second(void *unused) {
	char byte;
	pthread_mutex_lock(&cache);
	pthread_barrier_wait(&both);
	if (strcmp(when, "half") == 0 || strcmp(when, "never") == 0)
		while (read(0, &byte, 1) > 0)
			;
	if (strcmp(when, "never") != 0)
		pthread_mutex_lock(&journal); /* the ring closes */
	for (;;)
		pause();
	return unused;
}

int main(int count, char **words) {
	pthread_t threads[2];
	when = count > 1 ? words[1] : "before";
	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&threads[0], NULL, first, NULL);
	pthread_create(&threads[1], NULL, second, NULL);
	until_wanted(&cache);
	if (strcmp(when, "before") == 0 || strcmp(when, "timed") == 0)
		until_wanted(&journal);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
