/*
 * Reaches an etcd with TLS or users, and says how far it came. C, and C++ as well.
 *
 *   access ENDPOINTS CACERT CERT KEY USER PASSWORD ROOT PATIENCE         "-" is none; seconds
 *
 * prints "open -errno: reason", or "lock -errno: reason", or "in"; waits for a line then, writes a key as the
 * owner, hands the lock over to another session that waits for it, and prints "out".
 */
#include "lockstead_cluster.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lks_cluster_session *second;

static void *waits(void *result)
{
    lks_cluster_guard *guard;
    *(int *)result = lks_cluster_mutex_lock_timeout(second, "access", 60000000000u, &guard);
    if (*(int *)result == 0)
        *(int *)result = lks_cluster_guard_unlock(guard);
    return NULL;
}

static int said(const char *step, int error)
{
    printf("%s %d: %s\n", step, error, lks_cluster_reason());
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 9)
        return 2;
    const char *given[8];
    for (int i = 1; i < 8; i++)
        given[i] = strcmp(argv[i], "-") == 0 ? NULL : argv[i];
    lks_cluster_options options = LKS_CLUSTER_OPTIONS_INIT;
    options.endpoints = given[1];
    options.cacert = given[2];
    options.cert = given[3];
    options.key = given[4];
    options.user = given[5];
    options.password = given[6];
    options.root = given[7];
    options.lease_s = 60;
    options.attempt_ns = options.patience_ns = 1000000000u * strtoull(argv[8], NULL, 10);
    lks_cluster_session *session;
    lks_cluster_guard *guard;
    int error = lks_cluster_session_open(&session, &options);
    if (error != 0)
        return said("open", error);
    error = lks_cluster_mutex_lock(session, "access", &guard);
    if (error != 0)
        return said("lock", error);
    printf("in\n");
    fflush(stdout);
    if (getchar() == EOF)
        return 0;

    error = lks_cluster_guard_put(guard, "lockstead/data", "written");
    if (error != 0)
        return said("put", error);
    error = lks_cluster_session_open(&second, &options);
    if (error != 0)
        return said("second", error);
    pthread_t thread;
    int waited = 1;
    if (pthread_create(&thread, NULL, waits, &waited) != 0)
        return 2;
    error = lks_cluster_guard_unlock(guard);
    if (error != 0)
        return said("unlock", error);
    pthread_join(thread, NULL);
    if (waited != 0)
        return said("second lock", waited);
    error = lks_cluster_session_close(session);
    if (error != 0)
        return said("close", error);
    error = lks_cluster_session_close(second);
    if (error != 0)
        return said("close", error);
    printf("out\n");
    return 0;
}
