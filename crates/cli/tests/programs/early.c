/* Locks before main and after it, and an allocator of its own that locks. */
#include "common.h"
#include <sys/mman.h>

static pthread_mutex_t heap = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t early = PTHREAD_MUTEX_INITIALIZER;
static char *next, *end;
static long calls;

/* Never gives back: enough for a test. Each block begins with its size. */
void *malloc(size_t size)
{
    size = (size + 31) & ~(size_t)15;
    pthread_mutex_lock(&heap);
    calls++;
    if (next == NULL || (size_t)(end - next) < size) {
        size_t piece = size + (1 << 20);
        next = mmap(NULL, piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        end = next + piece;
    }
    char *block = next;
    next += size;
    pthread_mutex_unlock(&heap);
    *(size_t *)block = size - 16;
    return block + 16;
}

void free(void *block)
{
    (void)block;
    pthread_mutex_lock(&heap);
    pthread_mutex_unlock(&heap);
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size);
}

void *realloc(void *block, size_t size)
{
    void *made = malloc(size);
    if (block != NULL) {
        size_t old = *(size_t *)((char *)block - 16);
        memcpy(made, block, old < size ? old : size);
    }
    return made;
}

__attribute__((constructor)) static void before(void)
{
    must(pthread_mutex_lock(&early));
    must(pthread_mutex_unlock(&early));
}

__attribute__((destructor)) static void after(void)
{
    must(pthread_mutex_lock(&early));
    write(1, "after\n", 6);
    must(pthread_mutex_unlock(&early));
}

static void *allocates(void *unused)
{
    for (int i = 0; i < 10000; i++)
        free(malloc(i % 100));
    return unused;
}

int main(void)
{
    pthread_t some[4];
    for (int i = 0; i < 4; i++)
        must(pthread_create(&some[i], NULL, allocates, NULL));
    for (int i = 0; i < 4; i++)
        must(pthread_join(some[i], NULL));
    printf("allocated: %d\n", calls >= 40000);
    return 12;
}
