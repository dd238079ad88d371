/* Uncontended locks, as the overhead of `lockstead run` is measured on them.
 *
 * Usage: pairs WHAT ITERATIONS
 * Prints the CPU nanoseconds of one iteration.
 *
 * WHAT  pair    lock and unlock one mutex
 *       nested  lock two, unlock two
 *       many    lock and unlock one of 4096 mutexes, in turn
 *       outer   lock and unlock one of 4096 while another is held throughout
 *       read    read-lock and unlock a reader-writer lock
 *       sem     wait and post a semaphore
 *       edges   lock two and unlock them, each time another two of 4096 and 4096,
 *               from a chain of calls that was not there a moment ago
 *
 * A second thread exists and sleeps, for glibc takes short cuts in a process
 * that has only one.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MANY 4096

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static struct { pthread_mutex_t mutex; char rest[24]; } many[MANY];
static pthread_mutex_t more[MANY];
static sem_t units;

static void *sleeper(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static double cpu(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Which pair comes next; never one that was. */
static long next;

/* Its frame lies elsewhere than that of the call before. */
static __attribute__((noinline)) void deeper(long i)
{
	volatile char *space = __builtin_alloca((size_t)(i * 37 % 1024) * 16 + 16);
	pthread_mutex_t *outer = &many[i % MANY].mutex, *inner = &more[(i + i / MANY) % MANY];
	space[0] = 0;
	pthread_mutex_lock(outer);
	pthread_mutex_lock(inner);
	pthread_mutex_unlock(inner);
	pthread_mutex_unlock(outer);
}

static void run(const char *what, long n)
{
	if (!strcmp(what, "pair")) {
		for (long i = 0; i < n; i++) {
			pthread_mutex_lock(&first);
			pthread_mutex_unlock(&first);
		}
	} else if (!strcmp(what, "nested")) {
		for (long i = 0; i < n; i++) {
			pthread_mutex_lock(&first);
			pthread_mutex_lock(&second);
			pthread_mutex_unlock(&second);
			pthread_mutex_unlock(&first);
		}
	} else if (!strcmp(what, "many") || !strcmp(what, "outer")) {
		int outer = !strcmp(what, "outer");
		if (outer)
			pthread_mutex_lock(&first);
		for (long i = 0; i < n; i++) {
			pthread_mutex_t *m = &many[i & (MANY - 1)].mutex;
			pthread_mutex_lock(m);
			pthread_mutex_unlock(m);
		}
		if (outer)
			pthread_mutex_unlock(&first);
	} else if (!strcmp(what, "read")) {
		for (long i = 0; i < n; i++) {
			pthread_rwlock_rdlock(&shared);
			pthread_rwlock_unlock(&shared);
		}
	} else if (!strcmp(what, "edges")) {
		for (long i = 0; i < n; i++)
			deeper(next++);
	} else if (!strcmp(what, "sem")) {
		for (long i = 0; i < n; i++) {
			sem_wait(&units);
			sem_post(&units);
		}
	} else {
		fprintf(stderr, "pairs: unknown workload %s\n", what);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	pthread_t other;
	if (argc != 3 || atol(argv[2]) <= 0) {
		fprintf(stderr, "usage: pairs pair|nested|many|outer|read|sem|edges ITERATIONS\n");
		return 2;
	}
	long n = atol(argv[2]);
	for (int i = 0; i < MANY; i++)
		pthread_mutex_init(&many[i].mutex, NULL), pthread_mutex_init(&more[i], NULL);
	sem_init(&units, 0, 1);
	if (pthread_create(&other, NULL, sleeper, NULL)) {
		perror("pairs: pthread_create");
		return 1;
	}
	run(argv[1], n / 10 + 1);
	double begin = cpu();
	run(argv[1], n);
	printf("%.3f\n", (cpu() - begin) / (double)n);
	return 0;
}
