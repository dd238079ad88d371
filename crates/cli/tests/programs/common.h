/* What the programs under `lockstead run` share. They synchronise by plain
 * atomics where the tests are not about it, so that a report shows only what a
 * test is about. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Ends the program, loudly, if a call that must succeed does not. */
#define must(call)                                                          \
    do {                                                                    \
        int answer = (call);                                                \
        if (answer != 0) {                                                  \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, answer); \
            _exit(99);                                                      \
        }                                                                   \
    } while (0)

static inline void nap(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR) {
    }
}

/* Until `count` has reached `n`. */
static inline void await(atomic_int *count, int n)
{
    while (atomic_load(count) < n)
        nap(1);
}

/* Reads a file of /proc by bare system calls, of which no report tells. */
static inline void read_proc(const char *path, char *text, size_t size)
{
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    long length = file < 0 ? 0 : syscall(SYS_read, file, text, size - 1);
    text[length > 0 ? length : 0] = 0;
    if (file >= 0)
        syscall(SYS_close, file);
}

/* Until a thread of any process is in this state of /proc/ID/stat; a process is its first thread.
 * A thread says its number by `announce`. */
static inline void await_state(atomic_int *id, char wanted)
{
    char path[32], text[512], *end;
    do {
        nap(1);
        snprintf(path, sizeof path, "/proc/%d/stat", atomic_load(id));
        read_proc(path, text, sizeof text);
        end = strrchr(text, ')');
    } while (end == NULL || end[1] != ' ' || end[2] != wanted);
}

static inline void announce(atomic_int *id)
{
    atomic_store(id, (int)syscall(SYS_gettid));
}

enum { MOST_TASKS = 64, LOOKS = 8 };

/* Until the command has looked at this process some times more, if it does: until so many of its
 * threads, each of which looks every few milliseconds, have slept and woken so often. */
static inline void await_looks(int threads)
{
    static const char field[] = "\nvoluntary_ctxt_switches:";
    long ids[MOST_TASKS], began[MOST_TASKS];
    int known = 0;
    char path[64], text[4096], *at;
    if (getenv("LD_PRELOAD") == NULL)
        return;
    for (int often = 0; often < threads; nap(1)) {
        snprintf(path, sizeof path, "/proc/%d/task", getppid());
        DIR *tasks = opendir(path);
        must(tasks == NULL);
        often = 0;
        for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
            long id = atol(entry->d_name);
            snprintf(path, sizeof path, "/proc/%d/task/%ld/status", getppid(), id);
            read_proc(path, text, sizeof text);
            if (id == 0 || (at = strstr(text, field)) == NULL)
                continue;
            int task = 0;
            while (task < known && ids[task] != id)
                task++;
            must(task == MOST_TASKS);
            long count = atol(at + sizeof field - 1);
            if (task == known)
                ids[known] = id, began[known++] = count;
            often += count - began[task] >= LOOKS;
        }
        closedir(tasks);
    }
}

/* Everybody of `n` comes, then all go on. */
static inline void meet(atomic_int *count, int n)
{
    atomic_fetch_add(count, 1);
    await(count, n);
}

/* A thread that has its name from the beginning: it inherits its creator's. */
static inline pthread_t start(void *(*body)(void *), void *argument, const char *name)
{
    char mine[16];
    pthread_t thread;
    must(pthread_getname_np(pthread_self(), mine, sizeof mine));
    must(pthread_setname_np(pthread_self(), name));
    must(pthread_create(&thread, NULL, body, argument));
    must(pthread_setname_np(pthread_self(), mine));
    /* As programs do it; it may be over by now. */
    int named = pthread_setname_np(thread, name);
    must(named == ENOENT || named == ESRCH ? 0 : named);
    return thread;
}

/* For threads that the tests are not about, and for the first one. */
static inline void sleep_for_ever(void)
{
    for (;;)
        pause();
}
