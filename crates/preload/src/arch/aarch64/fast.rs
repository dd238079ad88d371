//! On aarch64 there is no [`fast`](mod@crate::fast) path: each call goes to Rust, which records the same.

/// Exports functions that are `slow` each time, as the macro of [`fast`](mod@crate::fast).
#[macro_export]
macro_rules! fast_acquire {
    ($($name:ident: $real:ident, $flags:tt $(unless $byte:literal & $mask:literal)?
        $(marked $mark:literal shared $shared:literal $is_shared:literal)?
        => $slow:path, $tried:path;)*) => { $(
        $crate::jumping_frame! {
            /// Stands before glibc's function of this name.
            ///
            /// # Safety
            /// As of the function of this name.
            #[cfg_attr(feature = "shared-object", unsafe(no_mangle))]
            pub $name => $slow
        }
        // Where a fast path goes on that has tried.
        const _: unsafe extern "C" fn() = $tried;
    )* };
}

/// Exports functions that are `slow` each time, as the macro of [`fast`](mod@crate::fast).
#[macro_export]
macro_rules! fast_release {
    ($($name:ident: $real:ident $(as $kind:tt)? => $slow:path;)*) => { $(
        $crate::thunk_frame! {
            /// Stands before glibc's function of this name.
            ///
            /// # Safety
            /// As of the function of this name.
            #[cfg_attr(feature = "shared-object", unsafe(no_mangle))]
            pub $name(1) => $slow
        }
    )* };
}
