/* What programs share that are suspicious for a while; after common.h. */
#pragma once

/* How long a suspicious state lasts: several looks, and a wait of calm. */
#define LASTS 250

/* A thread that may be over before it could be named. */
static inline pthread_t begin(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    must(pthread_create(&thread, NULL, body, argument));
    return thread;
}

static inline void lock(pthread_mutex_t *mutex)
{
    must(pthread_mutex_lock(mutex));
}

static inline void unlock(pthread_mutex_t *mutex)
{
    must(pthread_mutex_unlock(mutex));
}
