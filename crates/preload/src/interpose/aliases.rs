//! Exports glibc's own names for some functions, which only old programs are linked
//! against.

/// `alias! { name => function; ... }`: exports `name`, which jumps to `function`.
macro_rules! alias {
    ($($name:ident => $function:path;)*) => { $(
        crate::jumping_frame! {
            /// Stands before glibc's function of this name.
            ///
            /// # Safety
            /// As of the function that it is.
            #[cfg_attr(feature = "shared-object", unsafe(no_mangle))]
            pub $name => $function
        }
    )* };
}

use super::{mutex, rwlock};

alias! {
    __pthread_mutex_init => mutex::pthread_mutex_init;
    __pthread_mutex_destroy => mutex::pthread_mutex_destroy;
    __pthread_mutex_lock => mutex::pthread_mutex_lock;
    __pthread_mutex_trylock => mutex::pthread_mutex_trylock;
    __pthread_mutex_unlock => mutex::pthread_mutex_unlock;
    __pthread_rwlock_init => rwlock::pthread_rwlock_init;
    __pthread_rwlock_destroy => rwlock::pthread_rwlock_destroy;
    __pthread_rwlock_rdlock => rwlock::pthread_rwlock_rdlock;
    __pthread_rwlock_tryrdlock => rwlock::pthread_rwlock_tryrdlock;
    __pthread_rwlock_wrlock => rwlock::pthread_rwlock_wrlock;
    __pthread_rwlock_trywrlock => rwlock::pthread_rwlock_trywrlock;
    __pthread_rwlock_unlock => rwlock::pthread_rwlock_unlock;
}
