/* One wait of each kind that a thread can be in, by its name on the command line. Where
 * something is waited for that has a holder, a thread called "holder", or a child, has
 * it. Says "waits" on standard output when all is there but the wait itself. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t inherits;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t gate, start_line;
static pthread_once_t only = PTHREAD_ONCE_INIT;
static mtx_t plain;
static sem_t permits, first, second;
static unsigned word;
static struct shared { pthread_mutex_t mutex; pthread_barrier_t there; } *shared;

static void must(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(9);
    }
}

static void says(void)
{
    must(write(1, "waits\n", 6) == 6, "write");
}

static void rest(void)
{
    for (;;)
        pause();
}

/* The holder's part, and then it rests. */
static void *holder(void *take)
{
    pthread_setname_np(pthread_self(), "holder");
    ((void (*)(void))take)();
    pthread_barrier_wait(&start_line);
    rest();
    return NULL;
}

static void held(void (*take)(void))
{
    pthread_t thread;
    pthread_barrier_init(&start_line, NULL, 2);
    must(!pthread_create(&thread, NULL, holder, (void *)take), "pthread_create");
    pthread_barrier_wait(&start_line);
    says();
}

/* A child that does its part, says so, and rests; it ends with its parent. */
static pid_t child(void (*part)(void))
{
    int tell[2];
    char there;
    must(!pipe(tell), "pipe");
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        part();
        must(write(tell[1], "t", 1) == 1, "write");
        close(tell[0]);
        close(tell[1]);
        rest();
    }
    close(tell[1]);
    must(read(tell[0], &there, 1) == 1, "read");
    close(tell[0]);
    return pid;
}

static void nothing(void) {}
static void takes_lock(void) { pthread_mutex_lock(&lock); }
static void mutex(void) { held(takes_lock); pthread_mutex_lock(&lock); }

static void takes_shared(void) { pthread_mutex_lock(&shared->mutex); }
static void mutex_shared(void)
{
    pthread_mutexattr_t across;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_init(&across);
    pthread_mutexattr_setpshared(&across, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->mutex, &across);
    child(takes_shared);
    says();
    pthread_mutex_lock(&shared->mutex);
}

static void takes_inherits(void) { pthread_mutex_lock(&inherits); }
static void mutex_inherit(void)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&inherits, &kind);
    held(takes_inherits);
    pthread_mutex_lock(&inherits);
}

static void takes_plain(void) { mtx_lock(&plain); }
static void mutex_c11(void) { mtx_init(&plain, mtx_plain); held(takes_plain); mtx_lock(&plain); }

static void writes(void) { pthread_rwlock_wrlock(&table); }
static void reads(void) { pthread_rwlock_rdlock(&table); }
static void rwlock_read(void) { held(writes); reads(); }
static void rwlock_write(void) { held(reads); writes(); }

static void takes_spin(void) { pthread_spin_lock(&spin); }
static void spinlock(void) { pthread_spin_init(&spin, 0); held(takes_spin); takes_spin(); }

static void locks_stdout(void) { flockfile(stdout); }
static void stdio(void) { held(locks_stdout); flockfile(stdout); }

static void initialises(void) { pthread_barrier_wait(&start_line); sem_wait(&first); }
static void runs_once(void) { pthread_once(&only, initialises); }
static void once(void) { held(runs_once); pthread_once(&only, nothing); }

static void condition(void)
{
    says();
    pthread_mutex_lock(&lock);
    pthread_cond_wait(&ready, &lock);
}
static void semaphore(void) { sem_init(&permits, 0, 0); says(); sem_wait(&permits); }
static void posts(int unused) { (void)unused; sem_post(&permits); }
static void semaphore_handler(void) { signal(SIGUSR1, posts); semaphore(); }
static void barrier(void) { pthread_barrier_init(&gate, NULL, 2); says(); pthread_barrier_wait(&gate); }

static void *rests(void *unused) { rest(); return unused; }
static void join(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, rests, NULL);
    says();
    pthread_join(thread, NULL);
}
static void futex(void) { says(); syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0); }

