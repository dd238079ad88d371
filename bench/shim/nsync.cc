#include "peer.h"

#include <nsync.h>

// Zeroed is unlocked, which value-initialisation gives.
using Lock = nsync_mu;
PEER(nsync, Lock, nsync_mu_lock(lock), nsync_mu_unlock(lock))
