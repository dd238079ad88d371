/* Threads that pass memory to each other: malloc in one, free in another. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, SLOTS = 64 };

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t load_room = PTHREAD_COND_INITIALIZER;
static unsigned char *slots[SLOTS];
static size_t sizes[SLOTS];
static int used;
static uint64_t sum;
static int rounds = 3000;

static void *give(void *argument)
{
	uint32_t seed = (uint32_t)(uintptr_t)argument + 1;
	for (int i = 0; i < rounds; i++) {
		seed = seed * 1664525u + 1013904223u;
		size_t size = 1 + (seed >> 8) % 2000;
		unsigned char *bytes = malloc(size);
		memset(bytes, (int)(size & 0xff), size);
		bytes = realloc(bytes, size + 7);
		pthread_mutex_lock(&load_lock);
		while (used == SLOTS)
			pthread_cond_wait(&load_room, &load_lock);
		slots[used] = bytes;
		sizes[used++] = size;
		pthread_cond_broadcast(&load_room);
		pthread_mutex_unlock(&load_lock);
	}
	return NULL;
}

static void *take(void *argument)
{
	(void)argument;
	for (int i = 0; i < rounds; i++) {
		pthread_mutex_lock(&load_lock);
		while (used == 0)
			pthread_cond_wait(&load_room, &load_lock);
		unsigned char *bytes = slots[--used];
		size_t size = sizes[used];
		pthread_cond_broadcast(&load_room);
		sum += size;
		if (bytes[size - 1] != (size & 0xff))
			abort();
		pthread_mutex_unlock(&load_lock);
		free(bytes);
	}
	return NULL;
}

int main(int count, char **arguments)
{
	pthread_t threads[2 * THREADS];
	if (count > 1)
		rounds = atoi(arguments[1]);
	for (intptr_t i = 0; i < 2 * THREADS; i++)
		pthread_create(&threads[i], NULL, i % 2 ? give : take, (void *)i);
	for (int i = 0; i < 2 * THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%llu\n", (unsigned long long)sum);
	return 7;
}
