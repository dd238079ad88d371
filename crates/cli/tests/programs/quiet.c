/* Programs in which nothing is wrong, one a run: `quiet WHAT`. Each prints what
 * it came to; under `lockstead run` it must print the same. */
#include "common.h"
#include <dirent.h>
#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <spawn.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static atomic_int count;
static sigjmp_buf back;
extern char **environ;

/* Types that may be locked twice, or say that they may not. */
static void types(void)
{
    pthread_mutexattr_t attribute;
    pthread_mutex_t recursive, checked;
    must(pthread_mutexattr_init(&attribute));
    must(pthread_mutexattr_settype(&attribute, PTHREAD_MUTEX_RECURSIVE));
    must(pthread_mutex_init(&recursive, &attribute));
    must(pthread_mutexattr_settype(&attribute, PTHREAD_MUTEX_ERRORCHECK));
    must(pthread_mutex_init(&checked, &attribute));
    for (int i = 0; i < 3; i++)
        must(pthread_mutex_lock(&recursive));
    for (int i = 0; i < 3; i++)
        must(pthread_mutex_unlock(&recursive));
    printf("unlock of a free recursive one: %d\n", pthread_mutex_unlock(&recursive));
    must(pthread_mutex_lock(&checked));
    printf("second lock: %d, trylock: %d\n", pthread_mutex_lock(&checked),
           pthread_mutex_trylock(&checked));
    must(pthread_mutex_unlock(&checked));
    printf("second unlock: %d\n", pthread_mutex_unlock(&checked));
    must(pthread_mutex_destroy(&recursive));
    must(pthread_mutex_destroy(&checked));
}

static void *dies_with(void *robust)
{
    must(pthread_mutex_lock(robust));
    return NULL;
}

static void robust(void)
{
    pthread_mutexattr_t attribute;
    pthread_mutex_t lasting;
    must(pthread_mutexattr_init(&attribute));
    must(pthread_mutexattr_setrobust(&attribute, PTHREAD_MUTEX_ROBUST));
    must(pthread_mutex_init(&lasting, &attribute));
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        must(pthread_create(&thread, NULL, dies_with, &lasting));
        must(pthread_join(thread, NULL));
        printf("owner died: %d\n", pthread_mutex_lock(&lasting) == EOWNERDEAD);
        must(pthread_mutex_consistent(&lasting));
        must(pthread_mutex_unlock(&lasting));
    }
    must(pthread_mutex_lock(&lasting));
    must(pthread_mutex_unlock(&lasting));
}

static void unlocks(void *which)
{
    printf("cleaned up\n");
    must(pthread_mutex_unlock(which));
}

static void *waits_for_ever(void *unused)
{
    must(pthread_mutex_lock(&mutex));
    pthread_cleanup_push(unlocks, &mutex);
    atomic_fetch_add(&count, 1);
    for (;;)
        must(pthread_cond_wait(&cond, &mutex));
    pthread_cleanup_pop(1);
    return unused;
}

static void *waits_for_token(void *unused)
{
    atomic_fetch_add(&count, 1);
    for (;;)
        sem_wait(&semaphore);
    return unused;
}

static void cancellation(void)
{
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *result;
        must(pthread_create(&thread, NULL, i % 2 ? waits_for_ever : waits_for_token, NULL));
        await(&count, i + 1);
        if (i % 4 < 2)
            nap(2);
        must(pthread_cancel(thread));
        must(pthread_join(thread, &result));
        printf("cancelled: %d\n", result == PTHREAD_CANCELED);
        must(pthread_mutex_lock(&mutex));
        must(pthread_mutex_unlock(&mutex));
    }
}

static pthread_key_t key;

static void destructor(void *value)
{
    must(pthread_mutex_lock(&mutex));
    atomic_fetch_add(&count, 1);
    must(pthread_mutex_unlock(&mutex));
    if ((long)value > 1)
        pthread_setspecific(key, (void *)((long)value - 1));
}

static void *short_life(void *round)
{
    pthread_setspecific(key, (void *)((long)round % 3 + 1));
    must(pthread_mutex_lock(&mutex));
    must(pthread_mutex_unlock(&mutex));
    if ((long)round % 2)
        pthread_exit(round);
    return round;
}

