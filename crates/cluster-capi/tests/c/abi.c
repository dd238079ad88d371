/* Prints what programs have in their own code of lockstead_cluster.h. */
#include "lockstead_cluster.h"

#include <stdio.h>

#define FIELD(name) \
    printf("lks_cluster_options.%s %zu\n", #name, offsetof(lks_cluster_options, name))
#define VALUE(name) printf("%s %d\n", #name, (int)(name))

int main(void)
{
    printf("lks_cluster_options %zu %zu\n", sizeof(lks_cluster_options),
           (size_t)__alignof__(lks_cluster_options));
    FIELD(size);
    FIELD(endpoints);
    FIELD(user);
    FIELD(password);
    FIELD(cacert);
    FIELD(cert);
    FIELD(key);
    FIELD(root);
    FIELD(lease_s);
    FIELD(margin_ns);
    FIELD(attempt_ns);
    FIELD(patience_ns);
    VALUE(LKS_CLUSTER_FOREVER);
    VALUE(LKS_CLUSTER_TRY);
    VALUE(LKS_CLUSTER_TIMEOUT);
    VALUE(LKS_CLUSTER_UNTIL);
    VALUE(LKS_CLUSTER_INTERRUPTIBLE);
    VALUE(LKS_CLUSTER_KILLABLE);
    return 0;
}
