/* Programs for the tests of `lockstead run`; the first argument says which.
 * Line numbers are looked up by the text of the line. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct account { int balance; pthread_mutex_t lock; };

static pthread_mutex_t audit = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t bystanders = PTHREAD_MUTEX_INITIALIZER;
static struct account accounts[2];
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t fair = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_spinlock_t spin;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both;
static pthread_t first;

static void nap(int ms) { usleep(ms * 1000); }

static void *start(void *(*body)(void *), const char *name, pthread_t *thread) {
    pthread_t ours;
    if (!thread) thread = &ours;
    if (pthread_create(thread, 0, body, 0)) abort();
    pthread_setname_np(*thread, name);
    return 0;
}

/* abba: two threads, two mutexes, and two who have nothing to do with it. */
static void take_account(void) {
    pthread_mutex_lock(&accounts[1].lock); /* teller waits */
}
static void *teller(void *arg) {
    pthread_mutex_lock(&audit); /* teller holds */
    pthread_barrier_wait(&both);
    take_account();
    return arg;
}
static void *auditor(void *arg) {
    pthread_mutex_lock(&accounts[1].lock); /* auditor holds */
    pthread_barrier_wait(&both);
    nap(1);
    pthread_mutex_lock(&audit); /* auditor waits */
    return arg;
}
static void *follower(void *arg) {
    pthread_mutex_lock(&bystanders);
    nap(20);
    pthread_mutex_lock(&audit);
    return arg;
}

static void *locks_audit(void *arg) {
    pthread_mutex_lock(&audit);
    return arg;
}
static void *joins_first(void *arg) {
    pthread_mutex_lock(&audit); /* joiner holds */
    pthread_barrier_wait(&both);
    pthread_join(first, 0); /* joiner waits */
    return arg;
}
static void *wants_audit(void *arg) {
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&audit); /* joined waits */
    return arg;
}

static void *spinner(void *arg) {
    pthread_spin_lock(&spin);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&audit);
    return arg;
}
static void *spun(void *arg) {
    pthread_mutex_lock(&audit);
    pthread_barrier_wait(&both);
    pthread_spin_lock(&spin); /* spins */
    return arg;
}

static void *reader(void *arg) {
    pthread_rwlock_rdlock(&table);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&audit);
    return arg;
}
static void *writer(void *arg) {
    pthread_mutex_lock(&audit);
    pthread_barrier_wait(&both);
    pthread_rwlock_wrlock(&table); /* writer waits */
    return arg;
}

static void *rereader(void *arg) {
    pthread_rwlock_rdlock(&fair); /* first read */
    nap(50);
    pthread_rwlock_rdlock(&fair); /* second read */
    return arg;
}
static void *fair_writer(void *arg) {
    nap(20);
    pthread_rwlock_wrlock(&fair); /* writer between */
    return arg;
}

static void *sleeper(void *arg) {
    pthread_mutex_lock(&bystanders);
    pthread_mutex_lock(&audit);
    pthread_barrier_wait(&both);
    pthread_cond_wait(&ready, &audit); /* takes back */
    return arg;
}
static void *waker(void *arg) {
    pthread_barrier_wait(&both);
    nap(20);
    pthread_mutex_lock(&audit);
    pthread_cond_signal(&ready);
    pthread_mutex_lock(&bystanders);
    return arg;
}

static int timed(pthread_mutex_t *mutex, int ms) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ms % 1000 * 1000000L;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return pthread_mutex_timedlock(mutex, &until);
}
static void *patient(void *arg) {
    pthread_mutex_lock(&audit);
    pthread_barrier_wait(&both);
    for (int round = 0; round < 3; round++)
        if (timed(&bystanders, 300) == 0) abort();
    pthread_mutex_unlock(&audit);
    return arg;
}
static void *stubborn(void *arg) {
    pthread_mutex_lock(&bystanders);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&audit);
    pthread_mutex_unlock(&audit);
    pthread_mutex_unlock(&bystanders);
    return arg;
}

/* rounds: deadlocks closed by two threads at the same instant. */
struct round { pthread_mutex_t one, two; pthread_barrier_t start; pthread_mutex_t *mine[2]; };
struct side { struct round *round; int which; };
static void *closes(void *arg) {
    struct side *side = arg;
    struct round *round = side->round;
    pthread_mutex_lock(side->which ? &round->two : &round->one);
    pthread_barrier_wait(&round->start);
    pthread_mutex_lock(side->which ? &round->one : &round->two);
    return 0;
}
static void rounds(int count) {
    for (int i = 0; i < count; i++) {
        struct round *round = calloc(1, sizeof *round);
        struct side *sides = calloc(2, sizeof *sides);
        pthread_mutex_init(&round->one, 0);
        pthread_mutex_init(&round->two, 0);
        pthread_barrier_init(&round->start, 0, 2);
        for (int s = 0; s < 2; s++) {
            pthread_t thread;
            sides[s] = (struct side){round, s};
            if (pthread_create(&thread, 0, closes, &sides[s])) abort();
        }
    }
    nap(500);
    exit(0);
}

