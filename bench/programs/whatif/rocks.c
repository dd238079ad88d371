/* RocksDB under threads that get random keys, and put one in TWENTIETH.
 * rocks THREADS SECONDS TWENTIETH */
#include "common.h"
#include <rocksdb/c.h>
#include <string.h>

static rocksdb_t *db;
static double until;
static int puts_one_in;
static _Atomic long done;

enum { KEYS = 20000, SIZE = 100 };

static size_t key(char *text, uint64_t number) {
    return (size_t)snprintf(text, 24, "%016llu", (unsigned long long)(number % KEYS));
}

static void check(const char *error) {
    if (error) {
        fprintf(stderr, "rocks: %s\n", error);
        exit(1);
    }
}

static void *client(void *seed) {
    rocksdb_readoptions_t *reads = rocksdb_readoptions_create();
    rocksdb_writeoptions_t *writes = rocksdb_writeoptions_create();
    uint64_t x = (uintptr_t)seed * 77777;
    char name[24], value[SIZE];
    memset(value, 'v', SIZE);
    long mine = 0;
    for (; now() < until; mine++) {
        char *error = NULL;
        size_t length, of = key(name, x = compute(x, 3));
        if (x / KEYS % puts_one_in == 0)
            rocksdb_put(db, writes, name, of, value, SIZE, &error);
        else
            rocksdb_free(rocksdb_get(db, reads, name, of, &length, &error));
        check(error);
    }
    done += mine;
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    int threads = atoi(argv[1]);
    puts_one_in = atoi(argv[3]);
    if (threads < 1 || threads > 64 || puts_one_in < 1)
        return 2;
    char folder[] = "/dev/shm/lockstead-rocks-XXXXXX";
    if (!mkdtemp(folder)) {
        perror("rocks: a folder in memory, /dev/shm, for the database");
        return 1;
    }
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    char *error = NULL;
    db = rocksdb_open(options, folder, &error);
    check(error);
    rocksdb_writeoptions_t *writes = rocksdb_writeoptions_create();
    char name[24], value[SIZE];
    memset(value, 'v', SIZE);
    for (uint64_t i = 0; i < KEYS; i++) {
        rocksdb_put(db, writes, name, key(name, i), value, SIZE, &error);
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
    rocksdb_close(db);
    rocksdb_destroy_db(options, folder, &error);
    rmdir(folder);
}
