/* Limits its own address space when it runs already: so that there is room for what it
 * does then, in the process itself or, with the argument "child", in a forked one; or,
 * with "hard", for next to nothing. */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "stops.h"

enum { THREADS = 24, LOCKS = 100000 };

static pthread_mutex_t all[LOCKS];
static pthread_barrier_t together;

static void *work(void *argument)
{
    size_t first = (size_t)argument * (LOCKS / THREADS);
    for (size_t i = first; i < first + LOCKS / THREADS; i++)
        if (pthread_mutex_lock(&all[i]) || pthread_mutex_unlock(&all[i]))
            abort();
    pthread_barrier_wait(&together);
    return NULL;
}

static void fails(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

/* Kilobytes of address space that the process has. */
static unsigned long used(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu", &pages) != 1)
        fails("statm");
    fclose(file);
    return pages * (unsigned long)sysconf(_SC_PAGESIZE) / 1024;
}

static void limit(unsigned long kilobytes)
{
    struct rlimit limit = {.rlim_cur = kilobytes << 10, .rlim_max = kilobytes << 10};
    if (setrlimit(RLIMIT_AS, &limit))
        fails("setrlimit");
}

/* What a limit of 1 GiB has room for without anything under it: stacks, arenas of the
 * allocator, and some more. */
static void work_limited(void)
{
    pthread_t threads[THREADS];
    limit(1 << 20);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 20);
    for (size_t i = 0; i < THREADS; i++)
        if ((errno = pthread_create(&threads[i], &small, work, (void *)i)))
            fails("pthread_create");
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    void *block = malloc(200 << 20);
    if (block == NULL)
        fails("malloc");
    free(block);
}

/* Forks a child that does this and returns, and waits for it. */
static void in_child(void (*routine)(void))
{
    fflush(stdout);
    int status = 1;
    pid_t child = fork();
    if (child < 0)
        fails("fork");
    if (child == 0) {
        routine();
        _exit(7);
    }
    if (waitpid(child, &status, 0) != child || status != 7 << 8)
        fails("the child");
}

static void map_some(void)
{
    if (pthread_mutex_lock(&all[7]))
        abort();
    void *block = mmap(NULL, 200 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        fails("mmap in a child");
}

int main(int count, char **arguments)
{
    pthread_barrier_init(&together, NULL, THREADS);
    if (count == 1) {
        work_limited();
        in_child(map_some);
    } else if (!strcmp(arguments[1], "child")) {
        in_child(work_limited);
    } else {
        limit(used() + 256);
        for (size_t i = 0; i < LOCKS; i++)
            if (pthread_mutex_lock(&all[i]) || pthread_mutex_unlock(&all[i]))
                abort();
    }
    SHOW(all);
    stop("done");
    return 0;
}
