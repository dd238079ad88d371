/* A program that hangs, started without lockstead.
 *
 *     cc -g -pthread -o hung hung.c
 *     ./hung &
 *     lockstead dump $!
 *
 * Three workers each hold a stage of a pipeline and want the next one; the last
 * wants the first. The heartbeat goes on.
 */
#define _GNU_SOURCE /* pthread_setname_np */
#include <pthread.h>
#include <unistd.h>

#define STAGES 3

static pthread_mutex_t stage[STAGES] = {
	PTHREAD_MUTEX_INITIALIZER,
	PTHREAD_MUTEX_INITIALIZER,
	PTHREAD_MUTEX_INITIALIZER,
};
static pthread_barrier_t ready;

static void *worker(void *argument)
{
	long number = (long)argument;
	pthread_mutex_lock(&stage[number]);
	pthread_barrier_wait(&ready);
	pthread_mutex_lock(&stage[(number + 1) % STAGES]);
	pthread_mutex_unlock(&stage[(number + 1) % STAGES]);
	pthread_mutex_unlock(&stage[number]);
	return argument;
}

static void *heartbeat(void *unused)
{
	for (;;)
		usleep(10 * 1000);
	return unused;
}

int main(void)
{
	static const char *const name[STAGES] = { "reader", "parser", "writer" };
	pthread_t thread[STAGES], pulse;
	pthread_barrier_init(&ready, NULL, STAGES);
	for (long i = 0; i < STAGES; i++) {
		pthread_create(&thread[i], NULL, worker, (void *)i);
		pthread_setname_np(thread[i], name[i]);
	}
	pthread_create(&pulse, NULL, heartbeat, NULL);
	pthread_setname_np(pulse, "heartbeat");
	for (int i = 0; i < STAGES; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