static void threads(void)
{
    long sum = 0;
    must(pthread_key_create(&key, destructor));
    for (long i = 0; i < 2000; i += 8) {
        pthread_t some[8];
        for (int j = 0; j < 8; j++)
            must(pthread_create(&some[j], NULL, short_life, (void *)(i + j)));
        for (int j = 0; j < 8; j++) {
            void *result;
            must(pthread_join(some[j], &result));
            sum += (long)result;
        }
    }
    printf("sum %ld, destructors ran %d times\n", sum, atomic_load(&count));
}

static void on_signal(int number)
{
    (void)number;
    sem_post(&semaphore);
    /* Not allowed, and done everywhere. */
    if (pthread_mutex_trylock(&mutex) == 0)
        pthread_mutex_unlock(&mutex);
}

static void *locks_much(void *unused)
{
    for (int i = 0; i < 200000; i++) {
        must(pthread_mutex_lock(&mutex));
        must(pthread_mutex_unlock(&mutex));
    }
    return unused;
}

static void *locks_until_told(void *told)
{
    while (!atomic_load((atomic_int *)told))
        for (int i = 0; i < 1000; i++) {
            must(pthread_mutex_lock(&mutex));
            must(pthread_mutex_unlock(&mutex));
        }
    return NULL;
}

static void signals(void)
{
    pthread_t thread;
    int posts;
    signal(SIGUSR1, on_signal);
    must(pthread_create(&thread, NULL, locks_until_told, &count));
    for (int sent = 1; sent <= 500; sent++) {
        must(pthread_kill(thread, SIGUSR1));
        /* One at a time, so that none is merged with another. */
        while (sem_getvalue(&semaphore, &posts) == 0 && posts < sent)
            nap(0);
    }
    atomic_store(&count, 1);
    must(pthread_join(thread, NULL));
    printf("handled %d signals\n", posts);
}

static void jumps_out(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

static void longjmp_out(void)
{
    pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
    signal(SIGALRM, jumps_out);
    for (volatile int i = 0; i < 5; i++) {
        if (sigsetjmp(back, 1) == 0) {
            ualarm(20000, 0);
            sem_wait(&semaphore);
        }
        must(pthread_mutex_lock(&held));
        must(pthread_mutex_unlock(&held));
        printf("out\n");
    }
}

static void forks(void)
{
    for (int i = 0; i < 20; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            pthread_t thread;
            must(pthread_mutex_lock(&mutex));
            must(pthread_mutex_unlock(&mutex));
            must(pthread_create(&thread, NULL, locks_much, NULL));
            must(pthread_join(thread, NULL));
            _exit(i);
        }
        must(waitpid(child, &status, 0) != child);
        printf("child %d\n", WEXITSTATUS(status));
    }
}

static void starts(void)
{
    char *arguments[] = {"sh", "-c", "echo from spawn", NULL};
    char text[64] = "";
    pid_t child;
    fflush(stdout);
    must(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ));
    must(waitpid(child, NULL, 0) != child);
    if ((child = vfork()) == 0) {
        execl("/bin/sh", "sh", "-c", "echo from vfork", NULL);
        _exit(1);
    }
    must(waitpid(child, NULL, 0) != child);
    printf("system: %d\n", WEXITSTATUS(system("exit 9")));
    FILE *pipe = popen("echo from popen", "r");
    printf("%s", fgets(text, sizeof text, pipe));
    must(pclose(pipe));
}

/* Closes all it did not open, as daemons do, and looks what is left. */
static void closes(void)
{
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    printf("first free descriptor: %d\n", open("/dev/null", O_RDONLY));
    must(pthread_mutex_lock(&mutex));
    must(pthread_mutex_unlock(&mutex));
    locks_much(NULL);
    int status;
    pid_t child = fork();
    if (child == 0) {
        setsid();
        locks_much(NULL);
        _exit(3);
    }
    must(waitpid(child, &status, 0) != child);
    printf("child %d\n", WEXITSTATUS(status));
}