/* Locks of files; the holder is a child, or another open file of the same process. */
static int opened(void)
{
    static char path[4096];
    if (!*path) {
        const char *folder = getenv("TMPDIR");
        snprintf(path, sizeof path, "%s/waits.XXXXXX", folder ? folder : "/tmp");
        int file = mkstemp(path);
        must(file >= 0, "mkstemp");
        return file;
    }
    int file = open(path, O_RDWR);
    must(file >= 0, "open");
    return file;
}
static int mine;
static struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
static void locks_file(void) { must(!flock(opened(), LOCK_EX), "flock"); }
static void file_flock(void)
{
    mine = opened();
    child(locks_file);
    says();
    flock(mine, LOCK_EX);
}
static void locks_range(void) { must(!fcntl(mine, F_SETLK, &range), "fcntl"); }
static void file_record(void)
{
    mine = opened();
    child(locks_range);
    says();
    fcntl(mine, F_SETLKW, &range);
}
static void locks_description(void) { must(!fcntl(opened(), F_OFD_SETLK, &range), "fcntl"); }
static void file_description(void)
{
    mine = opened();
    child(locks_description);
    says();
    fcntl(mine, F_OFD_SETLKW, &range);
}
static void file_own(void)
{
    must(!flock(opened(), LOCK_EX), "flock");
    int again = opened();
    says();
    flock(again, LOCK_EX);
}

static int set;
static void takes_set(void)
{
    struct sembuf take = {0, -1, SEM_UNDO};
    must(!semop(set, &take, 1), "semop");
}
static void removes_set(int unused) { (void)unused; semctl(set, 0, IPC_RMID); _exit(0); }
static void system_v_semaphore(void)
{
    set = semget(IPC_PRIVATE, 1, 0600);
    must(set >= 0 && !semctl(set, 0, SETVAL, 1), "semget");
    signal(SIGTERM, removes_set);
    child(takes_set);
    says();
    takes_set();
}
static void removes_queue(int unused) { (void)unused; msgctl(set, IPC_RMID, NULL); _exit(0); }
static void system_v_queue(void)
{
    char message[64];
    set = msgget(IPC_PRIVATE, 0600);
    must(set >= 0, "msgget");
    signal(SIGTERM, removes_queue);
    says();
    msgrcv(set, message, 8, 0, 0);
}
static void posix_queue(void)
{
    char name[64], message[8192];
    snprintf(name, sizeof name, "/lockstead-waits-%d", getpid());
    mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, NULL);
    must(queue != (mqd_t)-1, "mq_open");
    mq_unlink(name);
    says();
    mq_receive(queue, message, sizeof message, NULL);
}

static int ends[2];
static char byte;
static void pipe_own(void) { must(!pipe(ends), "pipe"); says(); must(read(ends[0], &byte, 1), "read"); }
static void pipe_read(void)
{
    must(!pipe(ends), "pipe");
    child(nothing);
    close(ends[1]);
    says();
    must(read(ends[0], &byte, 1), "read");
}
static void pipe_write(void)
{
    static char much[1 << 20];
    must(!pipe(ends), "pipe");
    child(nothing);
    close(ends[0]);
    says();
    must(write(ends[1], much, sizeof much), "write");
}
static void fifo(void)
{
    char path[4096];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/waits.fifo.%d", folder ? folder : "/tmp", getpid());
    must(!mkfifo(path, 0600), "mkfifo");
    says();
    open(path, O_RDONLY);
}
static void event_counter(void)
{
    unsigned long long count;
    int counter = eventfd(0, 0);
    says();
    must(read(counter, &count, sizeof count), "read");
}
static void timer(void)
{
    unsigned long long count;
    struct itimerspec hour = {.it_value = {3600, 0}};
    int clock = timerfd_create(CLOCK_MONOTONIC, 0);
    timerfd_settime(clock, 0, &hour, NULL);
    says();
    must(read(clock, &count, sizeof count), "read");
}
static void signals_read(void)
{
    struct signalfd_siginfo about;
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    sigprocmask(SIG_BLOCK, &some, NULL);
    int queue = signalfd(-1, &some, 0);
    says();
    must(read(queue, &about, sizeof about), "read");
}
static void socket_read(void)
{
    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
    says();
    recv(ends[0], &byte, 1, 0);
}
static void socket_accept(void)
{
    int listens = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    must(!bind(listens, (struct sockaddr *)&any, sizeof any) && !listen(listens, 1), "listen");
    says();
    accept(listens, NULL, NULL);
}
static void polls(void)
{
    must(!pipe(ends), "pipe");
    struct pollfd some = {.fd = ends[0], .events = POLLIN};
    says();
    poll(&some, 1, -1);
}
static void selects(void)
{
    fd_set some;
    must(!pipe(ends), "pipe");
    FD_ZERO(&some);
    FD_SET(ends[0], &some);
    says();
    select(ends[0] + 1, &some, NULL, NULL, NULL);
}
static void epolls(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    int several = epoll_create1(0);
    must(!pipe(ends) && !epoll_ctl(several, EPOLL_CTL_ADD, ends[0], &event), "epoll_ctl");
    says();
    epoll_wait(several, &event, 1, -1);
}
static void sleeps(void)
{
    struct timespec hour = {3600, 0};
    says();
    nanosleep(&hour, NULL);
}
static void pauses(void) { says(); rest(); }
static void waits_for_signal(void)
{
    sigset_t some;
    int which;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    sigprocmask(SIG_BLOCK, &some, NULL);
    says();
    sigwait(&some, &which);
}
static void waits_for_child(void) { pid_t pid = child(nothing); says(); waitpid(pid, NULL, 0); }
static void forks_shortly(void)
{
    says();
    if (!vfork())
        for (;;)
            pause();
}
static void stopped(void) { says(); raise(SIGSTOP); }

