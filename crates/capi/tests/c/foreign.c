/* A library that was not built with lockstead, by its header, comes first. */
#include <pthread.h>

struct theirs {
    pthread_mutex_t *lock;
};
int library_waits(pthread_cond_t *cond, pthread_mutex_t *lock);

#include <lockstead/pthread.h>

static pthread_mutex_t ours = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t our_cond = PTHREAD_COND_INITIALIZER;

int main(void)
{
#ifdef ARGUMENT
    library_waits(&our_cond, &ours);
#endif
#ifdef MEMBER
    struct theirs theirs;
    theirs.lock = &ours;
    (void)theirs;
#endif
#ifdef CANCELLED
    pthread_cancel(pthread_self());
#endif
    (void)&our_cond;
    return pthread_mutex_lock(&ours);
}
