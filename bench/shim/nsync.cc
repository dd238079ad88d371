#include "peer.h"

#include <nsync.h>

// Zeroed is unlocked, which value-initialisation gives.
using Lock = nsync::nsync_mu;
PEER(nsync, Lock, nsync::nsync_mu_lock(lock), nsync::nsync_mu_unlock(lock))
