/* Programs that hang, one a name on the command line. Prints nothing: the test
 * looks at them from outside. */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t front = PTHREAD_MUTEX_INITIALIZER;
static struct {
    long before;
    pthread_mutex_t lock;
} account;
static pthread_mutex_t *heaped;
static pthread_mutex_t cycle[4];
static pthread_mutex_t bystander = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t ready_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t together, gate;
static sem_t permits;
static pthread_t main_thread, other_thread;

static void name(const char *text) { pthread_setname_np(pthread_self(), text); }

static pthread_t start(void *(*body)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument)) abort();
    return thread;
}

static void lock(pthread_mutex_t *mutex) { pthread_mutex_lock(mutex); }

static void rest(void) { for (;;) pause(); }

static struct timespec in_an_hour(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec += 3600;
    return time;
}

/* Bystanders: one waits for a lock whose owner sleeps, one computes. */
static void *sleeps_with_lock(void *unused) {
    name("sleeper");
    lock(&bystander);
    pthread_barrier_wait(&together);
    struct timespec hour = {3600, 0};
    for (;;) nanosleep(&hour, NULL);
    return unused;
}

static void *waits_for_sleeper(void *unused) {
    name("patient");
    pthread_barrier_wait(&together);
    lock(&bystander);
    return unused;
}

static void *spins(void *unused) {
    name("busy");
    for (volatile long i = 0;; i++) {}
    return unused;
}

static void bystanders(void) {
    pthread_barrier_init(&together, NULL, 2);
    start(sleeps_with_lock, NULL);
    start(waits_for_sleeper, NULL);
}

/* Two threads, two locks, one on the heap. */
static void *front_then_heaped(void *unused) {
    name("teller");
    lock(&front);
    pthread_barrier_wait(&gate);
    lock(heaped);
    return unused;
}

static void *heaped_then_front(void *unused) {
    name("auditor");
    lock(heaped);
    pthread_barrier_wait(&gate);
    lock(&front);
    return unused;
}

static void abba(void) {
    bystanders();
    start(spins, NULL);
    heaped = malloc(sizeof *heaped);
    pthread_mutex_init(heaped, NULL);
    pthread_barrier_init(&gate, NULL, 2);
    start(front_then_heaped, NULL);
    start(heaped_then_front, NULL);
}

/* One thread takes a lock twice. */
static void *takes_twice(void *unused) {
    name("twice");
    lock(&account.lock);
    lock(&account.lock);
    return unused;
}

static void self(void) { start(takes_twice, NULL); }

/* A cycle of locks of different kinds; of which the last is closed last. */
static size_t around;
static int in_order;

/* The threads of the cycle, by the lock that each has. */
static volatile int cycle_tids[4];

static int sleeps(int tid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    text[length] = 0;
    char *after = strrchr(text, ')');
    return after && after[2] == 'S';
}

/* The kernel marks a priority-inheritance mutex for which a thread is about to sleep. */
static void wait_for_a_sleeper(pthread_mutex_t *mutex, int tid) {
    while (!(*(volatile unsigned *)&mutex->__data.__lock & 0x80000000u) || !sleeps(tid)) usleep(1000);
}

static void *one_of_cycle(void *argument) {
    size_t at = (size_t)argument;
    char text[16];
    snprintf(text, sizeof text, "cycle-%zu", at);
    name(text);
    lock(&cycle[at]);
    cycle_tids[at] = (int)syscall(SYS_gettid);
    pthread_barrier_wait(&gate);
    if (in_order && at + 1 == around) wait_for_a_sleeper(&cycle[at], cycle_tids[at - 1]);
    lock(&cycle[(at + 1) % around]);
    return NULL;
}

static void make(pthread_mutex_t *mutex, int type, int robust, int protocol) {
    pthread_mutexattr_t how;
    pthread_mutexattr_init(&how);
    pthread_mutexattr_settype(&how, type);
    if (robust) pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
    if (protocol) pthread_mutexattr_setprotocol(&how, PTHREAD_PRIO_INHERIT);
    if (pthread_mutex_init(mutex, &how)) abort();
}

static void kinds(void) {
    around = 4;
    make(&cycle[0], PTHREAD_MUTEX_RECURSIVE, 0, 0);
    make(&cycle[1], PTHREAD_MUTEX_ERRORCHECK, 0, 0);
    make(&cycle[2], PTHREAD_MUTEX_NORMAL, 0, 1);
    make(&cycle[3], PTHREAD_MUTEX_NORMAL, 1, 0);
    pthread_barrier_init(&gate, NULL, 4);
    for (size_t i = 0; i < around; i++) start(one_of_cycle, (void *)i);
}

