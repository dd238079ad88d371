/* LevelDB under threads that get random keys, and put one in TWENTIETH; with ROCKS defined RocksDB, whose functions in C
 * have the same names behind another prefix.
 * store THREADS SECONDS TWENTIETH */
#include "common.h"
#ifdef ROCKS
#include <rocksdb/c.h>
#define DB(name) rocksdb_##name
#define NAME "rocks"
#else
#include <leveldb/c.h>
#define DB(name) leveldb_##name
#define NAME "store"
#endif
#include <string.h>

static DB(t) *db;
static double until;
static int puts_one_in;
static _Atomic long done;

enum { KEYS = 20000, SIZE = 100 };

static size_t key(char *text, uint64_t number) {
    return (size_t)snprintf(text, 24, "%016llu", (unsigned long long)(number % KEYS));
}

static void check(const char *error) {
    if (error) {
        fprintf(stderr, NAME ": %s\n", error);
        exit(1);
    }
}

static void *client(void *seed) {
    DB(readoptions_t) *reads = DB(readoptions_create)();
    DB(writeoptions_t) *writes = DB(writeoptions_create)();
    uint64_t x = (uintptr_t)seed * 77777;
    char name[24], value[SIZE];
    memset(value, 'v', SIZE);
    long mine = 0;
    for (; now() < until; mine++) {
        char *error = NULL;
        size_t length, of = key(name, x = compute(x, 3));
        if (x / KEYS % puts_one_in == 0)
            DB(put)(db, writes, name, of, value, SIZE, &error);
        else
            DB(free)(DB(get)(db, reads, name, of, &length, &error));
        check(error);
    }
    done += mine;
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc == 4 ? atoi(argv[1]) : 0;
    puts_one_in = argc == 4 ? atoi(argv[3]) : 0;
    if (threads < 1 || threads > 64 || puts_one_in < 1) {
        fprintf(stderr, "usage: " NAME " THREADS SECONDS TWENTIETH; up to 64 threads, one put in TWENTIETH\n");
        return 2;
    }
    char folder[] = "/dev/shm/lockstead-" NAME "-XXXXXX";
    if (!mkdtemp(folder)) {
        perror(NAME ": a folder in memory, /dev/shm, for the database");
        return 1;
    }
    DB(options_t) *options = DB(options_create)();
    DB(options_set_create_if_missing)(options, 1);
    char *error = NULL;
    db = DB(open)(options, folder, &error);
    check(error);
    DB(writeoptions_t) *writes = DB(writeoptions_create)();
    char name[24], value[SIZE];
    memset(value, 'v', SIZE);
    for (uint64_t i = 0; i < KEYS; i++) {
        DB(put)(db, writes, name, key(name, i), value, SIZE, &error);
        check(error);
    }
    double since = now();
    until = since + atof(argv[2]);
    pthread_t all[64];
    for (int i = 0; i < threads; i++)
        all[i] = start(client, (void *)(uintptr_t)(i + 1));
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    rate(done, since);
    DB(close)(db);
    DB(destroy_db)(options, folder, &error);
    rmdir(folder);
}
