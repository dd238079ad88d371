/* Prints the layout of every type, which the test compares with what is agreed. */
#include <stddef.h>
#include <stdio.h>

#include <lockstead.h>

#define TYPE(type) printf("%s %zu %zu\n", #type, sizeof(type), __alignof__(type))
#define FIELD(type, field) \
    printf("%s.%s %zu %zu\n", #type, #field, offsetof(type, field), sizeof(((type *)0)->field))
#define VALUE(name) printf("%s %llu\n", #name, (unsigned long long)(name))

int main(void)
{
    TYPE(lks_mutex);
    FIELD(lks_mutex, word__);
    TYPE(lks_fair_mutex);
    FIELD(lks_fair_mutex, mutex__);
    TYPE(lks_semaphore);
    FIELD(lks_semaphore, word__);
    TYPE(lks_rwlock);
    FIELD(lks_rwlock, word__);
    FIELD(lks_rwlock, room__);
    TYPE(lks_cond);
    FIELD(lks_cond, word__);
    TYPE(lks_once);
    FIELD(lks_once, word__);
    TYPE(lks_cancel);
    FIELD(lks_cancel, fired__);
    TYPE(lks_ww_class);
    FIELD(lks_ww_class, begun__);
    FIELD(lks_ww_class, scheme__);
    TYPE(lks_ww_ctx);
    FIELD(lks_ww_ctx, ticket__);
    FIELD(lks_ww_ctx, acquired__);
    TYPE(lks_ww_mutex);
    FIELD(lks_ww_mutex, word__);
    FIELD(lks_ww_mutex, holder__);
    FIELD(lks_ww_mutex, first__);
    FIELD(lks_ww_mutex, ctx__);
    TYPE(lks_rt_mutex);
    FIELD(lks_rt_mutex, word__);
    TYPE(lks_rt_recursive_mutex);
    FIELD(lks_rt_recursive_mutex, word__);
    FIELD(lks_rt_recursive_mutex, again__);
    TYPE(lks_shared_mutex);
    FIELD(lks_shared_mutex, word__);
    FIELD(lks_shared_mutex, heir__);
    TYPE(lks_shared_rwlock);
    FIELD(lks_shared_rwlock, word__);
    FIELD(lks_shared_rwlock, heir__);
    TYPE(lks_shared_semaphore);
    FIELD(lks_shared_semaphore, word__);
    FIELD(lks_shared_semaphore, total__);
    FIELD(lks_shared_semaphore, free__);
    TYPE(lks_shared_cond);
    FIELD(lks_shared_cond, count__);
    TYPE(lks_member__);
    FIELD(lks_member__, base);
    FIELD(lks_member__, length);
    FIELD(lks_member__, me);
    FIELD(lks_member__, held);
    TYPE(lks_shm_field);
    FIELD(lks_shm_field, name);
    FIELD(lks_shm_field, offset);
    FIELD(lks_shm_field, type);
    TYPE(lks_shm_type);
    FIELD(lks_shm_type, kind);
    FIELD(lks_shm_type, name);
    FIELD(lks_shm_type, size);
    FIELD(lks_shm_type, align);
    FIELD(lks_shm_type, count);
    FIELD(lks_shm_type, offset);
    FIELD(lks_shm_type, inner);
    FIELD(lks_shm_type, fields);
    TYPE(lks_shm_options);
    FIELD(lks_shm_options, participants);
    FIELD(lks_shm_options, claims);
    FIELD(lks_shm_options, mode);
    FIELD(lks_shm_options, flags);
    FIELD(lks_shm_options, fill);
    FIELD(lks_shm_options, argument);
    VALUE(LKS_SHM_PLAIN);
    VALUE(LKS_SHM_ARRAY);
    VALUE(LKS_SHM_STRUCT);
    VALUE(LKS_SHM_MUTEX);
    VALUE(LKS_SHM_RWLOCK);
    VALUE(LKS_SHM_SEMAPHORE);
    VALUE(LKS_SHM_COND);
    VALUE(LKS_SHM_EXCLUSIVE);
    VALUE(LKS_SHARED_INCONSISTENT__);
    VALUE(LKS_SHARED_OWNER__);
    VALUE(LKS_SHARED_LOST__);
    VALUE(LKS_MAX_SLOTS__);
    VALUE(LKS_SEMAPHORE_MAX);
    VALUE(LKS_SEMAPHORE_HANDOFF__);
    VALUE(LKS_RWLOCK_SHARED__);
    VALUE(LKS_RWLOCK_ASLEEP__);
    VALUE(LKS_RWLOCK_PROMISED__);
    VALUE(LKS_RWLOCK_NEXT__);
    VALUE(LKS_ONCE_DONE__);
    VALUE(LKS_WAIT_DIE);
    VALUE(LKS_WOUND_WAIT);
    VALUE(LKS_FOREVER__);
    VALUE(LKS_INTERRUPTIBLE__);
    VALUE(LKS_KILLABLE__);
    VALUE(LKS_TIMEOUT__);
    VALUE(LKS_UNTIL__);
    return 0;
}
