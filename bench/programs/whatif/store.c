/* LevelDB under threads that get random keys, and put one in TWENTIETH.
 * store THREADS SECONDS TWENTIETH */
#include "common.h"
#include <leveldb/c.h>
#include <string.h>

static leveldb_t *db;
static double until;
static int puts_one_in;
static _Atomic long done;

enum { KEYS = 20000, SIZE = 100 };

static size_t key(char *text, uint64_t number) {
    return (size_t)snprintf(text, 24, "%016llu", (unsigned long long)(number % KEYS));
}

static void *client(void *seed) {
    leveldb_readoptions_t *reads = leveldb_readoptions_create();
    leveldb_writeoptions_t *writes = leveldb_writeoptions_create();
    uint64_t x = (uintptr_t)seed * 77777;
    char name[24], value[SIZE];
    memset(value, 'v', SIZE);
    long mine = 0;
    for (; now() < until; mine++) {
        char *error = NULL;
        size_t length, of = key(name, x = compute(x, 3));
        if (x / KEYS % puts_one_in == 0)
            leveldb_put(db, writes, name, of, value, SIZE, &error);
        else
            leveldb_free(leveldb_get(db, reads, name, of, &length, &error));
        if (error) {
            fprintf(stderr, "store: %s\n", error);
            exit(1);
        }
    }
    done += mine;
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    int threads = atoi(argv[1]);
    puts_one_in = atoi(argv[3]);
    char folder[] = "/dev/shm/lockstead-store-XXXXXX";
    if (!mkdtemp(folder)) {
        perror("store: a folder in memory, /dev/shm, for the database");
        return 1;
    }
    leveldb_options_t *options = leveldb_options_create();
    leveldb_options_set_create_if_missing(options, 1);
    char *error = NULL;
    db = leveldb_open(options, folder, &error);
    leveldb_writeoptions_t *writes = leveldb_writeoptions_create();
    char name[24], value[SIZE];
    memset(value, 'v', SIZE);
    for (uint64_t i = 0; i < KEYS && !error; i++)
        leveldb_put(db, writes, name, key(name, i), value, SIZE, &error);
    if (error) {
        fprintf(stderr, "store: %s\n", error);
        return 1;
    }
    double since = now();
    until = since + atof(argv[2]);
    pthread_t all[64];
    for (int i = 0; i < threads; i++)
        all[i] = start(client, (void *)(uintptr_t)(i + 1));
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    rate(done, since);
    leveldb_close(db);
    leveldb_destroy_db(options, folder, &error);
    rmdir(folder);
}
