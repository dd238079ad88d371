/* Deadlocks of every kind, one a run: `deadlocks KIND`. The comments with @
 * mark lines that a report must name. `deadlocks KIND orderly` makes the same
 * calls, but each thread waits for the one before to be done: nothing is wrong,
 * and it ends. */
#include "common.h"
#include <sys/prctl.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t two = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t three = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t eager = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_spinlock_t left, right;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static atomic_int met;
static int orderly;

/* Both have taken their first lock; in order, nobody waits for anybody. */
static void together(int n)
{
    if (!orderly)
        meet(&met, n);
}

/* A thread; in order, one after the other. */
static pthread_t run(void *(*body)(void *), void *argument, const char *name)
{
    pthread_t thread = start(body, argument, name);
    if (orderly)
        must(pthread_join(thread, NULL));
    return thread;
}

static void unlock(pthread_mutex_t *first, pthread_mutex_t *second)
{
    must(pthread_mutex_unlock(first));
    must(pthread_mutex_unlock(second));
}

static void *a_of_three(void *unused)
{
    must(pthread_mutex_lock(&one)); /* @three-a-holds */
    together(3);
    must(pthread_mutex_lock(&two)); /* @three-a-waits */
    unlock(&one, &two);
    return unused;
}

static void *b_of_three(void *unused)
{
    must(pthread_mutex_lock(&two)); /* @three-b-holds */
    together(3);
    must(pthread_mutex_lock(&three)); /* @three-b-waits */
    unlock(&two, &three);
    return unused;
}

static void *c_of_three(void *unused)
{
    must(pthread_mutex_lock(&three)); /* @three-c-holds */
    together(3);
    must(pthread_mutex_lock(&one)); /* @three-c-waits */
    unlock(&three, &one);
    return unused;
}

static void cycle_of_three(void)
{
    run(a_of_three, NULL, "a");
    run(b_of_three, NULL, "b");
    run(c_of_three, NULL, "c");
}

static void *lock_twice(void *unused)
{
    must(pthread_mutex_lock(&one)); /* @self-holds */
    if (orderly)
        must(pthread_mutex_unlock(&one));
    must(pthread_mutex_lock(&one)); /* @self-waits */
    must(pthread_mutex_unlock(&one));
    return unused;
}

static void *upgrade(void *unused)
{
    must(pthread_rwlock_rdlock(&table)); /* @upgrade-holds */
    if (orderly)
        must(pthread_rwlock_unlock(&table));
    must(pthread_rwlock_wrlock(&table)); /* @upgrade-waits */
    must(pthread_rwlock_unlock(&table));
    return unused;
}

static void *reader(void *unused)
{
    must(pthread_rwlock_rdlock(&table)); /* @reader-holds */
    together(2);
    must(pthread_mutex_lock(&one)); /* @reader-waits */
    must(pthread_rwlock_unlock(&table));
    must(pthread_mutex_unlock(&one));
    return unused;
}

static void *writer(void *unused)
{
    must(pthread_mutex_lock(&one)); /* @writer-holds */
    together(2);
    must(pthread_rwlock_wrlock(&table)); /* @writer-waits */
    must(pthread_rwlock_unlock(&table));
    must(pthread_mutex_unlock(&one));
    return unused;
}

static atomic_int writer_between;

static void *reads_again(void *unused)
{
    must(pthread_rwlock_rdlock(&eager)); /* @again-holds */
    together(2);
    if (!orderly)
        await_state(&writer_between, 'S');
    must(pthread_rwlock_rdlock(&eager)); /* @again-waits */
    must(pthread_rwlock_unlock(&eager));
    must(pthread_rwlock_unlock(&eager));
    return unused;
}

static void *writes_between(void *unused)
{
    together(2);
    announce(&writer_between);
    must(pthread_rwlock_wrlock(&eager)); /* @between-waits */
    must(pthread_rwlock_unlock(&eager));
    return unused;
}

static void *spin_left(void *unused)
{
    must(pthread_spin_lock(&left)); /* @left-holds */
    together(2);
    must(pthread_spin_lock(&right)); /* @left-waits */
    must(pthread_spin_unlock(&left));
    must(pthread_spin_unlock(&right));
    return unused;
}

static void *spin_right(void *unused)
{
    must(pthread_spin_lock(&right)); /* @right-holds */
    together(2);
    must(pthread_spin_lock(&left)); /* @right-waits */
    must(pthread_spin_unlock(&left));
    must(pthread_spin_unlock(&right));
    return unused;
}

static void *works(void *unused)
{
    if (!orderly)
        await(&met, 1);
    must(pthread_mutex_lock(&one)); /* @works-waits */
    must(pthread_mutex_unlock(&one));
    return unused;
}

static void *joins(void *worker)
{
    must(pthread_mutex_lock(&one)); /* @joins-holds */
    atomic_fetch_add(&met, 1);
    if (orderly)
        must(pthread_mutex_unlock(&one));
    must(pthread_join(*(pthread_t *)worker, NULL)); /* @joins-waits */
    return NULL;
}

static void *waits_for_change(void *unused)
{
    must(pthread_mutex_lock(&one)); /* @change-holds */
    must(pthread_mutex_lock(&two));
    atomic_fetch_add(&met, 1);
    must(pthread_cond_wait(&changed, &two)); /* @change-waits */
    unlock(&two, &one);
    return unused;
}

