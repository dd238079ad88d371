//! Cores with one line broken (see `build.rs`), and that the models notice.

/// Declares the broken cores, each with the policies of the models.
macro_rules! cores {
    ($($name:ident),+ $(,)?) => {
        $(
            #[allow(warnings, clippy::all, clippy::undocumented_unsafe_blocks, reason = "broken")]
            mod $name {
                include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".rs"));

                /// As in `common`, for this core.
                pub mod policies {
                    use super::{Policy, Slot};
                    use crate::common::NEVER;
                    policies!();
                }
            }

            lockstead_model::platform!(crate::$name);
            lockstead_model::fences!(crate::$name);
        )+

        /// The core as it ships, in the shape of a broken one.
        mod shipped {
            #[allow(unused_imports, reason = "each test program uses a part")]
            pub(crate) use lockstead_core::{biased, hooks, mutex, platform};
            pub(crate) use crate::common as policies;
        }
    };
}

/// Checks that `$scenario`, a macro that makes it of a core and perhaps a policy, fails
/// with the broken core only.
macro_rules! missed {
    ($scenario:ident, $policy:ident, $core:ident, $kind:pat, $config:expr) => {
        let shipped = $scenario!(shipped, $policy).check(&$config);
        missed!(in $core, shipped, $scenario!($core, $policy).check(&$config), $kind)
    };
    ($scenario:ident, $core:ident, $kind:pat, $config:expr) => {
        let shipped = $scenario!(shipped).check(&$config);
        missed!(in $core, shipped, $scenario!($core).check(&$config), $kind)
    };
    (in $core:ident, $shipped:expr, $broken:expr, $kind:pat) => {
        let stats = $shipped.expect("correct as shipped");
        println!("{}: {stats}", stringify!($core));
        match $broken {
            Ok(stats) => panic!("{}: {stats}", stringify!($core)),
            Err(failure) => assert!(matches!(failure.kind, $kind), "{failure}"),
        }
    };
}