/* A cycle of priority-inheritance mutexes alone, which the kernel refuses: to the
 * thread that closes it, and to both if they come at one instant. */
static void inherit(void) {
    in_order = 1;
    around = 2;
    make(&cycle[0], PTHREAD_MUTEX_NORMAL, 0, 1);
    make(&cycle[1], PTHREAD_MUTEX_NORMAL, 0, 1);
    pthread_barrier_init(&gate, NULL, 2);
    for (size_t i = 0; i < around; i++) start(one_of_cycle, (void *)i);
}

/* A writer that waits for a mutex whose owner waits to read. */
static void *writer(void *unused) {
    name("writer");
    pthread_rwlock_wrlock(&table);
    pthread_barrier_wait(&gate);
    lock(&front);
    return unused;
}

static void *reader(void *unused) {
    name("reader");
    lock(&front);
    pthread_barrier_wait(&gate);
    pthread_rwlock_rdlock(&table);
    return unused;
}

static void rwlock(void) {
    pthread_barrier_init(&gate, NULL, 2);
    start(writer, NULL);
    start(reader, NULL);
}

/* A reader that sleeps holds the lock; the writer that waits for it comes after
 * it, and is the only thread that ever waits. */
static void *writes(void *unused) {
    name("writer");
    pthread_rwlock_wrlock(&table);
    return unused;
}

static void *reads_and_rests(void *unused) {
    name("reading");
    pthread_rwlock_rdlock(&table);
    start(writes, NULL);
    rest();
    return unused;
}

static void readers(void) { start(reads_and_rests, NULL); }

/* The main thread holds a lock and joins a thread that wants it. */
static void *wants_front(void *unused) {
    name("joined");
    pthread_barrier_wait(&gate);
    lock(&front);
    return unused;
}

static void join(void) {
    lock(&front);
    pthread_barrier_init(&gate, NULL, 2);
    pthread_t thread = start(wants_front, NULL);
    pthread_barrier_wait(&gate);
    pthread_join(thread, NULL);
}

/* Each joins the other. */
static void *joins_main(void *unused) {
    name("joiner");
    pthread_join(main_thread, NULL);
    return unused;
}

/* Threads that wait for what is no lock, while they hold one. */
static void *waits_cond(void *unused) {
    name("cond");
    lock(&ready_lock);
    for (;;) pthread_cond_wait(&ready, &ready_lock);
    return unused;
}

static void *waits_cond_timed(void *unused) {
    name("cond-timed");
    lock(&ready_lock);
    struct timespec time = in_an_hour();
    for (;;) pthread_cond_timedwait(&ready, &ready_lock, &time);
    return unused;
}

static void *waits_sem(void *unused) {
    name("sem");
    lock(&front);
    for (;;) sem_wait(&permits);
    return unused;
}

static void *waits_barrier(void *unused) {
    name("barrier");
    pthread_barrier_wait(&gate);
    return unused;
}

static void idle(void) {
    sem_init(&permits, 0, 0);
    pthread_barrier_init(&gate, NULL, 2);
    start(waits_cond, NULL);
    start(waits_cond_timed, NULL);
    start(waits_sem, NULL);
    start(waits_barrier, NULL);
}

/* A cycle that will end by itself: one of its waits is timed. */
static void *front_then_account_timed(void *unused) {
    name("timed");
    lock(&front);
    pthread_barrier_wait(&gate);
    struct timespec time = in_an_hour();
    pthread_mutex_timedlock(&account.lock, &time);
    return unused;
}

static void *account_then_front(void *unused) {
    name("untimed");
    lock(&account.lock);
    pthread_barrier_wait(&gate);
    lock(&front);
    return unused;
}

static void timed(void) {
    pthread_barrier_init(&gate, NULL, 2);
    start(front_then_account_timed, NULL);
    start(account_then_front, NULL);
}

/* The owner has ended. */
static void *takes_and_ends(void *unused) {
    lock(&front);
    return unused;
}

static void leaked(void) {
    pthread_join(start(takes_and_ends, NULL), NULL);
    name("main-waits");
    lock(&front);
}

/* A stream whose lock is held by a thread that waits for another lock. */
static void *holds_stream(void *unused) {
    name("printer");
    flockfile(stderr);
    pthread_barrier_wait(&gate);
    lock(&front);
    return unused;
}

static void *wants_stream(void *unused) {
    name("logger");
    lock(&front);
    pthread_barrier_wait(&gate);
    flockfile(stderr);
    return unused;
}

static void stream(void) {
    pthread_barrier_init(&gate, NULL, 2);
    start(holds_stream, NULL);
    start(wants_stream, NULL);
}

