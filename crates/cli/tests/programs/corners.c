/* Deadlocks in odd places and with odd locks, one a run: `corners WHAT`. Each
 * closes one cycle (of as many threads as the test says) and stays in it. */
#include "common.h"

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static atomic_int came;
static const char *wanted = "";

static int is(const char *kind)
{
    return strcmp(wanted, kind) == 0;
}

static void lock(pthread_mutex_t *mutex)
{
    must(pthread_mutex_lock(mutex));
}

static void *cross(void *first)
{
    lock(first);
    meet(&came, 2);
    lock(first == &one ? &two : &one);
    return NULL;
}

static void cross_in_threads(void)
{
    start(cross, &one, "forth");
    start(cross, &two, "back");
}

static void twice(void)
{
    lock(&one);
    lock(&one);
}

/* Both mutexes with these attributes. */
static void made(int type, int robust, int protocol, int shared)
{
    pthread_mutexattr_t attribute;
    must(pthread_mutexattr_init(&attribute));
    must(pthread_mutexattr_settype(&attribute, type));
    must(pthread_mutexattr_setrobust(&attribute, robust));
    must(pthread_mutexattr_setprotocol(&attribute, protocol));
    must(pthread_mutexattr_setpshared(&attribute, shared));
    must(pthread_mutex_init(&one, &attribute));
    must(pthread_mutex_init(&two, &attribute));
}

