/* Threads that wait for what the first one holds, each in another function: one line "ready", one line
 * "waiting" when it has read one and all sleep in their waits, and then, with the next line, all get
 * what they wait for. Ends with status 0 if each wait was right, and each thread has the registers
 * that it had. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, kept = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive, checking, robust, inheriting;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static mtx_t c11;
static _Atomic int word;
/* A pointer to a function that is read when it leads to the library, and used when that has gone. */
static int (*volatile tries)(pthread_mutex_t *);
static struct timespec late, soon, late_monotonic;

enum way { LOCK, TIMED, CLOCK, C11, C11_TIMED, READ, WRITE, TIMED_READ, TIMED_WRITE, CLOCK_READ, CLOCK_WRITE, MEET, GIVE_UP, WORD };

struct job {
	enum way way;
	void *lock;
	int answer;
	_Atomic pid_t tid;
	long wrong;
};

static int waits(const struct job *job) {
	switch (job->way) {
	case LOCK: return pthread_mutex_lock(job->lock);
	case TIMED: return pthread_mutex_timedlock(job->lock, &late);
	case CLOCK: return pthread_mutex_clocklock(job->lock, CLOCK_MONOTONIC, &late_monotonic);
	case C11: return mtx_lock(job->lock);
	case C11_TIMED: return mtx_timedlock(job->lock, &late);
	case READ: return pthread_rwlock_rdlock(job->lock);
	case WRITE: return pthread_rwlock_wrlock(job->lock);
	case TIMED_READ: return pthread_rwlock_timedrdlock(job->lock, &late);
	case TIMED_WRITE: return pthread_rwlock_timedwrlock(job->lock, &late);
	case CLOCK_READ: return pthread_rwlock_clockrdlock(job->lock, CLOCK_MONOTONIC, &late_monotonic);
	case CLOCK_WRITE: return pthread_rwlock_clockwrlock(job->lock, CLOCK_MONOTONIC, &late_monotonic);
	case MEET: return pthread_barrier_wait(job->lock) > 0 ? -2 : 0;
	case GIVE_UP: return pthread_mutex_timedlock(job->lock, &soon);
	case WORD: return syscall(SYS_futex, job->lock, FUTEX_WAIT, 0, NULL, NULL, 0) == 0 || errno == EAGAIN ? 0 : errno;
	}
	return -1;
}

static void releases(const struct job *job) {
	switch (job->way) {
	case LOCK: case TIMED: case CLOCK: pthread_mutex_unlock(job->lock); break;
	case C11: case C11_TIMED: mtx_unlock(job->lock); break;
	case MEET: case GIVE_UP: case WORD: break;
	default: pthread_rwlock_unlock(job->lock);
	}
}

static void *works(void *given) {
	struct job *job = given;
	unsigned long seed = (unsigned long)job, values[8];
	int answer;
	/* Values that live in registers across the call. */
	unsigned long a = seed * 3, b = seed * 5, c = seed * 7, d = seed * 11, e = seed * 13;
	int (*f)(pthread_mutex_t *) = tries;
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
	memset(values, 7, sizeof values);
	__asm__ volatile("" : : "r"(values) : "memory");
	job->tid = gettid();
	answer = waits(job);
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
	for (int i = 0; i < 8; i++)
		job->wrong += values[i] != 0x0707070707070707;
	job->wrong += a != seed * 3 || b != seed * 5 || c != seed * 7 || d != seed * 11 || e != seed * 13;
	job->wrong += f(&kept) != EBUSY;
	job->wrong += answer != job->answer;
	if (answer == 0)
		releases(job);
	return NULL;
}

static int sleeps(pid_t tid) {
	char path[64], text[16] = "";
	FILE *file;
	snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (!fgets(text, sizeof text, file))
		text[0] = 0;
	fclose(file);
	return atoi(text) == SYS_futex;
}

static void with_type(pthread_mutex_t *mutex, int type, int is_robust, int protocol) {
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, type);
	pthread_mutexattr_setrobust(&attributes, is_robust);
	pthread_mutexattr_setprotocol(&attributes, protocol);
	pthread_mutex_init(mutex, &attributes);
}

int main(void) {
	struct job jobs[] = {
		{ LOCK, &plain }, { LOCK, &recursive }, { LOCK, &checking }, { LOCK, &robust }, { LOCK, &inheriting },
		{ TIMED, &plain }, { TIMED, &robust }, { TIMED, &inheriting }, { CLOCK, &plain }, { C11, &c11 },
		{ C11_TIMED, &c11 }, { READ, &table }, { WRITE, &table }, { TIMED_READ, &table }, { TIMED_WRITE, &table },
		{ CLOCK_READ, &table }, { CLOCK_WRITE, &table }, { MEET, &barrier }, { MEET, &barrier },
		{ GIVE_UP, &kept, ETIMEDOUT }, { WORD, &word },
	};
	enum { COUNT = sizeof jobs / sizeof *jobs };
	pthread_t threads[COUNT];
	char line;
	long wrong = 0;
	with_type(&recursive, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
	with_type(&checking, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
	with_type(&robust, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE);
	with_type(&inheriting, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT);
	mtx_init(&c11, mtx_timed);
	pthread_barrier_init(&barrier, NULL, 3);
	pthread_mutex_t *mutexes[] = { &plain, &kept, &recursive, &checking, &robust, &inheriting };
	for (int i = 0; i < 6; i++)
		pthread_mutex_lock(mutexes[i]);
	mtx_lock(&c11);
	pthread_rwlock_wrlock(&table);
	puts("ready");
	fflush(stdout);
	/* Not by stdio: a thread is wanted that sleeps in a call of the program's own. */
	if (read(0, &line, 1) != 1)
		return 0;
	tries = pthread_mutex_trylock;
	clock_gettime(CLOCK_MONOTONIC, &late_monotonic);
	late_monotonic.tv_sec += 300;
	clock_gettime(CLOCK_REALTIME, &soon);
	late = soon;
	late.tv_sec += 300;
	soon.tv_sec += 1;
	for (int i = 0; i < COUNT; i++)
		pthread_create(&threads[i], NULL, works, &jobs[i]);
	for (int i = 0; i < COUNT; i++)
		while (jobs[i].way != GIVE_UP && !(jobs[i].tid && sleeps(jobs[i].tid)))
			usleep(1000);
	puts("waiting");
	fflush(stdout);
	if (read(0, &line, 1) != 1)
		return 0;
	for (int i = 0; i < 6; i++)
		if (mutexes[i] != &kept)
			pthread_mutex_unlock(mutexes[i]);
	mtx_unlock(&c11);
	pthread_rwlock_unlock(&table);
	wrong += tries(&kept) != EBUSY;
	word = 1;
	syscall(SYS_futex, &word, FUTEX_WAKE, 1);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < COUNT; i++) {
		pthread_join(threads[i], NULL);
		wrong += jobs[i].wrong;
	}
	return wrong ? 2 : 0;
}
