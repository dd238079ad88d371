/* One thread, which waits for a semaphore that a handler posts: one line "ready", and the end after
 * SIGUSR1. */
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>

static sem_t posted;

static void posts(int number) {
	(void)number;
	sem_post(&posted);
}

int main(void) {
	struct sigaction action = { .sa_handler = posts, .sa_flags = SA_RESTART };
	sem_init(&posted, 0, 0);
	sigaction(SIGUSR1, &action, NULL);
	puts("ready");
	fflush(stdout);
	while (sem_wait(&posted) != 0)
		;
	return 0;
}
