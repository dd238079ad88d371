/* One side of a segment that a program in Rust shares. */
#include "bank.h"
#include <sys/wait.h>

static void make(const char *path)
{
    lks_shm_segment *segment;
    uint32_t clerks = 3;
    lks_shm_options options = LKS_SHM_OPTIONS_INIT;
    options.fill = fill_bank;
    options.argument = &clerks;
    OPENED(lks_shm_create(&segment, path, &bank_type, &options));
    struct bank *bank = (struct bank *)lks_shm_root(segment);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        EXPECT(lks_shared_mutex_lock(&bank->accounts[5].lock) == 0);
        bank->accounts[5].balance = -5;
        kill(getpid(), SIGKILL);
    }
    EXPECT(waitpid(child, NULL, 0) == child);
}

static void look(const char *path)
{
    lks_shm_segment *segment;
    OPENED(lks_shm_open(&segment, path, &bank_type));
    struct bank *bank = (struct bank *)lks_shm_root(segment);
    EXPECT(lks_shared_mutex_lock(&bank->accounts[5].lock) == 0);
    EXPECT(bank->accounts[5].balance == 55);
    EXPECT(lks_shared_mutex_unlock(&bank->accounts[5].lock) == 0);
    EXPECT(lks_shared_semaphore_tryacquire(&bank->clerks, 2) == -EBUSY);
    EXPECT(lks_shared_semaphore_tryacquire(&bank->clerks, 1) == 0);
    EXPECT(lks_shared_semaphore_release(&bank->clerks, 1) == 0);
    EXPECT(lks_shm_close(segment) == 0);
}

int main(int count, char **arguments)
{
    EXPECT(count == 3);
    if (!strcmp(arguments[1], "make"))
        make(arguments[2]);
    else
        look(arguments[2]);
    return 0;
}
