/*
 * Buffers of a graphics driver as one writes them for the kernel: each with its
 * wait/wound mutex, reserved together in any order, and fenced by completions.
 */
#include <lockstead/kernel.h>

#include "expect.h"

static struct ww_class reservation_class = __WW_CLASS_INITIALIZER(reservation_class, 0);
static struct ww_class dying_class = __WW_CLASS_INITIALIZER(dying_class, 1);

struct buffer {
    struct ww_mutex resv;
    struct mutex pages_lock;
    struct completion fence;
    int uses;
};

enum { BUFFERS = 4 };
static struct buffer buffers[BUFFERS];
static struct ww_class *of_them;

static int reserve(struct buffer **list, int count, struct ww_acquire_ctx *ctx)
{
    struct buffer *contended = NULL;
    int i, error;

    ww_acquire_init(ctx, of_them);
retry:
    for (i = 0; i < count; i++) {
        if (list[i] == contended)
            continue;
        error = ww_mutex_lock_interruptible(&list[i]->resv, ctx);
        if (error) {
            struct buffer *refused = list[i];

            while (--i >= 0)
                if (list[i] != contended)
                    ww_mutex_unlock(&list[i]->resv);
            if (contended)
                ww_mutex_unlock(&contended->resv);
            contended = NULL;
            if (error == -EDEADLK)
                error = ww_mutex_lock_slow_interruptible(&refused->resv, ctx);
            if (error) {
                ww_acquire_fini(ctx);
                return error;
            }
            contended = refused;
            goto retry;
        }
    }
    ww_acquire_done(ctx);
    return 0;
}

static void submit(struct buffer **list, int count)
{
    struct ww_acquire_ctx ctx;
    int i;

    EXPECT(reserve(list, count, &ctx) == 0);
    for (i = 0; i < count; i++) {
        lockdep_assert_held(&list[i]->resv);
        mutex_lock_nest_lock(&list[i]->pages_lock, &ctx);
        EXPECT(++list[i]->uses == 1);
    }
    for (i = count; i-- > 0;) {
        list[i]->uses--;
        mutex_unlock(&list[i]->pages_lock);
        ww_mutex_unlock(&list[i]->resv);
    }
    ww_acquire_fini(&ctx);
}

static void *work(void *number)
{
    int me = (int)(intptr_t)number, round;

    for (round = 0; round < 500; round++) {
        struct buffer *list[2];

        list[0] = &buffers[(me + round) % BUFFERS];
        list[1] = &buffers[(me + round * 3 + 1) % BUFFERS];
        submit(list, list[0] == list[1] ? 1 : 2);
    }
    complete_all(&buffers[me].fence);
    return NULL;
}

int main(void)
{
    pthread_t threads[BUFFERS];
    int i, scheme;

    for (scheme = 0; scheme < 2; scheme++) {
        of_them = scheme ? &dying_class : &reservation_class;
        for (i = 0; i < BUFFERS; i++) {
            ww_mutex_init(&buffers[i].resv, of_them);
            mutex_init(&buffers[i].pages_lock);
            init_completion(&buffers[i].fence);
        }
        for (i = 0; i < BUFFERS; i++)
            threads[i] = start(work, (void *)(intptr_t)i);
        for (i = 0; i < BUFFERS; i++)
            EXPECT(wait_for_completion_killable_timeout(&buffers[i].fence, 80 * HZ) > 0);
        for (i = 0; i < BUFFERS; i++)
            join(threads[i]);
        for (i = 0; i < BUFFERS; i++) {
            EXPECT(!ww_mutex_is_locked(&buffers[i].resv));
            ww_mutex_destroy(&buffers[i].resv);
        }
    }
    return 0;
}
