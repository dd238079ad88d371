/* Mutexes that processes share. Which way they wait for each other says the argument. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared {
    pthread_mutex_t left, right;
    pthread_barrier_t both;
};

static void must(int answer)
{
    if (answer != 0) {
        fprintf(stderr, "between: %s\n", strerror(answer));
        exit(1);
    }
}

static struct shared *map(void)
{
    struct shared *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t shared;
    pthread_barrierattr_t barrier;
    must(all == MAP_FAILED);
    must(pthread_mutexattr_init(&shared));
    must(pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED));
    must(pthread_mutex_init(&all->left, &shared));
    must(pthread_mutex_init(&all->right, &shared));
    must(pthread_barrierattr_init(&barrier));
    must(pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED));
    must(pthread_barrier_init(&all->both, &barrier, 2));
    return all;
}

static void meet(struct shared *all)
{
    int answer = pthread_barrier_wait(&all->both);
    must(answer == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : answer);
}

static void child(struct shared *all, const char *kind)
{
    must(pthread_mutex_lock(&all->right)); /* @right-first */
    meet(all);
    if (strcmp(kind, "cycle") == 0)
        must(pthread_mutex_lock(&all->left)); /* @left-then */
    if (strcmp(kind, "held") == 0)
        pause(); /* @keeps */
    _exit(0);
}

int main(int count, char **argument)
{
    struct shared *all = map();
    if (count != 2)
        return 2;
    pid_t pid = fork();
    if (pid == 0)
        child(all, argument[1]);
    must(pthread_mutex_lock(&all->left)); /* @left-first */
    meet(all);
    if (strcmp(argument[1], "ended") == 0)
        must(waitpid(pid, NULL, 0) != pid);
    must(pthread_mutex_lock(&all->right)); /* @right-then */
    return 0;
}