static void descriptors(void)
{
    DIR *all = opendir("/proc/self/fd");
    int open_ones = 0;
    for (struct dirent *one; (one = readdir(all)) != NULL;)
        open_ones += one->d_name[0] != '.';
    closedir(all);
    printf("%d descriptors\n", open_ones);
}

static void jail(void)
{
    if (geteuid() != 0) {
        printf("not root\n");
        return;
    }
    must(chroot("/proc/self/fdinfo"));
    must(setgid(65534));
    must(setuid(65534));
    locks_much(NULL);
    pid_t child = fork();
    if (child == 0) {
        locks_much(NULL);
        _exit(4);
    }
    int status;
    must(waitpid(child, &status, 0) != child);
    printf("in jail: %d\n", WEXITSTATUS(status));
}

static void *frees(void *unused)
{
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_t *one = malloc(sizeof *one);
        must(pthread_mutex_init(one, NULL));
        must(pthread_mutex_lock(one));
        must(pthread_mutex_unlock(one));
        if (i % 2)
            must(pthread_mutex_destroy(one));
        free(one);
    }
    return unused;
}

static void heap(void)
{
    pthread_t some[4];
    for (int i = 0; i < 4; i++)
        must(pthread_create(&some[i], NULL, frees, NULL));
    for (int i = 0; i < 4; i++)
        must(pthread_join(some[i], NULL));
    printf("done\n");
}

static void *hands_on(void *unused)
{
    must(pthread_mutex_unlock(&mutex));
    return unused;
}

/* A normal mutex that another thread releases: wrong by the book, and works. */
static void foreign(void)
{
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        must(pthread_mutex_lock(&mutex));
        must(pthread_create(&thread, NULL, hands_on, NULL));
        must(pthread_join(thread, NULL));
    }
    printf("handed on\n");
}

static pthread_mutex_t second = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;

static void *uses_all(void *unused)
{
    for (int i = 0; i < 3000; i++) {
        must(pthread_mutex_lock(&mutex));
        must(pthread_mutex_lock(&second));
        if (i % 7 == 0)
            must(pthread_cond_broadcast(&cond));
        must(pthread_mutex_unlock(&second));
        must(pthread_mutex_unlock(&mutex));
        if (pthread_mutex_trylock(&second) == 0) {
            /* The other order, but it does not wait. */
            if (pthread_mutex_trylock(&mutex) == 0)
                must(pthread_mutex_unlock(&mutex));
            must(pthread_mutex_unlock(&second));
        }
        must(pthread_rwlock_rdlock(&table));
        must(pthread_rwlock_rdlock(&table));
        must(pthread_rwlock_unlock(&table));
        must(pthread_rwlock_unlock(&table));
        if (i % 16 == 0) {
            must(pthread_rwlock_wrlock(&table));
            must(pthread_spin_lock(&spin));
            must(pthread_spin_unlock(&spin));
            must(pthread_rwlock_unlock(&table));
        }
    }
    return unused;
}

/* Locks of all kinds, wanted by many at a time, in good order. */
static void order(void)
{
    pthread_t some[4];
    must(pthread_spin_init(&spin, 0));
    for (int i = 0; i < 4; i++)
        must(pthread_create(&some[i], NULL, uses_all, NULL));
    for (int i = 0; i < 4; i++)
        must(pthread_join(some[i], NULL));
    printf("in order\n");
}

int main(int argc, char **argument)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {
        {"types", types}, {"robust", robust}, {"cancellation", cancellation},
        {"threads", threads}, {"signals", signals}, {"longjmp", longjmp_out},
        {"forks", forks}, {"starts", starts}, {"closes", closes},
        {"descriptors", descriptors}, {"jail", jail}, {"heap", heap}, {"foreign", foreign},
        {"order", order},
    };
    setvbuf(stdout, NULL, _IONBF, 0);
    must(sem_init(&semaphore, 0, 0));
    for (unsigned i = 0; argc > 1 && i < sizeof all / sizeof *all; i++)
        if (strcmp(argument[1], all[i].name) == 0) {
            all[i].run();
            return 40 + i;
        }
    return 96;
}