static void with_attributes(void)
{
    static const struct {
        const char *name;
        int type, robust, protocol, shared;
    } all[] = {
        {"adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, 0, 0, 0},
        {"checking", PTHREAD_MUTEX_ERRORCHECK, 0, 0, 0},
        {"recursive", PTHREAD_MUTEX_RECURSIVE, 0, 0, 0},
        {"robust", PTHREAD_MUTEX_NORMAL, 1, 0, 0},
        {"robust-recursive", PTHREAD_MUTEX_RECURSIVE, 1, 0, 0},
        {"shared", PTHREAD_MUTEX_NORMAL, 0, 0, 1},
        {"inherit", PTHREAD_MUTEX_NORMAL, 0, PTHREAD_PRIO_INHERIT, 0},
        {"robust-inherit", PTHREAD_MUTEX_NORMAL, 1, PTHREAD_PRIO_INHERIT, 0},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t length = strlen(all[i].name);
        if (strncmp(wanted, all[i].name, length) != 0)
            continue;
        if (strcmp(wanted + length, "-cross") == 0) {
            made(all[i].type, all[i].robust, all[i].protocol, all[i].shared);
            cross_in_threads();
        } else if (strcmp(wanted + length, "-twice") == 0) {
            made(all[i].type, all[i].robust, all[i].protocol, all[i].shared);
            twice();
        }
    }
}

/* Before and after main. */
__attribute__((constructor)) static void before(int argc, char **argument)
{
    wanted = argc == 2 ? argument[1] : "";
    if (is("constructor"))
        twice();
    if (is("constructor-cross"))
        cross_in_threads();
}

__attribute__((destructor)) static void after(void)
{
    if (is("destructor"))
        twice();
}

static void at_exit(void)
{
    if (is("at-exit"))
        cross_in_threads(), sleep_for_ever();
}

/* At the end of a thread. */
static void of_a_key(void *value)
{
    (void)value;
    twice();
}

static void *ends(void *key)
{
    must(pthread_setspecific(*(pthread_key_t *)key, key));
    return NULL;
}

static void *cleans_up(void *unused)
{
    pthread_cleanup_push(of_a_key, NULL);
    pthread_exit(unused);
    pthread_cleanup_pop(0);
    return unused;
}

/* In a handler that interrupts who holds the mutex. */
static void handler(int number)
{
    (void)number;
    lock(&one);
}

/* On a stack as small as can be, or an ordinary one. */
static void *on_a_small_stack(void *unused)
{
    twice();
    return unused;
}

/* In children. */
static void in_a_child(void (*body)(void))
{
    pid_t child = fork();
    if (child == 0) {
        body();
        sleep_for_ever();
    }
    must(waitpid(child, NULL, 0) != child);
}

static void *forks_with_the_lock(void *unused)
{
    lock(&one);
    if (fork() == 0) {
        lock(&one);
        _exit(0);
    }
    sleep_for_ever();
    return unused;
}

/* Readers of whom each is on a cycle with the one writer. */
static void *reads_first(void *unused)
{
    must(pthread_rwlock_rdlock(&table));
    meet(&came, 4);
    lock(&one);
    return unused;
}

static void *writes_last(void *unused)
{
    lock(&one);
    meet(&came, 4);
    must(pthread_rwlock_wrlock(&table));
    return unused;
}

/* A cycle that a join closes, and one of joins alone. */
static pthread_t joined;

static void *joins_holding(void *unused)
{
    lock(&one);
    atomic_store(&came, 1);
    must(pthread_join(joined, NULL));
    return unused;
}

static void *is_joined(void *unused)
{
    await(&came, 1);
    lock(&one);
    return unused;
}

static void *joins_next(void *next)
{
    await(&came, 1);
    must(pthread_join(*(pthread_t *)next, NULL));
    return NULL;
}

/* More locks than fit into the first page of a thread's held stack, and almost
 * all that it has room for. */
static pthread_mutex_t many[20000];

static void after_many(int count)
{
    for (int i = 0; i < count; i++) {
        must(pthread_mutex_init(&many[i], NULL));
        lock(&many[i]);
    }
    lock(&many[count / 2]);
}

int main(int argc, char **argument)
{
    (void)argc, (void)argument;
    pthread_t thread, cycle[3];
    pthread_key_t key;
    pthread_attr_t attribute;
    must(atexit(at_exit));
    with_attributes();
    if (is("destructor") || is("at-exit"))
        return 0;
    if (is("key")) {
        must(pthread_key_create(&key, of_a_key));
        must(pthread_create(&thread, NULL, ends, &key));
    }
    if (is("cleanup"))
        must(pthread_create(&thread, NULL, cleans_up, NULL));
    if (is("handler")) {
        signal(SIGUSR1, handler);
        lock(&one);
        raise(SIGUSR1);
    }
    if (is("small-stack")) {
        must(pthread_attr_init(&attribute));
        must(pthread_attr_setstacksize(&attribute, PTHREAD_STACK_MIN));
        must(pthread_create(&thread, &attribute, on_a_small_stack, NULL));
    }
    if (is("child-cross"))
        in_a_child(cross_in_threads);
    if (is("child-twice"))
        in_a_child(twice);
    if (is("inherited")) {
        lock(&one);
        in_a_child(twice);
    }
    if (is("inherited-from-a-thread"))
        start(forks_with_the_lock, NULL, "forks");
    if (is("readers")) {
        for (int i = 0; i < 3; i++)
            start(reads_first, NULL, "reader");
        start(writes_last, NULL, "writer");
    }
    if (is("join")) {
        joined = start(is_joined, NULL, "joined");
        start(joins_holding, NULL, "joins");
    }
    if (is("join-cycle")) {
        for (int i = 0; i < 3; i++)
            must(pthread_create(&cycle[i], NULL, joins_next, &cycle[(i + 1) % 3]));
        atomic_store(&came, 1);
    }
    if (is("join-at-once")) {
        /* The joiner waits before the other thread has begun. */
        lock(&one);
        must(pthread_create(&thread, NULL, on_a_small_stack, NULL));
        must(pthread_join(thread, NULL));
    }
    if (is("first-thread-joined")) {
        thread = pthread_self();
        lock(&one);
        atomic_store(&came, 1);
        must(pthread_create(&cycle[0], NULL, joins_next, &thread));
        must(pthread_join(cycle[0], NULL));
    }
    if (is("after-1024"))
        after_many(1024);
    if (is("after-16000"))
        after_many(16000);
    sleep_for_ever();
}
