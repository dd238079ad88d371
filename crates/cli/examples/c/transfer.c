/* A bank with a deadlock in it.
 *
 *     cc -g -pthread -o transfer transfer.c
 *     lockstead run -- ./transfer
 *
 * Each transfer locks the account that gives, then the account that takes. Two
 * clerks who transfer in opposite directions at the same moment wait for each
 * other for ever. A third thread, the auditor, has nothing to do with it.
 */
#define _GNU_SOURCE /* pthread_setname_np */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct account {
	const char *owner;
	long balance;
	pthread_mutex_t lock;
};

static struct account savings = { "savings", 1000, PTHREAD_MUTEX_INITIALIZER };
static struct account current = { "current", 1000, PTHREAD_MUTEX_INITIALIZER };
static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;
static long entries;

static void transfer(struct account *from, struct account *to, long amount)
{
	pthread_mutex_lock(&from->lock);
	usleep(20 * 1000); /* checks the balance */
	pthread_mutex_lock(&to->lock);
	from->balance -= amount;
	to->balance += amount;
	pthread_mutex_unlock(&to->lock);
	pthread_mutex_unlock(&from->lock);
}

static void *saver(void *unused)
{
	for (;;)
		transfer(&current, &savings, 10);
	return unused;
}

static void *spender(void *unused)
{
	for (;;)
		transfer(&savings, &current, 10);
	return unused;
}

static void *auditor(void *unused)
{
	for (;;) {
		pthread_mutex_lock(&journal);
		entries++;
		pthread_mutex_unlock(&journal);
		usleep(1000);
	}
	return unused;
}

int main(void)
{
	pthread_t clerk[3];
	pthread_create(&clerk[0], NULL, saver, NULL);
	pthread_setname_np(clerk[0], "saver");
	pthread_create(&clerk[1], NULL, spender, NULL);
	pthread_setname_np(clerk[1], "spender");
	pthread_create(&clerk[2], NULL, auditor, NULL);
	pthread_setname_np(clerk[2], "auditor");
	pthread_join(clerk[0], NULL);
	puts("never printed");
	return 0;
}
