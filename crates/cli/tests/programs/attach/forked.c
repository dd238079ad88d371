/* A thread that is in a fork for as long as somebody wants: one line "ready", one with the thread's
 * number when the handler runs that a fork calls in the parent, which reads a byte. With "vfork" it is in
 * a vfork, and the child, in whose place the thread stands still, does that. Ends with its input, with
 * status 0 if the child has ended well. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t over;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int failed = 1, number;

static void handles(void) {
	char byte;
	printf("%d\n", number);
	fflush(stdout);
	if (read(0, &byte, 1) != 1)
		_exit(3);
}

static void *forks(void *with_vfork) {
	char byte;
	int status = 1;
	pid_t child;
	if (read(0, &byte, 1) != 1)
		_exit(3);
	number = gettid();
	child = with_vfork ? vfork() : fork();
	if (child == 0) {
		if (with_vfork) {
			handles();
			/* The memory is the parent's, and so is the way that this call takes. */
			pthread_mutex_lock(&lock);
			pthread_mutex_unlock(&lock);
		}
		_exit(0);
	}
	failed = child < 0 || waitpid(child, &status, 0) != child || status != 0;
	while (read(0, &byte, 1) > 0)
		;
	sem_post(&over);
	return NULL;
}

int main(int count, char **words) {
	pthread_t thread;
	sem_init(&over, 0, 0);
	pthread_atfork(NULL, handles, NULL);
	pthread_create(&thread, NULL, forks, count > 1 && strcmp(words[1], "vfork") == 0 ? &lock : NULL);
	puts("ready");
	fflush(stdout);
	while (sem_wait(&over) != 0)
		;
	pthread_join(thread, NULL);
	return failed;
}