/* Many threads wait for one lock. */
static void *wants_bystander(void *unused) {
    lock(&bystander);
    return unused;
}

static void crowd(long count) {
    lock(&bystander);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    for (long i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, wants_bystander, NULL)) abort();
    }
}

/* A cycle of any length. */
static void *one_of_many(void *argument) {
    size_t at = (size_t)argument;
    lock(&heaped[at]);
    pthread_barrier_wait(&gate);
    lock(&heaped[(at + 1) % around]);
    return NULL;
}

static void many(long count) {
    around = count;
    heaped = malloc(around * sizeof *heaped);
    pthread_barrier_init(&gate, NULL, around);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    for (size_t i = 0; i < around; i++) pthread_mutex_init(&heaped[i], NULL);
    for (size_t i = 0; i < around; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, one_of_many, (void *)i)) abort();
    }
}

/* Threads that take two locks each, often in vain, in both orders, but never
 * wait for the second: no moment of it is a deadlock. */
static void *takes_two(void *argument) {
    size_t first = (size_t)argument % 2;
    for (;;) {
        lock(&cycle[first]);
        if (!pthread_mutex_trylock(&cycle[1 - first])) {
            for (volatile int i = 0; i < 1000; i++) {}
            pthread_mutex_unlock(&cycle[1 - first]);
        }
        pthread_mutex_unlock(&cycle[first]);
    }
    return NULL;
}

static void lively(void) {
    make(&cycle[0], PTHREAD_MUTEX_NORMAL, 0, 0);
    make(&cycle[1], PTHREAD_MUTEX_NORMAL, 0, 0);
    for (size_t i = 0; i < 8; i++) start(takes_two, (void *)i);
}

/* A semaphore in the frame of the function that waits for it. */
static void *waits_for_own(void *unused) {
    name("own-sem");
    sem_t own;
    sem_init(&own, 0, 0);
    while (sem_wait(&own) || errno) {}
    return unused;
}

static void own(void) { start(waits_for_own, NULL); }

/* A once behind words such as a condition variable with two waiters has. */
static struct {
    unsigned before[10];
    pthread_once_t once;
} dressed = {{4, 0, 0, 0, 4, 0, 0, 0, 0, 2 << 3}, PTHREAD_ONCE_INIT};

static void prepare(void) {
    name("preparing");
    pthread_barrier_wait(&gate);
    rest();
}

static void *wants_prepared(void *late) {
    if (late) pthread_barrier_wait(&gate);
    pthread_once(&dressed.once, prepare);
    return NULL;
}

static void once(void) {
    pthread_barrier_init(&gate, NULL, 2);
    start(wants_prepared, NULL);
    start(wants_prepared, &gate);
}

/* Memory that begins where a thread's stack ends, with a semaphore in it. */
static void *waits_above(void *above) {
    name("below");
    for (;;) sem_wait(above);
}

static void above(void) {
    size_t half = 1 << 20;
    char *both = mmap(NULL, 2 * half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sem_t *semaphore = (sem_t *)(both + half);
    if (both == MAP_FAILED || sem_init(semaphore, 0, 0)) abort();
    pthread_attr_t below;
    pthread_attr_init(&below);
    pthread_attr_setstack(&below, both, half);
    pthread_t thread;
    if (pthread_create(&thread, &below, waits_above, semaphore)) abort();
}

int main(int count, char **words) {
    const char *which = count > 1 ? words[1] : "";
    main_thread = pthread_self();
    /* A hang that a test leaves behind ends with it. */
    alarm(300);
    if (!strcmp(which, "abba")) abba();
    else if (!strcmp(which, "self")) self();
    else if (!strcmp(which, "kinds")) kinds();
    else if (!strcmp(which, "inherit")) inherit();
    else if (!strcmp(which, "rwlock")) rwlock();
    else if (!strcmp(which, "readers")) readers();
    else if (!strcmp(which, "join")) join();
    else if (!strcmp(which, "joins")) pthread_join(other_thread = start(joins_main, NULL), NULL);
    else if (!strcmp(which, "idle")) idle();
    else if (!strcmp(which, "timed")) timed();
    else if (!strcmp(which, "leaked")) leaked();
    else if (!strcmp(which, "stream")) stream();
    else if (!strcmp(which, "lively")) lively();
    else if (!strcmp(which, "own")) own();
    else if (!strcmp(which, "once")) once();
    else if (!strcmp(which, "above")) above();
    else if (!strcmp(which, "crowd") && count > 2) crowd(atol(words[2]));
    else if (!strcmp(which, "many") && count > 2) many(atol(words[2]));
    else return 2;
    rest();
}
