/* Orders of locks and a broken rule: `checked WHAT...`, one after the other. */
#include "common.h"
#include <sys/wait.h>

static pthread_mutex_t accounts = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_int came;

static void lock(pthread_mutex_t *mutex) { must(pthread_mutex_lock(mutex)); }
static void unlock(pthread_mutex_t *mutex) { must(pthread_mutex_unlock(mutex)); }

static void *transfer(void *unused)
{
    lock(&accounts); /* @transfer-has */
    lock(&journal);  /* @transfer-wants */
    unlock(&journal);
    unlock(&accounts);
    return unused;
}

static void *audit(void *unused)
{
    lock(&journal);  /* @audit-has */
    lock(&accounts); /* @audit-wants */
    unlock(&accounts);
    unlock(&journal);
    return unused;
}

static void *gated(void *inner)
{
    lock(&gate);
    inner == NULL ? transfer(NULL) : audit(NULL);
    unlock(&gate);
    return NULL;
}

static void *post(void *unused)
{
    lock(&journal); /* @post-has */
    lock(&queue);   /* @post-wants */
    unlock(&queue);
    unlock(&journal);
    return unused;
}

static void *meets(void *first)
{
    lock(first);
    meet(&came, 2);
    lock(first == &accounts ? &journal : &accounts);
    return NULL;
}

static void alone(void *(*what)(void *), void *with, const char *name)
{
    must(pthread_join(start(what, with, name), NULL));
}

static void crossed(void)
{
    alone(transfer, NULL, "transfer");
    alone(audit, NULL, "audit");
}

int main(int count, char **words)
{
    for (int i = 1; i < count; i++) {
        if (!strcmp(words[i], "crossed"))
            crossed();
        else if (!strcmp(words[i], "gated"))
            alone(gated, NULL, "transfer"), alone(gated, &gate, "audit");
        else if (!strcmp(words[i], "path"))
            alone(transfer, NULL, "transfer"), alone(post, NULL, "post");
        else if (!strcmp(words[i], "children"))
            for (int child = 0; child < 3; child++) {
                pid_t pid = fork();
                if (pid == 0) {
                    crossed();
                    _exit(0);
                }
                waitpid(pid, NULL, 0);
            }
        else if (!strcmp(words[i], "unlock"))
            pthread_mutex_unlock(&queue);
        else if (!strcmp(words[i], "meets")) {
            start(meets, &accounts, "forth");
            start(meets, &journal, "back");
            pause();
        } else if (!strcmp(words[i], "fails"))
            return 7;
    }
    puts("done");
    return 0;
}
