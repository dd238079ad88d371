/* Loaded so that its own names come first (RTLD_DEEPBIND): has a function under a name of the C library's, and
 * calls it again and again, as all functions of libraries are called. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_spinlock_t none;

__attribute__((noinline)) int pthread_spin_trylock(pthread_spinlock_t *lock)
{
	return lock == &none ? 42 : 0;
}

static void *calls(void *unused)
{
	for (;;) {
		if (pthread_spin_trylock(&none) != 42)
			abort();
		usleep(1000);
	}
	return unused;
}

__attribute__((constructor)) static void begin(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, calls, NULL);
}
