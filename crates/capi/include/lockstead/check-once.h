/*
 * The checking build of doing something once. Included by `once.h`.
 */
#ifndef LOCKSTEAD_ONCE_H
#include "once.h" /* which includes this one, in its midst */
#endif
#ifndef LOCKSTEAD_CHECK_ONCE_H
#define LOCKSTEAD_CHECK_ONCE_H

#include "check.h"

LKS_BEGIN_DECLS__

int lks_check_once_begin(lks_once *once, unsigned how, uint64_t argument, LKS_AT__);
void lks_check_once_end(lks_once *once, int done, LKS_AT__);

LKS_END_DECLS__

LKS_NODISCARD__ LKS_INLINE__ int lks_once_begin_dbg(lks_once *once, LKS_AT__)
{
    int result = lks_check_once_begin(once, LKS_FOREVER__, 0, file, line);
    if (result >= 0)
        LKS_ACQUIRED__(once);
    return result;
}
#define lks_once_begin(once) \
    lks_once_begin_dbg(once, __FILE__, __LINE__)

LKS_NODISCARD__ LKS_INLINE__ int lks_once_begin_timeout_dbg(lks_once *once, uint64_t nanoseconds,
                                                            LKS_AT__)
{
    int result = lks_check_once_begin(once, LKS_TIMEOUT__, nanoseconds, file, line);
    if (result >= 0)
        LKS_ACQUIRED__(once);
    return result;
}
#define lks_once_begin_timeout(once, nanoseconds) \
    lks_once_begin_timeout_dbg(once, nanoseconds, __FILE__, __LINE__)

LKS_INLINE__ void lks_once_done_dbg(lks_once *once, LKS_AT__)
{
    LKS_RELEASING__(once);
    lks_check_once_end(once, 1, file, line);
}
#define lks_once_done(once) \
    lks_once_done_dbg(once, __FILE__, __LINE__)

LKS_INLINE__ void lks_once_failed_dbg(lks_once *once, LKS_AT__)
{
    LKS_RELEASING__(once);
    lks_check_once_end(once, 0, file, line);
}
#define lks_once_failed(once) \
    lks_once_failed_dbg(once, __FILE__, __LINE__)

#endif
