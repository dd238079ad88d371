/* One program of two files, this one compiled twice: a token that is set in one of them
 * ends the waits of the other. */
#include <lockstead/kernel.h>

#include "expect.h"

int take_elsewhere(struct mutex *lock);

#ifdef ELSEWHERE
int take_elsewhere(struct mutex *lock)
{
    return mutex_lock_killable(lock);
}
#else
static DEFINE_MUTEX(lock);

static void *wait(void *token)
{
    lockstead_kill_token(token);
    EXPECT(take_elsewhere(&lock) == -EINTR);
    return token;
}

int main(void)
{
    lks_cancel token = LKS_CANCEL_INIT;
    mutex_lock(&lock);
    pthread_t thread = start(wait, &token);
    lks_cancel_fire(&token);
    join(thread);
    mutex_unlock(&lock);
    return 0;
}
#endif
