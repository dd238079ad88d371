//! The values of the flags of measurements, from their text forms.

use clap::Args;
use lockstead_bench::explain::Ingredient;
use lockstead_bench::ww::{self, WwScheme};
use lockstead_bench::{Error, LockName, MAX_HOGS, MAX_QUOTA, MIN_QUOTA, contended, shared, vfs};
pub(crate) use lockstead_render::values::{ValueList, seconds};
use lockstead_render::values::{list, whole};
use std::time::Duration;

/// Returns what the measuring library finds wrong, without its own name of the option.
fn reason(error: Error) -> String {
    match error {
        Error::Option { given, allowed, .. } => {
            format!("`{given}` is not possible; allowed: {allowed}")
        }
        error => error.to_string(),
    }
}

/// Parses a number of tasks.
pub(crate) fn tasks(text: &str) -> Result<usize, String> {
    whole(text, vfs::MAX_TASKS)
}

/// Parses a list of numbers of threads.
pub(crate) fn threads(text: &str) -> Result<ValueList<usize>, String> {
    list(text, |item| whole(item, contended::MAX_THREADS))
}

/// Parses a list of numbers of locks that a turn takes.
pub(crate) fn take(text: &str) -> Result<ValueList<usize>, String> {
    list(text, |item| whole(item, ww::MAX_TAKE))
}

/// Parses a list of numbers of locks in all.
pub(crate) fn ww_locks(text: &str) -> Result<ValueList<usize>, String> {
    list(text, |item| whole(item, ww::MAX_LOCKS))
}

/// Parses a list of ways to take several locks.
pub(crate) fn schemes(text: &str) -> Result<ValueList<WwScheme>, String> {
    list(text, |item| {
        WwScheme::ALL.into_iter().find(|scheme| scheme.name() == item).ok_or_else(|| {
            let names = WwScheme::ALL.map(WwScheme::name).join(", ");
            format!("`{item}` is not possible; allowed: {names}")
        })
    })
}

/// Parses a list of numbers of processes.
pub(crate) fn processes(text: &str) -> Result<ValueList<usize>, String> {
    list(text, |item| whole(item, shared::contended::MAX_PROCESSES))
}

/// Parses a number of workers in a storm.
pub(crate) fn storm_processes(text: &str) -> Result<usize, String> {
    whole(text, shared::storm::MAX_PROCESSES)
}

/// Parses a number of threads of a worker in a storm.
pub(crate) fn storm_threads(text: &str) -> Result<usize, String> {
    whole(text, shared::storm::MAX_THREADS)
}

/// Parses a number of locks in a storm.
pub(crate) fn storm_locks(text: &str) -> Result<usize, String> {
    whole(text, shared::storm::MAX_LOCKS)
}

/// Parses kinds of locks in a storm.
pub(crate) fn storm_kinds(text: &str) -> Result<ValueList<shared::storm::StormLockKind>, String> {
    let all = shared::storm::StormLockKind::ALL;
    if text.trim() == "all" {
        return Ok(ValueList(all.to_vec()));
    }
    list(text, |item| {
        all.into_iter().find(|kind| kind.name() == item).ok_or_else(|| {
            let names = all.map(|kind| kind.name()).join(", ");
            format!("`{item}` is not possible; allowed: {names}, or all")
        })
    })
}

/// Parses where the workers of a storm live.
pub(crate) fn storm_namespaces(text: &str) -> Result<shared::storm::Namespacing, String> {
    match text {
        "each" => Ok(shared::storm::Namespacing::Each),
        "several" => Ok(shared::storm::Namespacing::Several),
        _ => Err(format!("`{text}` is not possible; allowed: each, several")),
    }
}

/// Parses a number of locks that a process holds when it is killed.
pub(crate) fn dead_locks(text: &str) -> Result<usize, String> {
    whole(text, shared::dead::MAX_LOCKS)
}

/// Parses a number of busy processes beside a run.
pub(crate) fn hogs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number <= MAX_HOGS => Ok(number),
        _ => Err(format!("`{text}` is not possible; allowed: a whole number from 0 to {MAX_HOGS}")),
    }
}

/// Parses a processor quota in per cent of one processor.
pub(crate) fn quota(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse() {
        Ok(percent) if (MIN_QUOTA..=MAX_QUOTA).contains(&percent) => Ok(percent),
        _ => Err(format!(
            "`{text}` is not possible; allowed: whole per cent of one processor from {MIN_QUOTA} to \
             {MAX_QUOTA}"
        )),
    }
}

/// Parses how long, and in which sections, a holder sleeps.
pub(crate) fn sleep(text: &str) -> Result<contended::Sleep, String> {
    contended::parse_sleep(text).map_err(reason)
}

/// Parses a list of ingredients of the contended mutex.
pub(crate) fn ingredients(text: &str) -> Result<ValueList<Ingredient>, String> {
    list(text, |item| {
        Ingredient::MUTEX.into_iter().find(|ingredient| ingredient.name() == item).ok_or_else(
            || {
                let names = Ingredient::MUTEX.map(Ingredient::name).join(", ");
                format!("`{item}` is not possible; allowed: {names}")
            },
        )
    })
}

/// Returns what `--ingredients` takes, for its help.
pub(crate) fn ingredients_help() -> String {
    let names = Ingredient::MUTEX.map(Ingredient::name).join(", ");
    format!("Only these ingredients, in this order; of {names} [default: all]")
}