static void *changes(void *unused)
{
    await(&met, 1);
    must(pthread_mutex_lock(&two)); /* @changes-holds */
    must(pthread_cond_signal(&changed));
    if (orderly)
        must(pthread_mutex_unlock(&two));
    must(pthread_mutex_lock(&one)); /* @changes-waits */
    must(pthread_mutex_unlock(&one));
    return unused;
}

/* How often the patient one tries, and for how long. */
static int rounds, patience;

static void *patient(void *unused)
{
    struct timespec until;
    must(pthread_mutex_lock(&one)); /* @patient-holds */
    together(2);
    for (int round = 0; round < rounds; round++) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += patience / 1000;
        until.tv_nsec += patience % 1000 * 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        if (pthread_mutex_timedlock(&two, &until) != ETIMEDOUT) /* @patient-waits */
            _exit(98);
    }
    must(pthread_mutex_unlock(&one));
    return unused;
}

static void *stubborn(void *unused)
{
    must(pthread_mutex_lock(&two)); /* @stubborn-holds */
    together(2);
    must(pthread_mutex_lock(&one)); /* @stubborn-waits */
    unlock(&one, &two);
    return unused;
}

struct link {
    pthread_mutex_t mutex;
    struct link *next;
};

/* Too many to look for each other again and again. */
static pthread_barrier_t linked;

static void *in_cycle(void *link)
{
    struct link *mine = link;
    must(pthread_mutex_lock(&mine->mutex)); /* @cycle-holds */
    if (!orderly)
        pthread_barrier_wait(&linked);
    must(pthread_mutex_lock(&mine->next->mutex)); /* @cycle-waits */
    unlock(&mine->mutex, &mine->next->mutex);
    return NULL;
}

/* As many threads and mutexes, each waiting for the next. */
static void cycle_of(int n)
{
    struct link *all = calloc(n, sizeof *all);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    must(pthread_barrier_init(&linked, NULL, n));
    for (int i = 0; i < n; i++) {
        pthread_t thread;
        must(pthread_mutex_init(&all[i].mutex, NULL)); /* @cycle-init */
        all[i].next = &all[(i + 1) % n];
        must(pthread_create(&thread, &small, in_cycle, &all[i]));
        if (orderly)
            must(pthread_join(thread, NULL));
    }
}

static int is(const char *kind, const char *other)
{
    return strcmp(kind, other) == 0;
}

static void *twice_in_child(void *unused)
{
    must(pthread_mutex_lock(&three));
    must(pthread_mutex_lock(&three)); /* @left-behind */
    return unused;
}

/* Starts the threads of a kind; where they come to an end, so does this. */
static int begin(const char *kind, char **argument)
{
    pthread_t first, second;
    if (is(kind, "three")) {
        cycle_of_three();
    } else if (is(kind, "self")) {
        run(lock_twice, NULL, "self");
    } else if (is(kind, "upgrade")) {
        run(upgrade, NULL, "upgrader");
    } else if (is(kind, "readers")) {
        run(reader, NULL, "reader");
        run(writer, NULL, "writer");
    } else if (is(kind, "again")) {
        run(reads_again, NULL, "reader");
        run(writes_between, NULL, "writer");
    } else if (is(kind, "spin")) {
        must(pthread_spin_init(&left, 0));
        must(pthread_spin_init(&right, 0));
        run(spin_left, NULL, "left");
        run(spin_right, NULL, "right");
    } else if (is(kind, "cycle")) {
        cycle_of(atoi(argument[0]));
    } else if (is(kind, "join")) {
        static pthread_t worker;
        worker = start(works, NULL, "worker");
        run(joins, &worker, "joiner");
    } else if (is(kind, "condition")) {
        first = start(waits_for_change, NULL, "waiter");
        second = start(changes, NULL, "changer");
        must(pthread_join(first, NULL));
        must(pthread_join(second, NULL));
    } else if (is(kind, "timed")) {
        rounds = atoi(argument[0]);
        patience = atoi(argument[1]);
        first = start(patient, NULL, "patient");
        second = start(stubborn, NULL, "stubborn");
        must(pthread_join(first, NULL));
        must(pthread_join(second, NULL));
        puts("both came through");
        exit(5);
    } else {
        return 0;
    }
    return 1;
}

int main(int count, char **argument)
{
    const char *kind = count > 1 ? argument[1] : "";
    orderly = count > 2 && is(argument[count - 1], "orderly");
    if (is(kind, "exec")) {
        execl(argument[0], argument[0], "three", argument[2], NULL);
        return 97;
    }
    if (is(kind, "fork")) {
        pid_t child = fork();
        int status;
        if (child == 0) {
            /* It would be left, with the descriptors of the test. */
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            cycle_of_three();
            if (orderly)
                _exit(6);
            sleep_for_ever();
        }
        if (!orderly)
            printf("child %d\n", child);
        fflush(stdout);
        while (waitpid(child, &status, 0) < 0) {
        }
        return WIFEXITED(status) ? WEXITSTATUS(status) : 7;
    }
    if (is(kind, "daemon")) {
        /* What the program leaves behind when it has ended. */
        pid_t program = getpid();
        if (fork() == 0) {
            setsid();
            while (getppid() == program)
                nap(1);
            start(twice_in_child, NULL, "behind");
            sleep_for_ever();
        }
        return 0;
    }
    if (!begin(kind, argument + 2))
        return 96;
    if (orderly) {
        puts("in order");
        return 8;
    }
    sleep_for_ever();
}
