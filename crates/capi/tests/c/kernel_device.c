/*
 * A driver as one writes it for the kernel: a queue of requests that a thread serves,
 * each on the stack of who waits for it; a device that goes with its last reference; a
 * semaphore for its firmware.
 */
#include <lockstead/kernel.h>

#include "expect.h"

struct device_request {
    struct device_request *next;
    struct completion done;
    int sector, status;
};

struct block_device {
    struct mutex queue_lock;
    struct mutex io_lock;
    struct rw_semaphore geometry;
    struct device_request *queue;
    struct completion work, stopped;
    refcount_t users;
    int sectors, served, open, stopping;
};

static struct lock_class_key queue_key, io_key;
static DEFINE_MUTEX(devices_lock);
static struct block_device *the_device;
static int devices_freed;
static DEFINE_SEMAPHORE(firmware);

static struct device_request *device_next(struct block_device *dev)
{
    struct device_request *request;

    guard(mutex)(&dev->queue_lock);
    request = dev->queue;
    if (request)
        dev->queue = request->next;
    return request;
}

static void device_serve(struct block_device *dev, struct device_request *request)
{
    guard(rwsem_read)(&dev->geometry);
    lockdep_assert_held_read(&dev->geometry);
    mutex_lock_io(&dev->io_lock);
    lockdep_assert_held(&dev->io_lock);
    request->status = request->sector < dev->sectors ? 0 : -ENXIO;
    dev->served++;
    mutex_unlock(&dev->io_lock);
}

static void *device_thread(void *argument)
{
    struct block_device *dev = (struct block_device *)argument;

    for (;;) {
        struct device_request *request;

        if (wait_for_completion_interruptible(&dev->work))
            continue;
        request = device_next(dev);
        if (!request)
            break;
        device_serve(dev, request);
        complete(&request->done);
    }
    complete_all(&dev->stopped);
    return NULL;
}

static int device_read(struct block_device *dev, int sector)
{
    struct device_request request = {NULL, COMPLETION_INITIALIZER(request.done), sector, 1};

    might_sleep();
    scoped_guard(mutex, &dev->queue_lock) {
        if (dev->stopping)
            return -ENODEV;
        request.next = dev->queue;
        dev->queue = &request;
    }
    complete(&dev->work);
    if (!wait_for_completion_timeout(&request.done, 60 * HZ))
        return -ETIMEDOUT;
    return request.status;
}

static int device_resize(struct block_device *dev, int sectors)
{
    scoped_cond_guard(rwsem_write_kill, return -EINTR, &dev->geometry) {
        rwsem_assert_held_write(&dev->geometry);
        lockdep_assert_not_held(&dev->queue_lock);
        dev->sectors = sectors;
    }
    return 0;
}

static struct block_device *device_get(void)
{
    guard(mutex)(&devices_lock);
    if (!the_device || !refcount_inc_not_zero(&the_device->users))
        return NULL;
    return the_device;
}

static void device_put(struct block_device *dev)
{
    if (!refcount_dec_and_mutex_lock(&dev->users, &devices_lock))
        return;
    lockdep_assert_held(&devices_lock);
    the_device = NULL;
    devices_freed++;
    mutex_unlock(&devices_lock);
    mutex_destroy(&dev->queue_lock);
    mutex_destroy(&dev->io_lock);
    free(dev);
}

static struct block_device *device_make(int sectors)
{
    struct block_device *dev = (struct block_device *)calloc(1, sizeof(*dev));

    EXPECT(dev);
    __mutex_init(&dev->queue_lock, "queue", &queue_key);
    mutex_init_with_key(&dev->io_lock, &io_key);
    init_rwsem(&dev->geometry);
    init_completion(&dev->work);
    init_completion(&dev->stopped);
    refcount_set(&dev->users, 1);
    dev->sectors = sectors;
    down(&firmware);
    dev->open = 1;
    up(&firmware);
    return dev;
}

static void device_stop(struct block_device *dev)
{
    mutex_lock_io_nested(&dev->queue_lock, 1);
    dev->stopping = 1;
    mutex_unlock(&dev->queue_lock);
    complete(&dev->work);
    wait_for_completion_io(&dev->stopped);
    EXPECT(completion_done(&dev->stopped) && try_wait_for_completion(&dev->stopped));
}

static void *user(void *number)
{
    int me = (int)(intptr_t)number, round;

    for (round = 0; round < 300; round++) {
        struct block_device *dev = device_get();

        EXPECT(dev);
        EXPECT(device_read(dev, me) == 0 && device_read(dev, 1000) == -ENXIO);
        if (round % 16 == me)
            EXPECT(device_resize(dev, 8 + round % 8) == 0);
        device_put(dev);
    }
    return NULL;
}

/* What a guard says that did not get its lock. */
static int device_try(struct block_device *dev)
{
    ACQUIRE(mutex_try, queue)(&dev->queue_lock);

    if (ACQUIRE_ERR(mutex_try, &queue))
        return ACQUIRE_ERR(mutex_try, &queue);
    scoped_guard(rwsem_read_try, &dev->geometry)
        return dev->sectors > 0;
    return -EAGAIN;
}

static void *try_it(void *dev)
{
    EXPECT(device_try((struct block_device *)dev) == -EBUSY);
    return NULL;
}

int main(void)
{
    pthread_t server, users[3];
    int i;

    the_device = device_make(8);
    server = start(device_thread, the_device);
    for (i = 0; i < 3; i++)
        users[i] = start(user, (void *)(intptr_t)i);
    for (i = 0; i < 3; i++)
        join(users[i]);
    EXPECT(the_device->served == 3 * 300 * 2 && refcount_read(&the_device->users) == 1);

    EXPECT(device_try(the_device) == 1);
    scoped_guard(mutex_intr, &the_device->queue_lock)
        join(start(try_it, the_device));
    scoped_guard(rwsem_write, &the_device->geometry)
        EXPECT(device_try(the_device) == -EAGAIN);
    EXPECT(!mutex_is_locked(&the_device->queue_lock) && !rwsem_is_locked(&the_device->geometry));

    device_stop(the_device);
    join(server);
    EXPECT(device_read(the_device, 0) == -ENODEV);
    device_put(the_device);
    EXPECT(devices_freed == 1 && !device_get());
    return 0;
}
