/* What looks like a process that nothing can wake, by its name on the command line, but is none:
 * it serves, or somebody is there who may wake it. A child next to most of them is one. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static sem_t permits, first;
static unsigned word;
static int ends[2], to[2], set;
static char byte;

static void must(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(9);
    }
}

static const char *folder(void)
{
    const char *named = getenv("TMPDIR");
    return named ? named : "/tmp";
}

static void rests(void)
{
    for (;;)
        pause();
}
static void sleeps(void)
{
    for (;;)
        sleep(3600);
}

/* A child that ends with its parent and does its part. */
static void child(void (*part)(void))
{
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        part();
        rests();
    }
}

static void waits(void) { sem_wait(&permits); }
/* Made first, it has nothing that its parent opens later. */
static void bystander(void) { child(waits); }
static void serves_fifo(void)
{
    char path[4096];
    bystander();
    snprintf(path, sizeof path, "%s/waits.fifo.%d", folder(), getpid());
    must(!mkfifo(path, 0600), "mkfifo");
    int both = open(path, O_RDWR);
    must(both >= 0, "open");
    read(both, &byte, 1);
}
static void *forwards(void *unused)
{
    while (splice(ends[0], NULL, to[1], NULL, 1 << 16, 0) > 0) {}
    return unused;
}
static void forwards_slowly(void)
{
    static char much[1 << 16];
    pthread_t thread;
    bystander();
    must(!pipe(ends) && !socketpair(AF_UNIX, SOCK_STREAM, 0, to), "pipe");
    must(!pthread_create(&thread, NULL, forwards, NULL), "pthread_create");
    while (write(ends[1], much, sizeof much) > 0) {}
}
static int wakes_later(void *unused)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (!unused)
        syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
    return 0;
}
static void has_sibling(void)
{
    static char stack[1 << 16];
    bystander();
    int flags = CLONE_VM | CLONE_PARENT | SIGCHLD;
    must(clone(wakes_later, stack + sizeof stack, flags, NULL) > 0, "clone");
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}
static void *works(void *unused) { sem_wait(&first); return unused; }
static void serves_signals(void)
{
    pthread_t thread;
    bystander();
    must(!pthread_create(&thread, NULL, works, NULL), "pthread_create");
    pause();
}
static void serves_pipe(void)
{
    pthread_t thread;
    bystander();
    must(!pipe(ends), "pipe");
    must(!pthread_create(&thread, NULL, works, NULL), "pthread_create");
    child(rests);
    close(ends[1]);
    read(ends[0], &byte, 1);
}
static void waits_for_sleeper(void)
{
    bystander();
    sem_t *both = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(both != MAP_FAILED && !sem_init(both, 1, 0), "sem_init");
    child(sleeps);
    sem_wait(both);
}
static void main_ended(void)
{
    pthread_t thread;
    must(!pthread_create(&thread, NULL, works, NULL), "pthread_create");
    pthread_exit(NULL);
}
static struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
static const char *title;
static char path[4096];
static void locks(void)
{
    int file = open(path, O_RDWR | O_CREAT, 0600);
    prctl(PR_SET_NAME, title);
    must(file >= 0 && !fcntl(file, F_OFD_SETLKW, &range), "fcntl");
    if (title[0] == 'h')
        must(write(ends[1], "l", 1) == 1, "write");
}
/* Two have a range each, two wait for one of them each. */
static void ranges(void)
{
    static const char *const names[] = {"has-left", "has-right", "wants-left", "wants-right"};
    snprintf(path, sizeof path, "%s/waits.ranges.%d", folder(), getpid());
    for (int at = 0; at < 4; at++) {
        range.l_start = at % 2 * 100;
        title = names[at];
        if (at < 2) {
            /* Before others ask for it. */
            must(!pipe(ends), "pipe");
            child(locks);
            close(ends[1]);
            must(read(ends[0], &byte, 1) == 1, "read");
            close(ends[0]);
        } else {
            child(locks);
        }
    }
    rests();
}
/* Each has a share, and wants to be alone. */
static void two_upgrade(void)
{
    snprintf(path, sizeof path, "%s/waits.upgrade.%d", folder(), getpid());
    must(!pipe(ends) && !pipe(to), "pipe");
    for (int at = 0; at < 2; at++)
        if (!fork()) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            prctl(PR_SET_NAME, at ? "second" : "first");
            range.l_type = F_RDLCK;
            int file = open(path, O_RDWR | O_CREAT, 0600);
            must(file >= 0 && !fcntl(file, F_OFD_SETLKW, &range), "fcntl");
            must(write(ends[1], "r", 1) == 1 && read(to[0], &byte, 1) == 1, "pipe");
            range.l_type = F_WRLCK;
            fcntl(file, F_OFD_SETLKW, &range);
        }
    for (int at = 0; at < 2; at++)
        must(read(ends[0], &byte, 1) == 1, "read");
    must(write(to[1], "ww", 2) == 2, "write");
    rests();
}
static void removes_set(int unused) { (void)unused; semctl(set, 0, IPC_RMID); _exit(0); }
static void never_taken(void)
{
    bystander();
    set = semget(IPC_PRIVATE, 1, 0600);
    must(set >= 0, "semget");
    signal(SIGTERM, removes_set);
    struct sembuf take = {0, -1, SEM_UNDO};
    semop(set, &take, 1);
}

/* Its own timer wakes it, in an hour. */
static sem_t rings;
static void rang(int unused) { (void)unused; sem_post(&rings); }
static void has_timer(void)
{
    timer_t timer;
    struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec hour = {.it_value = {3600, 0}};
    bystander();
    sem_init(&rings, 0, 0);
    signal(SIGUSR1, rang);
    must(!timer_create(CLOCK_MONOTONIC, &how, &timer), "timer_create");
    must(!timer_settime(timer, 0, &hour, NULL), "timer_settime");
    sem_wait(&rings);
}

static const struct { const char *name; void (*wait)(void); } KINDS[] = {
    {"serves-fifo", serves_fifo}, {"forwards-slowly", forwards_slowly},
    {"has-sibling", has_sibling}, {"serves-signals", serves_signals},
    {"serves-pipe", serves_pipe}, {"waits-for-sleeper", waits_for_sleeper},
    {"never-taken", never_taken}, {"main-ended", main_ended}, {"ranges", ranges},
    {"two-upgrade", two_upgrade}, {"has-timer", has_timer},
};

int main(int count, char **words)
{
    for (size_t at = 0; count == 2 && at < sizeof KINDS / sizeof *KINDS; at++)
        if (!strcmp(words[1], KINDS[at].name)) {
            KINDS[at].wait();
            return 0;
        }
    return 2;
}