/* Two semaphores that serve as mutexes, in two orders. */
static void *second_first(void *unused)
{
    pthread_setname_np(pthread_self(), "second");
    sem_wait(&second);
    pthread_barrier_wait(&gate);
    sem_wait(&first);
    return unused;
}
static void *busy(void *unused) { for (volatile long i = 0;; i++) {} return unused; }
static void crossed(int given_back)
{
    pthread_t thread, other;
    sem_init(&first, 0, 1);
    sem_init(&second, 0, 1);
    if (given_back) {
        sem_wait(&first);
        sem_wait(&second);
        sem_post(&second);
        sem_post(&first);
        pthread_create(&other, NULL, busy, NULL);
    }
    pthread_barrier_init(&gate, NULL, 2);
    pthread_create(&thread, NULL, second_first, NULL);
    sem_wait(&first);
    pthread_barrier_wait(&gate);
    says();
    sem_wait(&second);
}
static void semaphore_cycle(void) { crossed(1); }
/* As far as was seen, they may as well be signals that others give. */
static void semaphore_unused_cycle(void) { crossed(0); }
/* Two streams in two orders. */
static FILE *one, *two;
static void *two_first(void *unused)
{
    pthread_setname_np(pthread_self(), "two");
    flockfile(two);
    pthread_barrier_wait(&gate);
    flockfile(one);
    return unused;
}
static void stdio_cycle(void)
{
    pthread_t thread, other;
    one = tmpfile();
    two = tmpfile();
    must(one && two, "tmpfile");
    pthread_barrier_init(&gate, NULL, 2);
    pthread_create(&other, NULL, busy, NULL);
    pthread_create(&thread, NULL, two_first, NULL);
    flockfile(one);
    pthread_barrier_wait(&gate);
    says();
    flockfile(two);
}

static const struct { const char *name; void (*wait)(void); } KINDS[] = {
    {"mutex", mutex}, {"mutex-shared", mutex_shared}, {"mutex-inherit", mutex_inherit},
    {"mutex-c11", mutex_c11}, {"rwlock-read", rwlock_read}, {"rwlock-write", rwlock_write},
    {"spinlock", spinlock}, {"stdio", stdio}, {"once", once}, {"condition", condition},
    {"semaphore", semaphore}, {"barrier", barrier}, {"join", join}, {"futex", futex},
    {"flock", file_flock}, {"record", file_record}, {"description", file_description},
    {"flock-own", file_own}, {"sysv-semaphore", system_v_semaphore},
    {"sysv-queue", system_v_queue}, {"posix-queue", posix_queue}, {"pipe-own", pipe_own},
    {"pipe-read", pipe_read}, {"pipe-write", pipe_write}, {"fifo", fifo},
    {"eventfd", event_counter}, {"timerfd", timer}, {"signalfd", signals_read},
    {"socket-read", socket_read}, {"socket-accept", socket_accept}, {"poll", polls},
    {"select", selects}, {"epoll", epolls}, {"sleep", sleeps}, {"pause", pauses},
    {"sigwait", waits_for_signal}, {"child", waits_for_child}, {"vfork", forks_shortly},
    {"stopped", stopped}, {"semaphore-handler", semaphore_handler},
    {"semaphore-cycle", semaphore_cycle}, {"semaphore-unused-cycle", semaphore_unused_cycle},
    {"stdio-cycle", stdio_cycle},
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
