/* One SQLite connection in memory that all threads use: a mutex around nearly everything.
 * table THREADS SECONDS OUTSIDE (rounds of work between two queries) */
#include "common.h"
#include <sqlite3.h>

static sqlite3 *db;
static double until;
static unsigned outside;
static _Atomic long done;

static void *client(void *seed) {
    sqlite3_stmt *query;
    uint64_t x = (uintptr_t)seed * 77777;
    long mine = 0;
    if (sqlite3_prepare_v2(db, "select value from t where key = ?", -1, &query, NULL))
        exit(1);
    for (; now() < until; mine++) {
        x = compute(x, outside);
        sqlite3_bind_int(query, 1, (int)(x % 1000));
        sqlite3_step(query);
        sqlite3_reset(query);
    }
    sqlite3_finalize(query);
    done += mine;
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    int threads = atoi(argv[1]);
    outside = atoi(argv[3]);
    sqlite3_config(SQLITE_CONFIG_SERIALIZED);
    if (sqlite3_open(":memory:", &db) ||
        sqlite3_exec(db,
                     "create table t(key integer primary key, value text);"
                     "with recursive n(i) as (select 0 union all select i + 1 from n where i < 999) "
                     "insert into t select i, 'value ' || i from n",
                     NULL, NULL, NULL)) {
        fprintf(stderr, "table: %s\n", sqlite3_errmsg(db));
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
    sqlite3_close(db);
}