/* clean: the same locks and calls, and nothing wrong. */
static void *worker(void *arg) {
    for (int i = 0; i < 3000; i++) {
        pthread_mutex_lock(&audit);
        pthread_mutex_lock(&accounts[1].lock);
        if (i % 7 == 0) pthread_cond_broadcast(&ready);
        pthread_mutex_unlock(&accounts[1].lock);
        pthread_mutex_unlock(&audit);
        if (pthread_mutex_trylock(&accounts[1].lock) == 0) {
            /* The other order, but it does not wait. */
            if (pthread_mutex_trylock(&audit) == 0) pthread_mutex_unlock(&audit);
            pthread_mutex_unlock(&accounts[1].lock);
        }
        pthread_rwlock_rdlock(&table);
        pthread_rwlock_rdlock(&table);
        pthread_rwlock_unlock(&table);
        pthread_rwlock_unlock(&table);
        if (i % 16 == 0) {
            pthread_rwlock_wrlock(&table);
            pthread_spin_lock(&spin);
            pthread_spin_unlock(&spin);
            pthread_rwlock_unlock(&table);
        }
        if (timed(&bystanders, 2) == 0) {
            if (i % 100 == 0) nap(3);
            pthread_mutex_unlock(&bystanders);
        }
    }
    return arg;
}
static int clean(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, worker, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    puts("clean");
    return 5;
}

/* blocked: an owner that sleeps; leaked: one that has ended. */
static void *dozer(void *arg) {
    pthread_mutex_lock(&audit); /* dozer holds */
    pthread_barrier_wait(&both);
    nap(600); /* dozer sleeps */
    pthread_mutex_unlock(&audit);
    return arg;
}
static void *leaker(void *arg) {
    pthread_mutex_lock(&audit); /* leaker holds */
    return arg;
}

static int is(const char *name, char **argv) { return strcmp(argv[1], name) == 0; }

int main(int argc, char **argv) {
    pthread_t second;
    if (argc < 2) return 2;
    pthread_mutex_init(&accounts[1].lock, 0);
    pthread_spin_init(&spin, 0);
    pthread_barrier_init(&both, 0, 2);
    if (is("abba", argv)) {
        start(teller, "teller", &first);
        start(auditor, "auditor", 0);
        start(follower, "follower", 0);
    } else if (is("self", argv)) {
        pthread_mutex_lock(&audit); /* once */
        pthread_mutex_lock(&audit); /* twice */
    } else if (is("upgrade", argv)) {
        pthread_rwlock_rdlock(&table); /* reads */
        pthread_rwlock_wrlock(&table); /* upgrades */
    } else if (is("join", argv)) {
        start(wants_audit, "joined", &first);
        start(joins_first, "joiner", &second);
        pthread_join(second, 0);
    } else if (is("spin", argv)) {
        start(spinner, "spinner", &first);
        start(spun, "spun", 0);
    } else if (is("rwlock", argv)) {
        start(reader, "reader", &first);
        start(writer, "writer", 0);
    } else if (is("fair", argv)) {
        start(rereader, "rereader", &first);
        start(fair_writer, "writer", 0);
    } else if (is("condition", argv)) {
        start(sleeper, "sleeper", &first);
        start(waker, "waker", 0);
    } else if (is("timed", argv)) {
        start(patient, "patient", &first);
        start(stubborn, "stubborn", &second);
        pthread_join(second, 0);
    } else if (is("rounds", argv)) {
        rounds(atoi(argv[2]));
    } else if (is("clean", argv)) {
        return clean();
    } else if (is("blocked", argv)) {
        start(dozer, "dozer", &first);
        pthread_barrier_wait(&both);
        pthread_mutex_lock(&audit); /* main waits */
        return 0;
    } else if (is("leaked", argv)) {
        start(leaker, "leaker", &first);
        pthread_join(first, 0);
        start(locks_audit, "waiter", 0);
        nap(500);
        return 0;
    } else if (is("children", argv)) {
        /* The child of a fork, and a program that it starts. */
        if (fork() == 0) {
            /* It would hang for ever, with the descriptors of the test. */
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            execl("/proc/self/exe", argv[0], "self", (char *)0);
            _exit(9);
        }
        nap(200);
        return 0;
    } else if (is("fork", argv)) {
        if (fork() == 0) {
            pthread_mutex_lock(&audit);
            pthread_mutex_lock(&audit); /* in the child */
        }
        int status;
        wait(&status);
        return 0;
    } else if (is("daemon", argv)) {
        if (fork() == 0) {
            setsid();
            nap(300);
            pthread_mutex_lock(&audit);
            pthread_mutex_lock(&audit); /* in the daemon */
        }
        return 0;
    } else {
        return 2;
    }
    pthread_join(first, 0);
    return 0;
}
