/* Becomes another program, has threads with descriptors or a stack of their own, or goes on without its first
 * thread. Says "ready", and reads single bytes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BELOW (1 << 20)
/* Less than a call from outside needs; aarch64 takes no smaller one than the second. */
#define STACK (64 << 10)
#define LARGER (128 << 10)

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t met;
static const char *victim;

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

static void await_byte(void)
{
	char byte;
	if (read(0, &byte, 1) != 1)
		exit(0);
}

static void lock_both(void)
{
	pthread_mutex_lock(&gate);
	pthread_mutex_lock(&other);
	pthread_mutex_unlock(&other);
	pthread_mutex_unlock(&gate);
}

/* Has the gate, for which the first thread waits: that one can make no call. */
static void *reads(void *unused)
{
	pthread_mutex_lock(&gate);
	if (victim != NULL && unshare(CLONE_FILES) != 0)
		_exit(2);
	pthread_barrier_wait(&met);
	/* Until the first thread has its files, and sleeps. */
	usleep(300000);
	say("ready");
	await_byte();
	pthread_mutex_unlock(&gate);
	return unused;
}

/* Can make calls for others. */
static void *idles(void *unused)
{
	await_byte();
	return unused;
}

static void *crosses(void *first)
{
	pthread_mutex_t *second = first == &gate ? &other : &gate;
	pthread_mutex_lock(first);
	pthread_barrier_wait(&met);
	pthread_mutex_lock(second);
	return NULL;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pthread_t thread, second;
	pthread_attr_t attributes;
	unsigned char *below = NULL;
	pthread_attr_init(&attributes);
	pthread_barrier_init(&met, NULL, 2);
	if (!strcmp(how, "exec")) {
		lock_both();
		say("ready");
		await_byte();
		execl("/proc/self/exe", argv[0], "after", NULL);
		return 3;
	}
	if (!strcmp(how, "deep")) {
		if (dlopen(argv[2], RTLD_NOW | RTLD_DEEPBIND) == NULL)
			return 6;
		say("ready");
		await_byte();
		return 0;
	}
	if (!strcmp(how, "after")) {
		say("after");
		for (;;) {
			await_byte();
			lock_both();
			say("locked");
		}
	}
	if (!strcmp(how, "leaderless")) {
		pthread_create(&thread, NULL, crosses, &gate);
		pthread_create(&second, NULL, crosses, &other);
		pthread_create(&second, NULL, idles, NULL);
		say("ready");
		pthread_exit(NULL);
	}
	if (!strcmp(how, "slice")) {
		below = mmap(NULL, BELOW + LARGER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(below, 0x5a, BELOW);
		if (pthread_attr_setstack(&attributes, below + BELOW, STACK) != 0 &&
		    pthread_attr_setstack(&attributes, below + BELOW, LARGER) != 0)
			return 5;
	} else {
		victim = argv[2];
	}
	pthread_create(&thread, &attributes, reads, NULL);
	pthread_barrier_wait(&met);
	for (int i = 0; victim != NULL && i < 32; i++)
		open(victim, O_RDWR);
	pthread_mutex_lock(&gate);
	for (int i = 0; below != NULL && i < BELOW; i++)
		if (below[i] != 0x5a)
			return 4;
	return 0;
}
