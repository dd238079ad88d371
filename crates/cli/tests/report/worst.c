/* A program whose locks are waited for in a known way.
 *   worst        three threads wait for `hot`, which main holds; then all end
 *   worst stay   the same, but main lets go only when its input ends
 *   worst fork   a child of main does the same beside it
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 3, HEAP = 4 };

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static sem_t permits;
static pthread_mutex_t *heap[HEAP];
static atomic_int tids[WORKERS];
static int jobs;

static pthread_mutex_t *make_lock(void)
{
    pthread_mutex_t *lock = malloc(sizeof *lock);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(lock, &attributes); /* made */
    pthread_mutexattr_destroy(&attributes);
    return lock;
}

static void *worker(void *argument)
{
    int number = *(int *)argument;
    char name[16];
    snprintf(name, sizeof name, "worker-%d", number);
    pthread_setname_np(pthread_self(), name);
    tids[number] = gettid();
    pthread_mutex_lock(&hot); /* waits */
    pthread_mutex_unlock(&hot);
    for (int i = 0; i < HEAP; i++) {
        pthread_mutex_lock(heap[i]);
        pthread_mutex_unlock(heap[i]);
    }
    pthread_mutex_lock(&queue);
    jobs++;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&queue);
    sem_wait(&permits);
    return NULL;
}

static int sleeps(int tid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = 0;
    char *after = strrchr(text, ')');
    return after && after[2] == 'S';
}

static void run(int stay)
{
    pthread_t threads[WORKERS];
    int numbers[WORKERS];
    for (int i = 0; i < HEAP; i++)
        heap[i] = make_lock();
    sem_init(&permits, 0, 0);
    pthread_mutex_lock(&hot); /* holds */
    for (int i = 0; i < WORKERS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, worker, &numbers[i]);
    }
    for (int i = 0; i < WORKERS; i++)
        while (!tids[i] || !sleeps(tids[i]))
            usleep(1000);
    usleep(200000);
    puts("ready");
    fflush(stdout);
    if (stay)
        while (getchar() != EOF)
            ;
    /* No worker can be done before main waits. */
    pthread_mutex_lock(&queue);
    pthread_mutex_unlock(&hot);
    while (jobs < WORKERS)
        pthread_cond_wait(&filled, &queue); /* idles */
    pthread_mutex_unlock(&queue);
    for (int i = 0; i < WORKERS; i++)
        sem_post(&permits);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "quiet")) {
        pthread_mutex_lock(&hot);
        pthread_mutex_unlock(&hot);
        return 0;
    }
    pid_t child = strcmp(what, "fork") ? 0 : fork();
    run(!strcmp(what, "stay"));
    if (child)
        waitpid(child, NULL, 0);
    return 0;
}
