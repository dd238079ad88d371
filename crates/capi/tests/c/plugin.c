/* A program that loads a library with locks inside, has a thread wait for one, closes the library
 * while that thread lives, and lets it end; more often than there are keys for threads' values.
 * Built twice: with PLUGIN as the library. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef PLUGIN
#include <lockstead.h>

static lks_mutex mutex = LKS_MUTEX_INIT;

/* Waits in vain for a lock that the caller has. */
int waits(void)
{
    return lks_mutex_lock_timeout(&mutex, 1000);
}

void takes(void)
{
    lks_mutex_lock(&mutex);
}
#else

static pthread_barrier_t used, closed;

static void *uses(void *waits)
{
    int (*function)(void) = (int (*)(void))waits;
    if (function() == 0)
        abort();
    pthread_barrier_wait(&used);
    pthread_barrier_wait(&closed);
    return NULL;
}

static int keys_left(void)
{
    pthread_key_t keys[2048];
    int count = 0;
    while (count < 2048 && pthread_key_create(&keys[count], NULL) == 0)
        count++;
    for (int key = 0; key < count; key++)
        pthread_key_delete(keys[key]);
    return count;
}

int main(int count, char **arguments)
{
    int before = keys_left();
    pthread_barrier_init(&used, NULL, 2);
    pthread_barrier_init(&closed, NULL, 2);
    for (int turn = 0; turn < 1100; turn++) {
        void *library = count == 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
        if (library == NULL) {
            fprintf(stderr, "turn %d: %s\n", turn, dlerror());
            return 1;
        }
        if (turn == 0)
            ((void (*)(void))dlsym(library, "takes"))();
        pthread_t thread;
        if (pthread_create(&thread, NULL, uses, dlsym(library, "waits")))
            return 2;
        pthread_barrier_wait(&used);
        if (dlclose(library))
            return 3;
        pthread_barrier_wait(&closed);
        pthread_join(thread, NULL);
    }
    printf("%d fewer keys\n", before - keys_left());
    return before - keys_left() > 8;
}
#endif
