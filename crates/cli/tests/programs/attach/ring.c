/* Two threads that hold a mutex each, and want the other's when a line is read: one line "ready" when
 * they hold them. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER, cache = PTHREAD_MUTEX_INITIALIZER;
static sem_t have, go;

static void crosses(pthread_mutex_t *first, pthread_mutex_t *second) {
	pthread_mutex_lock(first);
	sem_post(&have);
	sem_wait(&go);
	pthread_mutex_lock(second); /* the ring closes */
	pthread_mutex_unlock(second);
	pthread_mutex_unlock(first);
}

static void *one(void *unused) {
	crosses(&journal, &cache);
	return unused;
}

static void *two(void *unused) {
	crosses(&cache, &journal);
	return unused;
}

int main(void) {
	pthread_t threads[2];
	char line;
	sem_init(&have, 0, 0);
	sem_init(&go, 0, 0);
	pthread_create(&threads[0], NULL, one, NULL);
	pthread_create(&threads[1], NULL, two, NULL);
	sem_wait(&have);
	sem_wait(&have);
	puts("ready");
	fflush(stdout);
	/* Not by stdio: a thread is wanted that sleeps in a call of the program's own. */
	if (read(0, &line, 1) != 1)
		return 0;
	sem_post(&go);
	sem_post(&go);
	pthread_join(threads[0], NULL);
	return 0;
}
