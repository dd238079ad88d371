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
    VALUE(LKS_MAX_SLOTS__);
    VALUE(LKS_SEMAPHORE_MAX);
    VALUE(LKS_SEMAPHORE_HEIR__);
    VALUE(LKS_RWLOCK_SHARED__);
    VALUE(LKS_RWLOCK_PROMISED__);
    VALUE(LKS_ONCE_DONE__);
    VALUE(LKS_WW_ALONE__);
    VALUE(LKS_WAIT_DIE);
    VALUE(LKS_WOUND_WAIT);
    VALUE(LKS_FOREVER__);
    VALUE(LKS_INTERRUPTIBLE__);
    VALUE(LKS_KILLABLE__);
    VALUE(LKS_TIMEOUT__);
    VALUE(LKS_UNTIL__);
    return 0;
}
