/* Loads a file and unloads it, again and again, and uses another lock each time. */
#include <dlfcn.h>
#include "stops.h"

enum { TIMES = 200 };

static pthread_mutex_t locks[TIMES];

int main(void)
{
    for (int i = 0; i < TIMES; i++) {
        void *file = dlopen("libresolv.so.2", RTLD_NOW);
        if (file == NULL || dlclose(file))
            abort();
        pthread_mutex_init(&locks[i], NULL);
        pthread_mutex_lock(&locks[i]);
        pthread_mutex_unlock(&locks[i]);
    }
    SHOW(locks);
    stop("over");
    return 0;
}
