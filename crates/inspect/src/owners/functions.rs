//! Functions that an emulated run knows by their names.
//!
//! # Role
//! A run follows calls within the program's own code. Functions of the C library and of the
//! compilers' libraries are not followed: a few are known, the others return something unknown.

/// What a known function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KnownFunction {
    /// It releases the lock at its first argument.
    Unlocks,
    /// It releases the share of the lock at its first argument.
    UnlocksShared,
    /// It acquires the lock at its first argument, or tries to.
    Locks,
    /// It gets the lock at its second argument back, at the end.
    Retakes,
    /// The exception goes on to the next frame.
    Resumes,
    /// It does not return, or catches the exception.
    Ends,
    /// It returns, and takes no exception.
    Returns,
    /// It returns memory that nobody else has.
    Allocates,
    /// It copies memory: to, from, how much.
    Copies,
    /// It fills memory: where, with which byte, how much.
    Fills,
    /// It compares memory: one place, the other, how much.
    Compares,
    /// It makes a system call: the number, then the arguments.
    Calls,
    /// It sleeps for something else than a lock.
    Sleeps,
    /// It sleeps until the word at its first argument has changed, or only spins, as its second says.
    SleepsOn,
    /// It wakes threads that sleep on the word at its first argument.
    Wakes,
}

use KnownFunction::{
    Allocates, Calls, Compares, Copies, Ends, Fills, Locks, Resumes, Retakes, Returns, Sleeps,
    SleepsOn, Unlocks, UnlocksShared, Wakes,
};

/// Functions by their names as the linker knows them.
const BY_NAME: &[(&str, KnownFunction)] = &[
    ("pthread_mutex_unlock", Unlocks),
    ("__pthread_mutex_unlock", Unlocks),
    ("pthread_rwlock_unlock", Unlocks),
    ("__pthread_rwlock_unlock", Unlocks),
    ("pthread_spin_unlock", Unlocks),
    ("mtx_unlock", Unlocks),
    // The initialiser of a static variable has failed: another may try.
    ("__cxa_guard_abort", Unlocks),
    ("__cxa_guard_release", Unlocks),
    ("__cxa_guard_acquire", Locks),
    ("pthread_mutex_lock", Locks),
    ("__pthread_mutex_lock", Locks),
    ("pthread_mutex_trylock", Locks),
    ("__pthread_mutex_trylock", Locks),
    ("pthread_mutex_timedlock", Locks),
    ("pthread_mutex_clocklock", Locks),
    ("pthread_rwlock_rdlock", Locks),
    ("__pthread_rwlock_rdlock", Locks),
    ("pthread_rwlock_wrlock", Locks),
    ("__pthread_rwlock_wrlock", Locks),
    ("pthread_rwlock_tryrdlock", Locks),
    ("pthread_rwlock_trywrlock", Locks),
    ("pthread_rwlock_timedrdlock", Locks),
    ("pthread_rwlock_timedwrlock", Locks),
    ("pthread_rwlock_clockrdlock", Locks),
    ("pthread_rwlock_clockwrlock", Locks),
    ("pthread_spin_lock", Locks),
    ("pthread_spin_trylock", Locks),
    ("mtx_lock", Locks),
    ("mtx_trylock", Locks),
    ("mtx_timedlock", Locks),
    ("pthread_cond_wait", Retakes),
    ("pthread_cond_timedwait", Retakes),
    ("pthread_cond_clockwait", Retakes),
    ("cnd_wait", Retakes),
    ("cnd_timedwait", Retakes),
    ("_Unwind_Resume", Resumes),
    ("_Unwind_Resume_or_Rethrow", Resumes),
    ("_Unwind_RaiseException", Ends),
    ("_Unwind_ForcedUnwind", Ends),
    ("__cxa_rethrow", Ends),
    ("__cxa_throw", Ends),
    ("__cxa_begin_catch", Ends),
    ("__cxa_end_catch", Returns),
    ("__cxa_call_unexpected", Ends),
    ("__cxa_call_terminate", Ends),
    ("__clang_call_terminate", Ends),
    ("_ZSt9terminatev", Ends),
    ("__rust_panic_cleanup", Ends),
    ("abort", Ends),
    ("exit", Ends),
    ("_exit", Ends),
    ("quick_exit", Ends),
    ("__assert_fail", Ends),
    ("__stack_chk_fail", Ends),
    ("pthread_exit", Ends),
    ("longjmp", Ends),
    ("siglongjmp", Ends),
    ("malloc", Allocates),
    ("calloc", Allocates),
    ("_Znwm", Allocates),
    ("_Znam", Allocates),
    // Memory of the thread's own, of which nothing is known.
    ("__errno_location", Allocates),
    ("memcpy", Copies),
    ("memmove", Copies),
    ("memset", Fills),
    ("memcmp", Compares),
    ("bcmp", Compares),
    ("syscall", Calls),
    ("pthread_join", Sleeps),
    ("sem_wait", Sleeps),
    ("pthread_barrier_wait", Sleeps),
];

