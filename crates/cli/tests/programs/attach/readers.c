/* Two threads read a table; the first has begun before anybody came: one line "ready". When the input has
 * ended the second begins to read, too, then the first stops, and each waits for what the other
 * has. Does not end by itself. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static void *early(void *unused) {
	pthread_rwlock_rdlock(&table);
	pthread_barrier_wait(&both); /* it reads */
	pthread_barrier_wait(&both); /* the other reads, too */
	pthread_rwlock_unlock(&table);
	pthread_mutex_lock(&journal);
	pthread_barrier_wait(&both); /* each has one */
	pthread_rwlock_wrlock(&table);
	return unused;
}

static void *late(void *unused) {
	char byte;
	pthread_barrier_wait(&both);
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	pthread_rwlock_rdlock(&table);
	pthread_barrier_wait(&both);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&journal);
	return unused;
}

int main(void) {
	pthread_t threads[2];
	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&threads[0], NULL, early, NULL);
	pthread_create(&threads[1], NULL, late, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	return 0;
}