/// Parses a list of critical sections.
pub(crate) fn sections(text: &str) -> Result<ValueList<Duration>, String> {
    list(text, |item| contended::parse_section(item).map_err(reason))
}

/// Parses a list of think times.
pub(crate) fn thinks(text: &str) -> Result<ValueList<f64>, String> {
    list(text, |item| contended::parse_think(item).map_err(reason))
}

/// Parses a list of locks that are built in.
fn locks(text: &str) -> Result<ValueList<LockName>, String> {
    list(text, |item| {
        let lock: LockName = item.parse().map_err(|unknown| format!("{unknown}"))?;
        lock.bytes().map_err(reason)?;
        Ok(lock)
    })
}

/// Returns what `--locks` takes, for its help.
fn locks_help() -> String {
    let names =
        |locks: &[LockName]| locks.iter().map(|lock| lock.name()).collect::<Vec<_>>().join(", ");
    // What can be loaded is not asked: every command has this text made.
    let (built_in, absent): (Vec<LockName>, Vec<LockName>) =
        LockName::ALL.iter().partition(|&&lock| lockstead_bench::locks::is_built_in(lock));
    let mut help =
        format!("Only these locks, in this order; of {} [default: all]", names(&built_in));
    if !absent.is_empty() {
        help += &format!(". Not in this build: {}; name one to learn why", names(&absent));
    }
    help
}

/// The flag `--locks` of all benchmarks.
#[derive(Debug, Args)]
pub(crate) struct LocksFlag {
    #[arg(long, value_name = "LIST", value_parser = locks, help = locks_help())]
    pub(crate) locks: Option<ValueList<LockName>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_take_the_usual_units() {
        for (text, ns) in
            [("0", 0), ("50ns", 50), ("1us", 1_000), ("1µs", 1_000), ("20ms", 20_000_000)]
        {
            let expected = ValueList(vec![Duration::from_nanos(ns)]);
            assert_eq!(sections(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn nonsense_in_a_list_is_refused_with_what_is_allowed() {
        for text in ["50", "-1us", "us", "1parsec", "1000years", "9999999999999999999s", "", "1us,"]
        {
            let error = sections(text).expect_err(text);
            assert!(error.contains("allowed"), "{text}: {error}");
        }
        for text in ["x", "-1x", "NaNx", "infx", "1e9x", ""] {
            let error = thinks(text).expect_err(text);
            assert!(error.contains("allowed"), "{text}: {error}");
        }
        for text in ["", ",", "2,", "2,,4", "0", "1025", "99999999999999999999", "-1"] {
            let error = threads(text).expect_err(text);
            assert!(error.contains("allowed"), "{text}: {error}");
        }
    }

    #[test]
    fn a_list_holds_nothing_twice() {
        assert_eq!(threads("2,4, 16"), Ok(ValueList(vec![2, 4, 16])));
        assert!(threads("2,2").is_err());
        assert!(sections("1us,1000ns").is_err(), "the same length in two units");
        assert!(thinks("0,0x").is_err());
        assert!(locks("std,std").is_err());
    }

    #[test]
    fn locks_are_known_by_name() {
        assert_eq!(locks("std,lockstead"), Ok(ValueList(vec![LockName::Std, LockName::Lockstead])));
        for text in ["", "Std", "mutex", "std,"] {
            let error = locks(text).expect_err(text);
            assert!(error.contains("semaphore-classic"), "{text}: {error}");
        }
    }

    #[test]
    fn a_lock_that_is_not_built_in_is_refused_with_the_reason() {
        for (lock, why) in lockstead_bench::locks::unavailable() {
            assert_eq!(locks(lock.name()), Err(why));
        }
    }

    #[test]
    fn quotas_and_sleeps_say_what_is_allowed() {
        assert_eq!(quota("50"), Ok(50));
        assert_eq!(quota("150%"), Ok(150));
        for text in ["", "0", "-1", "half", "100001", "1.5"] {
            assert!(quota(text).expect_err(text).contains("from 1 to 100000"), "{text}");
        }
        let ms = Duration::from_millis(1);
        assert_eq!(sleep("1ms"), Ok(contended::Sleep { length: ms, every: 1 }));
        assert_eq!(sleep("1000us:100"), Ok(contended::Sleep { length: ms, every: 100 }));
        for text in ["", "0", "0s", "1", "1s", "1ms:", "1ms:0", "1ms:x", ":3", "-1ms"] {
            assert!(sleep(text).expect_err(text).contains("allowed"), "{text}");
        }
    }

    #[test]
    fn schemes_are_known_by_name() {
        let two = ValueList(vec![WwScheme::WaitDie, WwScheme::OrderStd]);
        assert_eq!(schemes("wait-die,order-std"), Ok(two));
        for text in ["", "die", "order,order", "wait-die,"] {
            assert!(schemes(text).expect_err(text).contains("allowed"), "{text}");
        }
        assert_eq!(take("1,16"), Ok(ValueList(vec![1, 16])));
        assert!(take("17").is_err() && take("0").is_err());
        assert_eq!(ww_locks("4096"), Ok(ValueList(vec![4096])));
        assert!(ww_locks("4097").is_err());
    }

    #[test]
    fn ingredients_are_known_by_name() {
        assert_eq!(ingredients("queue,slow-unlocks").map(|list| list.0.len()), Ok(2));
        for text in ["", "owner", "Queue", "queue,queue"] {
            assert!(ingredients(text).expect_err(text).contains("allowed"), "{text}");
        }
    }
}
