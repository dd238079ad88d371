// A library that Python calls: a mutex of its own, taken with the interpreter's lock or without.
#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void *native_mutex(void) { return &mutex; }
void native_take(void) { pthread_mutex_lock(&mutex); }
void native_give(void) { pthread_mutex_unlock(&mutex); }

// Calls back with the mutex held.
void native_call(void (*body)(void)) {
    pthread_mutex_lock(&mutex);
    body();
    pthread_mutex_unlock(&mutex);
}
