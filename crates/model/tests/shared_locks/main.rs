//! Models of the locks that survive their holders: participants are killed before each of
//! their steps.

#[path = "../common/mod.rs"]
mod common;
#[path = "../labels/mod.rs"]
mod labels;

/// Declares copies of the core (see `build/shared.rs`) in the module where this stands, each
/// with models beside it; sleepers trust the machine for so long.
macro_rules! cores {
    (in $place:ident, trust $trust:tt, $models:tt; $($core:ident),+ $(,)?) => {
        $(cores!(one $place, $trust, $models, $core);)+
    };
    (one $place:ident, $trust:tt, [$($model:ident $models:literal),+], $core:ident) => {
        #[allow(warnings, clippy::all, clippy::undocumented_unsafe_blocks, reason = "broken")]
        mod $core {
            include!(concat!(env!("OUT_DIR"), "/", stringify!($core), ".rs"));
            $(
                pub mod $model {
                    include!($models);
                }
            )+
        }

        lockstead_model::platform!(crate::$place::$core);
        cores!(robust $trust, crate::$place::$core);
    };
    (robust None, $($core:tt)+) => { lockstead_model::robust!($($core)+); };
    (robust $nanos:tt, $($core:tt)+) => { lockstead_model::robust!(trust $nanos, $($core)+); };
}

/// Tests that scenarios, of the models of a core, fail with a broken one, and how.
macro_rules! misses {
    ($($name:ident: $core:ident, $kind:pat, $config:expr, { $($scenario:tt)+ })+) => {
        $(
            #[test]
            fn $name() {
                use $core::model::*;
                match ($($scenario)+).check(&$config) {
                    Ok(stats) => panic!("{} is not missed: {stats}", stringify!($core)),
                    Err(failure) => {
                        assert!(matches!(failure.kind, $kind), "{}: {failure}", stringify!($core));
                        println!("{}: after {} executions", stringify!($core), failure.executions);
                    }
                }
            }
        )+
    };
}

mod broken;
mod condvar;
mod mixed;
mod mutex;
mod orderings;
mod rwlock;
mod semaphore;
mod unmarked;

use lockstead_model::Config;

/// At most so many are killed.
fn killing(most: u32) -> Config {
    Config::new().merged().kills(most)
}
