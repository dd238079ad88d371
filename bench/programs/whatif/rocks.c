/* What store.c does, with RocksDB.
 * rocks THREADS SECONDS TWENTIETH */
#define ROCKS
#include "store.c"
