/* A thread waits for a mutex, and signals interrupt its wait again and again. */
#include "common.h"

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_int waiter, handled;

static void handle(int signal)
{
    (void)signal;
    atomic_fetch_add(&handled, 1);
}

static void *waits(void *unused)
{
    announce(&waiter);
    must(pthread_mutex_lock(&gate)); /* @waits */
    must(pthread_mutex_unlock(&gate));
    return unused;
}

/* Returns once the waiter sleeps for the mutex. A command that looks at waits holds it back before that, and
 * a slow one would see nothing but the end. A kernel that does not say what a thread sleeps in says "0" or
 * nothing, as all do of one that runs: after so many looks at a thread that is not held back this returns all
 * the same. */
static void await_sleep(void)
{
    enum { MOST = 1000 };
    char path[64], text[64];
    for (int looks = 0; looks < MOST;) {
        await_state(&waiter, 'S');
        snprintf(path, sizeof path, "/proc/self/task/%d/wchan", atomic_load(&waiter));
        read_proc(path, text, sizeof text);
        if (strstr(text, "futex") != NULL)
            return;
        looks += strstr(text, "seccomp") == NULL;
    }
}

int main(void)
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    pthread_t thread;
    must(sigaction(SIGUSR1, &action, NULL));
    must(pthread_mutex_lock(&gate));
    must(pthread_create(&thread, NULL, waits, NULL));
    await_sleep();
    for (int i = 1; i <= 10; i++) {
        must(pthread_kill(thread, SIGUSR1));
        await(&handled, i);
        await_state(&waiter, 'S');
    }
    must(pthread_mutex_unlock(&gate));
    must(pthread_join(thread, NULL));
    printf("passed\n");
    return 7;
}
