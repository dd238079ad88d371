// Threads that hang by each other's locks, in C: pthread's, whose words name their owners, and one
// of the program's own on futex, whose word does not. Compiled with -fexceptions, GCC's `cleanup`
// makes landing pads as C++ has them.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_uint stage;

static void after(unsigned count) {
    while (atomic_load(&stage) < count) sched_yield();
}

static void meet(unsigned count) {
    atomic_fetch_add(&stage, 1);
    after(count);
}

static void start(const char *name, void *(*body)(void *), void *argument) {
    pthread_t thread;
    pthread_create(&thread, NULL, body, argument);
    pthread_setname_np(thread, name);
}

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;

// 0 free, 1 taken, 2 taken and waited for.
typedef struct {
    atomic_int word;
} word_lock;

static word_lock one_word, two_word;

static void word_acquire(word_lock *lock) {
    int free = 0;
    if (atomic_compare_exchange_strong(&lock->word, &free, 1)) return;
    while (atomic_exchange(&lock->word, 2))
        syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static void word_release(word_lock *lock) {
    if (atomic_exchange(&lock->word, 0) == 2)
        syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void word_clean(word_lock **held) { word_release(*held); }

static void crossing(const void *a, const void *b, size_t size) {
    printf("LOCK a %p %zu\nLOCK b %p %zu\n", a, size, b, size);
    puts("OWN a one\nOWN b two\nWAIT one b\nWAIT two a");
}

static void *pthread_pair(void *turned) {
    pthread_mutex_t *mine = turned ? &second : &first, *other = turned ? &first : &second;
    pthread_mutex_lock(mine);
    meet(2);
    pthread_mutex_lock(other);
    return NULL;
}

__attribute__((noinline)) static void with_cleanup(word_lock *mine, word_lock *other) {
    word_acquire(mine);
    __attribute__((cleanup(word_clean))) word_lock *held = mine;
    meet(2);
    word_acquire(other);
    word_release(other);
}

__attribute__((noinline)) static void by_hand(word_lock *mine, word_lock *other) {
    word_acquire(mine);
    meet(2);
    word_acquire(other);
    word_release(other);
    word_release(mine);
}

// Has neither lock: takes and gives back one, wants the other, and comes again for the first.
__attribute__((noinline)) static void in_turns(word_lock *mine, word_lock *other) {
    for (int turn = 0; turn < 10; turn++) {
        word_acquire(mine);
        word_release(mine);
        if (turn == 0) meet(3);
        word_acquire(other);
        word_release(other);
    }
}

// Wants one now, and will have and give back the other after that.
__attribute__((noinline)) static void later(word_lock *mine, word_lock *other) {
    meet(3);
    word_acquire(other);
    word_release(other);
    word_acquire(mine);
    word_release(mine);
}

static void *past(void *second_kind) {
    if (second_kind) in_turns(&one_word, &two_word);
    else later(&one_word, &two_word);
    return NULL;
}

__attribute__((noinline)) static void by_hand_late(word_lock *mine, word_lock *other) {
    after(1);
    word_acquire(mine);
    meet(3);
    word_acquire(other);
    word_release(other);
    word_release(mine);
}

static void *late_pair(void *turned) {
    if (turned) by_hand_late(&two_word, &one_word);
    else by_hand_late(&one_word, &two_word);
    return NULL;
}

static void *cleanup_pair(void *turned) {
    if (turned) with_cleanup(&two_word, &one_word);
    else with_cleanup(&one_word, &two_word);
    return NULL;
}

static void *by_hand_pair(void *turned) {
    if (turned) by_hand(&two_word, &one_word);
    else by_hand(&one_word, &two_word);
    return NULL;
}

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *wait_for_change(void *unused) {
    pthread_mutex_lock(&first);
    pthread_cond_wait(&changed, &first);
    return unused;
}

int main(int count, char **words) {
    const char *name = count > 1 ? words[1] : "--list";
    if (!strcmp(name, "--list")) {
        puts("pthread\ncleanup\nby_hand\nlater\nin_turns\nlost_wake_up");
        return 0;
    }
    if (!strcmp(name, "lost_wake_up")) {
        printf("LOCK a %p %zu\n", (void *)&first, sizeof first);
        printf("LOCK changed %p %zu\nWAIT one changed\n", (void *)&changed, sizeof changed);
        pthread_cond_signal(&changed);
        start("one", wait_for_change, NULL);
    } else {
        void *(*body)(void *) = pthread_pair;
        if (!strcmp(name, "pthread")) {
            crossing(&first, &second, sizeof first);
        } else {
            int turns = !strcmp(name, "in_turns");
            crossing(&one_word, &two_word, sizeof one_word);
            body = strcmp(name, "cleanup") ? by_hand_pair : cleanup_pair;
            if (turns || !strcmp(name, "later")) {
                body = late_pair;
                puts("WAIT past b");
                start("past", past, turns ? &first : NULL);
            }
        }
        start("one", body, NULL);
        start("two", body, &first);
    }
    puts("END");
    fflush(stdout);
    for (;;) pause();
}
