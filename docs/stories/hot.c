/* Load for one memcached: threads that append to, or get, a key; prints operations a second and latencies. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { RECORD = 200, MOST = 8 << 20 };
static const char *path;
static int keys, gets_in_100, limit;
static double until;

struct worker { pthread_t thread; unsigned seed; long done; double *took; long room; };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void say(int fd, const char *text, size_t length)
{
    while (length) {
        ssize_t sent = write(fd, text, length);
        if (sent < 0) { perror("write"); exit(1); }
        text += sent, length -= sent;
    }
}

/* Reads until the answer ends with `end`; returns its first character. */
static char answer(int fd, char *room, const char *end)
{
    size_t got = 0, tail = strlen(end);
    do {
        ssize_t some = read(fd, room + got, 2 * MOST - got);
        if (some <= 0) { perror("read"); exit(1); }
        got += some;
    } while (got < tail || memcmp(room + got - tail, end, tail));
    return room[0];
}

static int connected(void)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    strncpy(at.sun_path, path, sizeof at.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at)) { perror(path); exit(1); }
    return fd;
}

static void *work(void *of)
{
    struct worker *me = of;
    int fd = connected();
    char *room = malloc(2 * MOST), record[RECORD + 1];
    memset(record, 'r', RECORD);
    record[RECORD] = 0;
    int anew = 0;
    for (;;) {
        double begin = now();
        if (begin > until) break;
        int key = rand_r(&me->seed) % keys;
        char line[RECORD + 80];
        if (rand_r(&me->seed) % 100 < gets_in_100) {
            say(fd, line, sprintf(line, "get recent:%d\r\n", key));
            answer(fd, room, "END\r\n");
        } else {
            /* One in so many begins the list anew, which keeps it below the limit. */
            const char *what = anew || !(rand_r(&me->seed) % (limit / RECORD / keys)) ? "set" : "append";
            say(fd, line, sprintf(line, "%s recent:%d 0 0 %d\r\n%s\r\n", what, key, RECORD, record));
            anew = answer(fd, room, "\r\n") != 'S' || room[1] != 'T'; /* too large, or gone */
        }
        if (me->done == me->room)
            me->took = realloc(me->took, (me->room = me->room ? 2 * me->room : 4096) * sizeof(double));
        me->took[me->done++] = now() - begin;
    }
    return NULL;
}

static int order(const void *a, const void *b)
{
    return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b);
}

int main(int count, char **words)
{
    if (count != 7) { fprintf(stderr, "usage: hot SOCKET CLIENTS KEYS GETS-IN-100 BYTES SECONDS\n"); return 2; }
    path = words[1];
    int clients = atoi(words[2]);
    keys = atoi(words[3]), gets_in_100 = atoi(words[4]), limit = atoi(words[5]);
    int fd = connected();
    char room[1000], *most = calloc(2, MOST);
    for (int key = 0; key < keys; key++) {
        say(fd, room, sprintf(room, "set recent:%d 0 0 1\r\nr\r\n", key));
        answer(fd, most, "\r\n");
    }
    double begin = now();
    until = begin + atof(words[6]);
    struct worker *all = calloc(clients, sizeof *all);
    for (int i = 0; i < clients; i++) {
        all[i].seed = i + 1;
        pthread_create(&all[i].thread, NULL, work, &all[i]);
    }
    long done = 0;
    for (int i = 0; i < clients; i++) pthread_join(all[i].thread, NULL), done += all[i].done;
    double took = now() - begin, *every = malloc(done * sizeof *every);
    long at = 0;
    for (int i = 0; i < clients; i++) memcpy(every + at, all[i].took, all[i].done * sizeof *every), at += all[i].done;
    qsort(every, done, sizeof *every, order);
    printf("%.0f operations/s  p50 %.0f us  p99 %.0f us  max %.1f ms\n", done / took, every[done / 2] * 1e6, every[done * 99 / 100] * 1e6, every[done - 1] * 1e3);
}
