/* Clients of a memcached, which they start: each of CONNECTIONS has one request under way, a set in TEN, else a get.
 * clients CONNECTIONS SECONDS TEN -- COMMAND ...
 * COMMAND has SOCKET where the path of the socket belongs. It has to serve the word `shutdown` (memcached -A). */
#include "common.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { KEYS = 20000, SIZE = 100, MOST = 256, PATIENCE = 20 };

struct connection {
    int socket;
    const char *ends; /* with which the answer under way ends */
    size_t had;
    char answer[512];
};

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static char folder[] = "/tmp/lockstead-clients-XXXXXX";
static char value[SIZE + 1];
static pid_t server;

static void fail(const char *what) {
    fprintf(stderr, "clients: %s: %s\n", what, strerror(errno));
    if (server > 0)
        kill(server, SIGTERM);
    unlink(address.sun_path);
    rmdir(folder);
    exit(1);
}

/* Connects, and until the server listens tries again. */
static int connected(void) {
    for (double until = now() + PATIENCE; now() < until; usleep(10000)) {
        int s = socket(AF_UNIX, SOCK_STREAM, 0);
        if (s < 0)
            fail("socket");
        if (!connect(s, (struct sockaddr *)&address, sizeof address))
            return s;
        close(s);
        if (waitpid(server, NULL, WNOHANG) == server) {
            server = 0;
            errno = ECHILD;
            fail("the server ended before it listened");
        }
    }
    errno = ETIMEDOUT;
    fail("the server does not listen");
    return -1;
}

static void ask(struct connection *c, uint64_t key, int set) {
    char text[64 + SIZE];
    int of = set ? snprintf(text, sizeof text, "set k%llu 0 0 %d\r\n%s\r\n", (unsigned long long)key, SIZE, value)
                 : snprintf(text, sizeof text, "get k%llu\r\n", (unsigned long long)key);
    c->ends = set ? "STORED\r\n" : "END\r\n";
    c->had = 0;
    if (write(c->socket, text, of) != of)
        fail("a request");
}

/* Reads what there is, and says whether the answer is complete. */
static int answered(struct connection *c) {
    ssize_t got = read(c->socket, c->answer + c->had, sizeof c->answer - c->had);
    if (got <= 0) {
        errno = got ? errno : ECONNRESET;
        fail("an answer");
    }
    c->had += got;
    size_t of = strlen(c->ends);
    if (c->had >= of && !memcmp(c->answer + c->had - of, c->ends, of))
        return 1;
    if (c->had == sizeof c->answer || !memcmp(c->answer, "ERROR", 5) || !memcmp(c->answer, "SERVER", 6)) {
        errno = EPROTO;
        fail("an answer that is none of get or set");
    }
    return 0;
}

int main(int argc, char **argv) {
    int whole = argc >= 6 && !strcmp(argv[4], "--");
    int connections = whole ? atoi(argv[1]) : 0, one_in = whole ? atoi(argv[3]) : 0;
    if (connections < 1 || connections > MOST || one_in < 1) {
        fprintf(stderr, "usage: clients CONNECTIONS SECONDS TEN -- COMMAND ...; up to %d connections, one set in TEN\n", MOST);
        return 2;
    }
    memset(value, 'v', SIZE);
    signal(SIGPIPE, SIG_IGN);
    if (!mkdtemp(folder))
        fail("a folder for the socket");
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder);
    for (int i = 5; i < argc; i++)
        if (!strcmp(argv[i], "SOCKET"))
            argv[i] = address.sun_path;
    pid_t me = getpid();
    server = fork();
    if (server < 0)
        fail("fork");
    if (!server) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != me)
            _exit(1);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execvp(argv[5], argv + 5);
        perror(argv[5]);
        _exit(127);
    }
    static struct connection all[MOST];
    int set = epoll_create1(0);
    for (int i = 0; i < connections; i++) {
        all[i].socket = connected();
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        if (epoll_ctl(set, EPOLL_CTL_ADD, all[i].socket, &event))
            fail("epoll_ctl");
    }
    for (int i = 0; i < KEYS; i++) {
        ask(&all[i % connections], i, 1);
        while (!answered(&all[i % connections]))
            ;
    }
    uint64_t x = 88172645463325252;
    long done = 0;
    double since = now(), until = since + atof(argv[2]);
    for (int i = 0; i < connections; i++) {
        x = compute(x, 3);
        ask(&all[i], x % KEYS, x / KEYS % one_in == 0);
    }
    while (now() < until) {
        struct epoll_event ready[MOST];
        int n = epoll_wait(set, ready, MOST, 1000 * PATIENCE);
        if (n <= 0)
            fail("waiting for an answer");
        for (int i = 0; i < n; i++) {
            struct connection *c = ready[i].data.ptr;
            if (!answered(c))
                continue;
            done++;
            x = compute(x, 3);
            ask(c, x % KEYS, x / KEYS % one_in == 0);
        }
    }
    rate(done, since);
    fflush(stdout);
    int last = connected();
    if (write(last, "shutdown\r\n", 10) != 10)
        fail("the last request");
    alarm(PATIENCE);
    waitpid(server, NULL, 0);
    unlink(address.sun_path);
    rmdir(folder);
}
