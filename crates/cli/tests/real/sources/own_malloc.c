/* The program's own malloc, with a lock of the kind that is watched: it is
 * called before main, in every thread, and in a forked child. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static _Alignas(64) unsigned char arena[256 << 20];
static size_t top;
static unsigned long calls;
static pthread_mutex_t arena_lock = PTHREAD_MUTEX_INITIALIZER;

static void *get(size_t align, size_t size)
{
	if (align < 16)
		align = 16;
	pthread_mutex_lock(&arena_lock);
	calls++;
	size_t start = (top + 16 + align - 1) & ~(align - 1);
	if (size > sizeof arena - start) {
		pthread_mutex_unlock(&arena_lock);
		errno = ENOMEM;
		return NULL;
	}
	top = start + size;
	pthread_mutex_unlock(&arena_lock);
	memcpy(arena + start - 8, &size, 8);
	return arena + start;
}

void *malloc(size_t size) { return get(16, size); }
void free(void *memory) { (void)memory; }
void *memalign(size_t align, size_t size) { return get(align, size); }
void *aligned_alloc(size_t align, size_t size) { return get(align, size); }

void *calloc(size_t count, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes))
		return NULL;
	return get(16, bytes);
}

int posix_memalign(void **memory, size_t align, size_t size)
{
	*memory = get(align, size);
	return *memory ? 0 : ENOMEM;
}

void *realloc(void *old, size_t size)
{
	void *new = get(16, size);
	if (old && new) {
		size_t before;
		memcpy(&before, (unsigned char *)old - 8, 8);
		memcpy(new, old, before < size ? before : size);
	}
	return new;
}

static void *work(void *argument)
{
	for (int i = 0; i < 3000; i++) {
		char *text = malloc(40);
		snprintf(text, 40, "%d", i);
		free(realloc(text, 80));
	}
	return argument;
}

static void all(void)
{
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	all();
	printf("%d\n", dlopen("libm.so.6", RTLD_NOW) != NULL);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		all();
		_exit(calls > 24000 ? 5 : 6);
	}
	int status;
	waitpid(child, &status, 0);
	printf("child %d\n", WEXITSTATUS(status));
	return calls > 24000 ? 8 : 9;
}
