/* For programs that a test looks at while they stand still. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Says where the program is and waits for the test. Nothing here takes a lock
 * of the program's. */
static void stop(const char *place)
{
    char byte;
    printf("stopped at %s\n", place);
    fflush(stdout);
    if (read(0, &byte, 1) != 1)
        _exit(3);
}

/* Tells the test an address, or a number. */
static void show(const char *name, unsigned long value)
{
    printf("%s 0x%lx\n", name, value);
}
#define SHOW(lock) show(#lock, (unsigned long)&lock)

/* A thread with a name, which `pthread_setname_np` tells the library. */
__attribute__((unused)) static pthread_t
start(const char *name, void *(*routine)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, routine, argument))
        abort();
    pthread_setname_np(thread, name);
    return thread;
}
