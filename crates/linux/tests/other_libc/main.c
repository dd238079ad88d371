/* Shared locks in a program of musl. Ends with 0 if all is as it should be. The argument:
   how often to kill a thread that has locks of both kinds. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int segment_lock(uint32_t number, uint32_t milliseconds);
bool segment_unlock(uint32_t number);
bool segment_leave(void);
uint32_t segment_me(void);
volatile uint64_t *segment_word(uint32_t number);
bool segment_lives(uint32_t name);

/* Names that the compiler's libc has and musl does not. Nothing calls them here. */
int _dl_find_object(void *address, void *result) { return -1; }
int __res_init(void) { return 0; }
const char *gnu_get_libc_version(void) { return "2.36"; }

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "line %d: %s\n", __LINE__, #what); \
            _exit(1); \
        } \
    } while (0)

enum { LONG = 20000 };

static long milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void until(uint32_t word, uint64_t value) {
    for (long end = milliseconds() + LONG; *segment_word(word) != value;) {
        CHECK(milliseconds() < end);
        usleep(50);
    }
}

/* Waits until the child sleeps, which it does only for a lock. */
static void until_asleep(pid_t child) {
    char path[32], text[256];
    snprintf(path, sizeof path, "/proc/%d/stat", child);
    for (long end = milliseconds() + LONG;; usleep(50)) {
        CHECK(milliseconds() < end);
        FILE *file = fopen(path, "r");
        char *name = file && fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
        if (file)
            fclose(file);
        if (name && name[2] == 'S')
            return;
    }
}

static void make(pthread_mutex_t *mutex) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    CHECK(pthread_mutex_init(mutex, &attributes) == 0);
}

/* What the locks do by themselves where they are compiled for musl: have it register
   the thread's list. */
static void begin(void) {
    pthread_mutex_t mutex;
    make(&mutex);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_mutex_destroy(&mutex);
}

/* 1 if its owner had died. */
static int lock(pthread_mutex_t *mutex) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += LONG / 1000;
    int result = pthread_mutex_timedlock(mutex, &end);
    if (result == EOWNERDEAD)
        pthread_mutex_consistent(mutex);
    CHECK(result == 0 || result == EOWNERDEAD);
    return result == EOWNERDEAD;
}

static pid_t child(void (*body)(void)) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        begin();
        CHECK(segment_me() == 0);
        body();
        _exit(0);
    }
    return child;
}

static int end_of(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

static void take_1_and_stay(void) {
    CHECK(segment_lock(0, 0) == 2);
    CHECK(segment_lock(1, LONG) == 0);
    *segment_word(1) = 1;
    for (;;)
        pause();
}

/* Who is woken by a death, and not by looking once a second. */
static void sleep_for(uint32_t number) {
    for (int attempt = 0;; attempt++) {
        long before = milliseconds();
        CHECK(segment_lock(number, LONG) == 1);
        if (milliseconds() - before < 900)
            return;
        _exit(2);
    }
}

static void sleep_for_1(void) { sleep_for(1); }

static void sleep_for_2(void) { sleep_for(2); }

static void *leave_cleanly(void *name) {
    begin();
    CHECK(segment_lock(3, LONG) == 0);
    *(uint32_t *)name = segment_me();
    CHECK(segment_unlock(3));
    return NULL;
}

static void *end_with_2(void *name) {
    begin();
    CHECK(segment_lock(2, LONG) == 0);
    *(uint32_t *)name = segment_me();
    *segment_word(2) = 1;
    until(2, 2);
    return NULL;
}

static pthread_mutex_t *theirs(int which) {
    return (pthread_mutex_t *)segment_word(100 + 10 * which);
}

static void interleave(void) {
    for (unsigned round = 0;; round++) {
        lock(theirs(0));
        if (round & 1)
            lock(theirs(1));
        CHECK(segment_lock(4, LONG) <= 1);
        if (round & 2)
            pthread_mutex_unlock(theirs(0));
        if (round & 1)
            pthread_mutex_unlock(theirs(1));
        CHECK(segment_unlock(4));
        if (!(round & 2))
            pthread_mutex_unlock(theirs(0));
        if (round % 64 == 63) {
            /* The slot is given up and taken again, between musl's mutexes. */
            lock(theirs(1));
            CHECK(segment_leave());
            CHECK(segment_lock(5, LONG) <= 1);
            CHECK(segment_unlock(5));
            pthread_mutex_unlock(theirs(1));
        }
        *segment_word(4) += 1;
    }
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    int kills = atoi(arguments[1]);
    begin();
    struct { void *next; long offset; void *pending; } *head;
    size_t size;
    CHECK(syscall(SYS_get_robust_list, 0, &head, &size) == 0 && head);
    printf("offset %ld\n", head->offset);

    CHECK(segment_lock(0, LONG) == 0);
    pid_t holder = child(take_1_and_stay);
    until(1, 1);
    pid_t sleeper = child(sleep_for_1);
    until_asleep(sleeper);
    kill(holder, SIGKILL);
    end_of(holder);
    CHECK(end_of(sleeper) == 0);
    CHECK(segment_lock(1, LONG) == 1 && segment_unlock(1));
    CHECK(segment_unlock(0));

    pthread_t thread;
    uint32_t names[2];
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&thread, NULL, leave_cleanly, &names[i]) == 0);
        pthread_join(thread, NULL);
    }
    CHECK(names[0] == names[1] && names[0] != 0);

    /* musl's pthread_exit walks the list itself. */
    for (int i = 0; i < 3; i++) {
        *segment_word(2) = 0;
        CHECK(pthread_create(&thread, NULL, end_with_2, &names[0]) == 0);
        until(2, 1);
        sleeper = child(sleep_for_2);
        until_asleep(sleeper);
        *segment_word(2) = 2;
        pthread_join(thread, NULL);
        CHECK(end_of(sleeper) == 0);
        CHECK(segment_lock(2, LONG) == 1 && segment_unlock(2));
        CHECK(!segment_lives(names[0]));
    }

    make(theirs(0));
    make(theirs(1));
    int ours = 0, others = 0;
    for (int i = 0; i < kills; i++) {
        uint64_t before = *segment_word(4);
        pid_t worker = child(interleave);
        for (long end = milliseconds() + LONG; *segment_word(4) < before + 20; usleep(20))
            CHECK(milliseconds() < end);
        usleep(i * 37 % 700);
        kill(worker, SIGKILL);
        CHECK(WIFSIGNALED(end_of(worker)));
        for (int which = 0; which < 2; which++) {
            others += lock(theirs(which));
            pthread_mutex_unlock(theirs(which));
        }
        for (uint32_t number = 4; number < 6; number++) {
            int got = segment_lock(number, 0);
            CHECK(got <= 1 && segment_unlock(number));
            ours += got;
        }
    }
    printf("%d kills; dead owners of ours %d, of musl's %d\n", kills, ours, others);
    CHECK(ours > 0 && others > 0);
    return 0;
}
