/* `returns ALPHA GAMMA`: two threads contend for a lock of the first library, which goes, then for one of the
 * second, which comes to lie at its place and goes, then for another one of the first, which has come back.
 * With LIBRARY it is the first library; returns_gamma.c is the second. */
#include "common.h"
#include <dlfcn.h>

#ifdef LIBRARY
#ifdef GAMMA
#define OF(name) gamma_##name
#else
#define OF(name) alpha_##name
#endif

static pthread_mutex_t OF(one) = PTHREAD_MUTEX_INITIALIZER, OF(two) = PTHREAD_MUTEX_INITIALIZER;

static void *OF(worker)(void *mutex)
{
    pthread_mutex_lock(mutex);
    usleep(100000);
    pthread_mutex_unlock(mutex);
    return NULL;
}

void go(int second)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        must(pthread_create(&threads[i], NULL, OF(worker), second ? &OF(two) : &OF(one)));
    for (int i = 0; i < 2; i++)
        must(pthread_join(threads[i], NULL));
}
#else
static void use(const char *file, int second, int closes)
{
    void *library = dlopen(file, RTLD_NOW);
    void (*function)(int) = (void (*)(int))dlsym(library, "go");
    printf("%p\n", (void *)function);
    function(second);
    /* The command looks every few milliseconds. */
    usleep(300000);
    if (closes)
        must(dlclose(library));
}

int main(int count, char **words)
{
    if (count != 3)
        return 96;
    use(words[1], 0, 1);
    use(words[2], 0, 1);
    use(words[1], 1, 0);
    return 0;
}
#endif
