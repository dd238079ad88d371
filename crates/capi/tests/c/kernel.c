/*
 * Code as one writes it in the kernel: objects in a table, with references; a
 * bounded pipe; a tree that is read more than written; buffers that are reserved
 * together.
 */
#include <lockstead/kernel.h>

#include "expect.h"

struct object {
    struct object *next;
    int key;
    atomic_t references;
};

static DEFINE_MUTEX(table_lock);
static struct object *table;

static struct object *object_get(int key)
{
    struct object *object;

    mutex_lock(&table_lock);
    for (object = table; object; object = object->next)
        if (object->key == key)
            break;
    if (object) {
        atomic_inc(&object->references);
    } else {
        object = calloc(1, sizeof(*object));
        EXPECT(object);
        object->key = key;
        atomic_set(&object->references, 1);
        object->next = table;
        table = object;
    }
    mutex_unlock(&table_lock);
    return object;
}

static void object_put(struct object *object)
{
    struct object **at;

    if (!atomic_dec_and_mutex_lock(&object->references, &table_lock))
        return;
    for (at = &table; *at != object; at = &(*at)->next)
        ;
    *at = object->next;
    mutex_unlock(&table_lock);
    free(object);
}

static DEFINE_SEMAPHORE(room, 4);
static DEFINE_SEMAPHORE(items, 0);
static DECLARE_RWSEM(tree_lock);
static long tree[2];

static DEFINE_WD_CLASS(die_class);
static DEFINE_WW_CLASS(wound_class);

struct buffer {
    struct ww_mutex lock;
    int users;
};
static struct buffer buffers[3];
static struct ww_class *phase;

/* The loop that the kernel's documentation describes: back off, take the contended
 * one first, begin again. */
static void reserve(struct buffer *one, struct buffer *two, struct ww_class *class_of_them)
{
    struct ww_acquire_ctx ctx;
    struct buffer *wanted[2], *slow = NULL;
    int i, result;

    wanted[0] = one;
    wanted[1] = two;
    ww_acquire_init(&ctx, class_of_them);
retry:
    for (i = 0; i < 2; i++) {
        if (wanted[i] == slow) {
            slow = NULL;
            continue;
        }
        result = ww_mutex_lock(&wanted[i]->lock, &ctx);
        if (result) {
            struct buffer *refused = wanted[i];
            EXPECT(result == -EDEADLK);
            while (i--)
                ww_mutex_unlock(&wanted[i]->lock);
            if (slow)
                ww_mutex_unlock(&slow->lock);
            ww_mutex_lock_slow(&refused->lock, &ctx);
            slow = refused;
            goto retry;
        }
    }
    ww_acquire_done(&ctx);
    EXPECT(++one->users == 1 && ++two->users == 1);
    one->users--;
    two->users--;
    ww_mutex_unlock(&one->lock);
    ww_mutex_unlock(&two->lock);
    ww_acquire_fini(&ctx);
}

static void *work(void *number)
{
    int me = (int)(intptr_t)number, round;

    for (round = 0; round < 3000; round++) {
        object_put(object_get(round % 3));

        if (me % 2) {
            down(&room);
            up(&items);
        } else {
            EXPECT(down_timeout(&items, 60 * HZ) == 0);
            up(&room);
        }

        if (round % 8 == 0) {
            down_write(&tree_lock);
            tree[0]++;
            tree[1]++;
            downgrade_write(&tree_lock);
        } else {
            down_read(&tree_lock);
        }
        EXPECT(tree[0] == tree[1]);
        up_read(&tree_lock);

        reserve(&buffers[(round + me) % 3], &buffers[(round + me + 1 + me % 2) % 3],
                phase);
    }
    return NULL;
}

static void *others(void *unused)
{
    lks_cancel token = LKS_CANCEL_INIT;

    EXPECT(!mutex_trylock(&table_lock) && mutex_is_locked(&table_lock));
    EXPECT(!down_read_trylock(&tree_lock) && !down_write_trylock(&tree_lock));
    lks_cancel_fire(&token);
    lockstead_kill_token(&token);
    EXPECT(mutex_lock_killable(&table_lock) == -EINTR);
    EXPECT(mutex_lock_killable_nested(&table_lock, 1) == -EINTR);
    EXPECT(down_read_killable(&tree_lock) == -EINTR);
    EXPECT(down_write_killable(&tree_lock) == -EINTR);
    EXPECT(down_killable(&items) == -EINTR);
    return unused;
}

static DEFINE_RT_MUTEX(boosted);

static void *want_boosted(void *unused)
{
    lks_cancel token = LKS_CANCEL_INIT;

    lks_cancel_fire(&token);
    lockstead_kill_token(&token);
    EXPECT(rt_mutex_lock_killable(&boosted) == -EINTR);
    return unused;
}

int main(void)
{
    struct mutex lock;
    struct semaphore sem;
    pthread_t threads[4];
    int i, scheme;

    for (scheme = 0; scheme < 2; scheme++) {
        phase = scheme ? &wound_class : &die_class;
        for (i = 0; i < 3; i++)
            ww_mutex_init(&buffers[i].lock, phase);
        for (i = 0; i < 4; i++)
            threads[i] = start(work, (void *)(intptr_t)i);
        for (i = 0; i < 4; i++)
            join(threads[i]);
    }
    EXPECT(!table);

    mutex_init(&lock);
    mutex_lock_nested(&lock, 1);
    mutex_unlock(&lock);
    EXPECT(mutex_lock_interruptible(&lock) == 0);
    mutex_unlock(&lock);
    EXPECT(mutex_lock_interruptible_nested(&lock, 1) == 0);
    mutex_unlock(&lock);
    mutex_destroy(&lock);

    sema_init(&sem, 1);
    EXPECT(down_trylock(&sem) == 0 && down_trylock(&sem) == 1);
    EXPECT(down_timeout(&sem, 1) == -ETIME);
    up(&sem);
    EXPECT(down_interruptible(&sem) == 0);

    mutex_lock(&table_lock);
    down_write(&tree_lock);
    join(start(others, NULL));
    up_write(&tree_lock);
    mutex_unlock(&table_lock);
    EXPECT(down_read_interruptible(&tree_lock) == 0 && rwsem_is_locked(&tree_lock));
    up_read(&tree_lock);
    rt_mutex_init(&boosted);
    rt_mutex_lock(&boosted);
    EXPECT(rt_mutex_is_locked(&boosted) && !rt_mutex_trylock(&boosted));
    join(start(want_boosted, NULL));
    rt_mutex_unlock(&boosted);
    rt_mutex_lock_nested(&boosted, 1);
    rt_mutex_unlock(&boosted);
    EXPECT(rt_mutex_lock_killable(&boosted) == 0);
    rt_mutex_unlock(&boosted);
    EXPECT(rt_mutex_lock_interruptible(&boosted) == 0);
    rt_mutex_unlock(&boosted);
    rt_mutex_destroy(&boosted);
    for (i = 0; i < 3; i++) {
        EXPECT(!ww_mutex_is_locked(&buffers[i].lock) && ww_mutex_trylock(&buffers[i].lock, NULL));
        ww_mutex_unlock(&buffers[i].lock);
        ww_mutex_destroy(&buffers[i].lock);
    }
    return 0;
}
