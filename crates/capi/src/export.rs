//! How a lock type and its functions become known to C.

/// Declares `lks_x(Raw)`, a type of C over one of Rust, with its size and alignment in bytes.
macro_rules! c_type {
    ($(#[$doc:meta])* $name:ident($raw:ty): $bytes:literal, $align:literal) => {
        $(#[$doc])*
        #[allow(non_camel_case_types, reason = "the type's name in C")]
        #[repr(transparent)]
        #[derive(Debug)]
        pub struct $name(pub(crate) $raw);

        const _: () = assert!(size_of::<$name>() == $bytes && align_of::<$name>() == $align);
    };
}

/// Defines inline functions of the headers once more, for languages that cannot use a header.
/// Each calls a function that has the same contract.
macro_rules! also {
    ($(fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? $body:block)+) => {$(
        #[doc = concat!("Does what the inline `", stringify!($name), "` of the headers does.")]
        ///
        /// # Safety
        /// As the header says (CAPI-HOLDER, CAPI-HOW).
        #[allow(unused_unsafe, reason = "some of the functions called are safe")]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $type),*) $(-> $result)? {
            // SAFETY: CAPI-HOLDER and CAPI-HOW, which the program keeps for this name as for the
            // functions that the body calls.
            unsafe { $body }
        }
    )+};
}

/// Defines the functions by which C ends a lock: nothing of a lock but its name outlives it.
macro_rules! destroy {
    ($($name:ident($lock:ty);)+) => {$(
        #[doc = concat!("Ends a `", stringify!($lock), "`, of which only the name has to go.")]
        #[unsafe(no_mangle)]
        extern "C" fn $name(lock: *const $lock) {
            crate::names::forget(lock.addr());
        }
    )+};
}

pub(crate) use {also, c_type, destroy};
