/* Deadlocks of every kind, one a run: `deadlocks KIND`. The comments with @
 * mark lines that a report must name. */
#include "common.h"

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t two = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t three = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t eager = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_spinlock_t left, right;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static atomic_int met;

static void *a_of_three(void *unused)
{
    must(pthread_mutex_lock(&one)); /* @three-a-holds */
    meet(&met, 3);
    must(pthread_mutex_lock(&two)); /* @three-a-waits */
    return unused;
}

static void *b_of_three(void *unused)
{
    must(pthread_mutex_lock(&two)); /* @three-b-holds */
    meet(&met, 3);
    must(pthread_mutex_lock(&three)); /* @three-b-waits */
    return unused;
}

static void *c_of_three(void *unused)
{
    must(pthread_mutex_lock(&three)); /* @three-c-holds */
    meet(&met, 3);
    must(pthread_mutex_lock(&one)); /* @three-c-waits */
    return unused;
}

static void ring_of_three(void)
{
    start(a_of_three, NULL, "a");
    start(b_of_three, NULL, "b");
    start(c_of_three, NULL, "c");
}

static void *lock_twice(void *unused)
{
    must(pthread_mutex_lock(&one)); /* @self-holds */
    must(pthread_mutex_lock(&one)); /* @self-waits */
    return unused;
}

static void *upgrade(void *unused)
{
    must(pthread_rwlock_rdlock(&table)); /* @upgrade-holds */
    must(pthread_rwlock_wrlock(&table)); /* @upgrade-waits */
    return unused;
}

static void *reader(void *unused)
{
    must(pthread_rwlock_rdlock(&table)); /* @reader-holds */
    meet(&met, 2);
    must(pthread_mutex_lock(&one)); /* @reader-waits */
    return unused;
}

static void *writer(void *unused)
{
    must(pthread_mutex_lock(&one)); /* @writer-holds */
    meet(&met, 2);
    must(pthread_rwlock_wrlock(&table)); /* @writer-waits */
    return unused;
}

static void *reads_again(void *unused)
{
    must(pthread_rwlock_rdlock(&eager)); /* @again-holds */
    meet(&met, 2);
    nap(100);
    must(pthread_rwlock_rdlock(&eager)); /* @again-waits */
    return unused;
}

static void *writes_between(void *unused)
{
    meet(&met, 2);
    must(pthread_rwlock_wrlock(&eager)); /* @between-waits */
    return unused;
}

static void *spin_left(void *unused)
{
    must(pthread_spin_lock(&left)); /* @left-holds */
    meet(&met, 2);
    must(pthread_spin_lock(&right)); /* @left-waits */
    return unused;
}

static void *spin_right(void *unused)
{
    must(pthread_spin_lock(&right)); /* @right-holds */
    meet(&met, 2);
    must(pthread_spin_lock(&left)); /* @right-waits */
    return unused;
}

static void *works(void *unused)
{
    await(&met, 1);
    must(pthread_mutex_lock(&one)); /* @works-waits */
    return unused;
}

static void *joins(void *worker)
{
    must(pthread_mutex_lock(&one)); /* @joins-holds */
    atomic_fetch_add(&met, 1);
    must(pthread_join(*(pthread_t *)worker, NULL)); /* @joins-waits */
    return NULL;
}

static void *waits_for_change(void *unused)
{
    must(pthread_mutex_lock(&one)); /* @change-holds */
    must(pthread_mutex_lock(&two));
    atomic_fetch_add(&met, 1);
    must(pthread_cond_wait(&changed, &two)); /* @change-waits */
    return unused;
}

static void *changes(void *unused)
{
    await(&met, 1);
    must(pthread_mutex_lock(&two)); /* @changes-holds */
    must(pthread_cond_signal(&changed));
    must(pthread_mutex_lock(&one)); /* @changes-waits */
    return unused;
}

static void *patient(void *unused)
{
    struct timespec until;
    must(pthread_mutex_lock(&one)); /* @patient-holds */
    meet(&met, 2);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    if (pthread_mutex_timedlock(&two, &until) != ETIMEDOUT) /* @patient-waits */
        _exit(98);
    must(pthread_mutex_unlock(&one));
    return unused;
}

static void *stubborn(void *unused)
{
    must(pthread_mutex_lock(&two)); /* @stubborn-holds */
    meet(&met, 2);
    must(pthread_mutex_lock(&one)); /* @stubborn-waits */
    must(pthread_mutex_unlock(&one));
    must(pthread_mutex_unlock(&two));
    return unused;
}

struct link {
    pthread_mutex_t mutex;
    struct link *next;
};

static atomic_int linked;
static int links;

static void *in_ring(void *link)
{
    struct link *mine = link;
    must(pthread_mutex_lock(&mine->mutex)); /* @ring-holds */
    meet(&linked, links);
    must(pthread_mutex_lock(&mine->next->mutex)); /* @ring-waits */
    return NULL;
}

/* As many threads and mutexes, each waiting for the next. */
static void ring_of(int n)
{
    struct link *all = calloc(n, sizeof *all);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    links = n;
    for (int i = 0; i < n; i++) {
        pthread_t thread;
        must(pthread_mutex_init(&all[i].mutex, NULL)); /* @ring-init */
        all[i].next = &all[(i + 1) % n];
        must(pthread_create(&thread, &small, in_ring, &all[i]));
    }
}

static int is(const char *kind, const char *other)
{
    return strcmp(kind, other) == 0;
}

int main(int count, char **argument)
{
    const char *kind = count > 1 ? argument[1] : "";
    if (is(kind, "three")) {
        ring_of_three();
    } else if (is(kind, "self")) {
        start(lock_twice, NULL, "self");
    } else if (is(kind, "upgrade")) {
        start(upgrade, NULL, "upgrader");
    } else if (is(kind, "readers")) {
        start(reader, NULL, "reader");
        start(writer, NULL, "writer");
    } else if (is(kind, "again")) {
        start(reads_again, NULL, "reader");
        start(writes_between, NULL, "writer");
    } else if (is(kind, "spin")) {
        must(pthread_spin_init(&left, 0));
        must(pthread_spin_init(&right, 0));
        start(spin_left, NULL, "left");
        start(spin_right, NULL, "right");
    } else if (is(kind, "join")) {
        static pthread_t worker;
        worker = start(works, NULL, "worker");
        start(joins, &worker, "joiner");
    } else if (is(kind, "condition")) {
        start(waits_for_change, NULL, "waiter");
        start(changes, NULL, "changer");
    } else if (is(kind, "timed")) {
        pthread_t first = start(patient, NULL, "patient");
        pthread_t second = start(stubborn, NULL, "stubborn");
        must(pthread_join(first, NULL));
        must(pthread_join(second, NULL));
        puts("both came through");
        return 5;
    } else if (is(kind, "ring")) {
        ring_of(atoi(argument[2]));
    } else if (is(kind, "fork")) {
        pid_t child = fork();
        if (child == 0) {
            ring_of_three();
            sleep_for_ever();
        }
        printf("child %d\n", child);
        fflush(stdout);
        while (waitpid(child, NULL, 0) < 0) {
        }
    } else if (is(kind, "exec")) {
        execl(argument[0], argument[0], "three", NULL);
        return 97;
    } else {
        return 96;
    }
    sleep_for_ever();
}
