/* A thread that is in a fork for as long as somebody wants: one line "ready", one with the thread's
 * number when the handler runs that a fork calls in the parent, which reads a line. Ends with its input,
 * with status 0 if the child has ended well. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t over;
static int failed = 1;

static void handles(void) {
	char byte;
	printf("%d\n", gettid());
	fflush(stdout);
	if (read(0, &byte, 1) != 1)
		_exit(3);
}

static void *forks(void *unused) {
	char byte;
	int status = 1;
	pid_t child;
	if (read(0, &byte, 1) != 1)
		_exit(3);
	child = fork();
	if (child == 0)
		_exit(0);
	failed = child < 0 || waitpid(child, &status, 0) != child || status != 0;
	while (read(0, &byte, 1) > 0)
		;
	sem_post(&over);
	return unused;
}

int main(void) {
	pthread_t thread;
	sem_init(&over, 0, 0);
	pthread_atfork(NULL, handles, NULL);
	pthread_create(&thread, NULL, forks, NULL);
	puts("ready");
	fflush(stdout);
	while (sem_wait(&over) != 0)
		;
	pthread_join(thread, NULL);
	return failed;
}