/// Functions of libraries that have names of their own making, by pieces of these.
const BY_PIECES: &[(&[&str], KnownFunction)] = &[
    (&["absl", "5Mutex6Unlock"], Unlocks),
    (&["absl", "5Mutex6unlock"], Unlocks),
    (&["absl", "5Mutex12ReaderUnlock"], UnlocksShared),
    (&["absl", "5Mutex13unlock_shared"], UnlocksShared),
    (&["absl", "5Mutex12WriterUnlock"], Unlocks),
    (&["absl", "5Mutex4Lock"], Locks),
    (&["absl", "5Mutex4lock"], Locks),
    (&["absl", "5Mutex10ReaderLock"], Locks),
    (&["absl", "5Mutex11lock_shared"], Locks),
    (&["absl", "5Mutex10WriterLock"], Locks),
    (&["absl", "5Mutex7TryLock"], Locks),
    (&["absl", "5Mutex5Await"], Locks),
    (&["absl", "7CondVar4Wait"], Retakes),
    // Waits of C++20, in the library of gcc 16 and later; before, they were inlined into programs.
    (&["8__detail", "11__wait_impl"], SleepsOn),
    (&["8__detail", "17__wait_until_impl"], SleepsOn),
    (&["8__detail", "13__notify_impl"], Wakes),
    (&["core", "9panicking"], Ends),
    (&["std", "9panicking", "16begin_panic"], Ends),
];

/// Returns what the function of this name does, if it is known. Versions behind an `@` do not
/// count.
#[must_use]
pub fn known(name: &str) -> Option<KnownFunction> {
    let name = name.split('@').next().unwrap_or(name);
    let exact = BY_NAME.iter().find(|(known, _)| *known == name).map(|&(_, what)| what);
    exact.or_else(|| {
        let made_up = name.starts_with("_ZN") || name.starts_with("_R");
        let has_all = |pieces: &&[&str]| pieces.iter().all(|piece| name.contains(piece));
        let found = BY_PIECES.iter().find(|(pieces, _)| made_up && has_all(pieces));
        found.map(|&(_, what)| what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_exactly_or_by_their_pieces() {
        assert_eq!(known("pthread_rwlock_unlock@GLIBC_2.34"), Some(Unlocks));
        assert_eq!(known("pthread_rwlock_unlock_all"), None);
        assert_eq!(known("_ZN4absl12lts_202401165Mutex6UnlockEv"), Some(Unlocks));
        assert_eq!(known("_ZN4core9panicking9panic_fmt17h0123456789abcdefE"), Some(Ends));
        assert_eq!(known("absl5Mutex6Unlock"), None);
        let wait = "_ZNSt8__detail11__wait_implEPKvRNS_16__wait_args_baseE@@GLIBCXX_3.4.35";
        assert_eq!(known(wait), Some(SleepsOn));
        let notify = "_ZNSt8__detail13__notify_implEPKvbRKNS_16__wait_args_baseE";
        assert_eq!(known(notify), Some(Wakes));
    }
}
