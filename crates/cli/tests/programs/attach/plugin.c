/* What `busy` loads. */
#include <pthread.h>

static pthread_mutex_t plugin_lock = PTHREAD_MUTEX_INITIALIZER;

void plugin_work(void) {
	pthread_mutex_lock(&plugin_lock);
	pthread_mutex_unlock(&plugin_lock);
}
