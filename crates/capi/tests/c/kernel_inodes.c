/*
 * A file system's inodes as one writes them for the kernel: directories and files, whose
 * locks are of one kind and are taken inside each other, and are told apart by classes and
 * levels; an operation that another thread ends; several taken under one lock.
 */
#include <lockstead/kernel.h>

#include "expect.h"

enum inode_level { INODE_PLAIN, INODE_PARENT, INODE_CHILD };

struct inode {
    struct rw_semaphore rwsem;
    struct mutex xattr_lock;
    refcount_t count;
    int links, is_directory;
};

static struct lock_class_key directory_key, directory_mutex_key;
static DEFINE_MUTEX(rename_mutex);
static DECLARE_RWSEM(freeze);
static struct inode root, files[3];

static void inode_init(struct inode *inode, int is_directory)
{
    init_rwsem(&inode->rwsem);
    mutex_init(&inode->xattr_lock);
    refcount_set(&inode->count, 1);
    inode->links = 0;
    inode->is_directory = is_directory;
    if (is_directory) {
        lockdep_set_class(&inode->rwsem, &directory_key);
        lockdep_set_class_and_name(&inode->xattr_lock, &directory_mutex_key, "xattr of a directory");
    }
}

static void link_it(struct inode *directory, struct inode *inode)
{
    down_write_nested(&directory->rwsem, INODE_PARENT);
    down_write_nested(&inode->rwsem, INODE_CHILD);
    rwsem_assert_held(&directory->rwsem);
    lockdep_assert_held_write(&inode->rwsem);
    directory->links++;
    inode->links++;
    up_write(&inode->rwsem);
    up_write(&directory->rwsem);
}

static int links_of(struct inode *directory, struct inode *inode)
{
    int links;

    down_read_nested(&directory->rwsem, INODE_PARENT);
    if (down_read_killable_nested(&inode->rwsem, INODE_CHILD)) {
        up_read(&directory->rwsem);
        return -EINTR;
    }
    lockdep_assert_held_read(&inode->rwsem);
    links = inode->links;
    up_read(&inode->rwsem);
    up_read(&directory->rwsem);
    return links;
}

/* Any two, since whoever takes two has the mutex. */
static void rename_it(struct inode *one, struct inode *two)
{
    mutex_lock(&rename_mutex);
    down_write_nest_lock(&one->rwsem, &rename_mutex);
    mutex_lock_nest_lock(&one->xattr_lock, &rename_mutex);
    if (two != one) {
        down_write_nest_lock(&two->rwsem, &rename_mutex);
        mutex_lock_nest_lock(&two->xattr_lock, &rename_mutex);
    }
    one->links--;
    two->links++;
    if (two != one) {
        mutex_unlock(&two->xattr_lock);
        up_write(&two->rwsem);
    }
    mutex_unlock(&one->xattr_lock);
    up_write(&one->rwsem);
    mutex_unlock(&rename_mutex);
}

static void *work(void *number)
{
    int me = (int)(intptr_t)number, round;

    for (round = 0; round < 300; round++) {
        guard(rwsem_read)(&freeze);
        link_it(&root, &files[(me + round) % 3]);
        rename_it(&files[(me + round) % 3], &files[round % 3]);
        EXPECT(links_of(&root, &files[me % 3]) != -EINTR);
    }
    return NULL;
}

/* A write that ends in another thread: it has the lock for reading until then. */
static void *end_of_write(void *unused)
{
    up_read_non_owner(&freeze);
    return unused;
}

static void *wants_to_write(void *unused)
{
    begins();
    down_write(&freeze);
    up_write(&freeze);
    return unused;
}

static void *is_killed(void *unused)
{
    lks_cancel token = LKS_CANCEL_INIT;

    lks_cancel_fire(&token);
    lockstead_kill_token(&token);
    EXPECT(down_write_killable_nested(&root.rwsem, INODE_PARENT) == -EINTR);
    EXPECT(down_read_killable_nested(&root.rwsem, INODE_PARENT) == -EINTR);
    EXPECT(mutex_lock_killable_nest_lock(&root.xattr_lock, &root.rwsem) == -EINTR);
    EXPECT(!mutex_trylock_nest_lock(&root.xattr_lock, &root.rwsem));
    return unused;
}

int main(void)
{
    pthread_t threads[3];
    int i, links = 0;

    inode_init(&root, 1);
    for (i = 0; i < 3; i++)
        inode_init(&files[i], 0);
    for (i = 0; i < 3; i++)
        threads[i] = start(work, (void *)(intptr_t)i);
    for (i = 0; i < 3; i++)
        join(threads[i]);
    for (i = 0; i < 3; i++)
        links += links_of(&root, &files[i]);
    EXPECT(links == 3 * 300 && root.links == links && !mutex_is_locked(&rename_mutex));

    down_read_non_owner(&freeze);
    EXPECT(!rwsem_is_contended(&freeze));
    rwsem_assert_held_nolockdep(&freeze);
    threads[0] = start(wants_to_write, NULL);
    until_it_sleeps();
    EXPECT(rwsem_is_contended(&freeze));
    join(start(end_of_write, NULL));
    join(threads[0]);
    EXPECT(!rwsem_is_locked(&freeze) && !rwsem_is_contended(&freeze));

    down_write(&root.rwsem);
    rwsem_assert_held_write_nolockdep(&root.rwsem);
    mutex_lock(&root.xattr_lock);
    join(start(is_killed, NULL));
    mutex_unlock(&root.xattr_lock);
    up_write(&root.rwsem);
    EXPECT(refcount_dec_and_test(&root.count));
    return 0;
}
