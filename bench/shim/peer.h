// One peer lock as five C functions. The lock is constructed inside storage
// that the caller owns (src/locks/cpp.rs); lock and unlock are called out of
// line.
#pragma once
#include <cstddef>
#include <new>

#define PEER(name, type, lock_call, unlock_call)                                       \
    static_assert(sizeof(type) <= 64 && alignof(type) <= 16, "larger than Storage");   \
    extern "C" {                                                                       \
    void peer_##name##_init(void *storage) { new (storage) type(); }                   \
    void peer_##name##_destroy(void *storage) { static_cast<type *>(storage)->~type(); } \
    void peer_##name##_lock(void *storage)                                             \
    {                                                                                  \
        type *lock = static_cast<type *>(storage);                                     \
        lock_call;                                                                     \
    }                                                                                  \
    void peer_##name##_unlock(void *storage)                                           \
    {                                                                                  \
        type *lock = static_cast<type *>(storage);                                     \
        unlock_call;                                                                   \
    }                                                                                  \
    std::size_t peer_##name##_size() { return sizeof(type); }                          \
    }
