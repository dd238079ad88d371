/* Takes a lock whose memory has been given back: by the inline path; with an argument, by the
 * library, as each thread's first acquisition is. */
#include "expect.h"
#include <stdlib.h>

static lks_mutex first = LKS_MUTEX_INIT;

int main(int count, char **arguments)
{
    (void)arguments;
    lks_mutex *volatile mutex = malloc(sizeof *mutex);
    lks_mutex_init(mutex);
    if (count == 1) {
        lks_mutex_lock(&first);
        lks_mutex_unlock(&first);
    }
    free((void *)mutex);
    lks_mutex_lock(mutex);
    lks_mutex_unlock(mutex);
    return 0;
}
