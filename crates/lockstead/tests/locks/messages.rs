//! Recursive locking panics with names and places; errors say what to do.

use crate::support::{Watchdog, panic_of};
use lockstead::{CancelToken, Cancelled, Interrupted, Mutex, NamedMutex, TimedOut};
use std::time::{Duration, Instant};

/// Gives this line, as messages show it.
macro_rules! here {
    () => {
        format!("{}:{}:", file!(), line!())
    };
}

#[test]
fn recursion_on_a_named_mutex_shows_the_name_and_both_places() {
    let _watchdog = Watchdog::new("recursion_on_a_named_mutex");
    let mutex = NamedMutex::named("cache", vec![1u8]);
    let (first, guard) = (here!(), mutex.lock());
    let mut second = String::new();
    #[rustfmt::skip]
    let message = panic_of(|| { second = here!(); mutex.lock().push(2) });
    assert!(message.starts_with("recursive locking"), "{message}");
    for part in ["`cache`", "alloc::vec::Vec<u8>", &first, &second] {
        assert!(message.contains(part), "{part} is missing in: {message}");
    }
    assert_ne!(first, second);
    drop(guard);
    assert_eq!(*mutex.lock(), [1], "the mutex works on");
}

#[test]
fn recursion_on_an_unnamed_mutex_shows_type_address_and_place() {
    let _watchdog = Watchdog::new("recursion_on_an_unnamed_mutex");
    let mutex = Mutex::new(1u16);
    let guard = mutex.lock();
    let mut second = String::new();
    #[rustfmt::skip]
    let message = panic_of(|| { second = here!(); drop(mutex.lock()) });
    let address = format!("{:p}", &raw const mutex);
    for part in ["u16", &address, &second, "named locks only"] {
        assert!(message.contains(part), "{part} is missing in: {message}");
    }
    drop(guard);
}

#[test]
fn every_waiting_form_detects_recursion_and_shows_its_own_place() {
    let _watchdog = Watchdog::new("every_waiting_form_detects_recursion");
    let token = CancelToken::new();
    let hour = Duration::from_secs(3600);
    let mutex = NamedMutex::named("again", ());
    let guard = mutex.lock();
    #[rustfmt::skip]
    let calls: [(String, &dyn Fn()); 7] = [
        (here!(), &|| drop(mutex.lock())),
        (here!(), &|| drop(mutex.lock_timeout(hour))),
        (here!(), &|| drop(mutex.lock_until(Instant::now() + hour))),
        (here!(), &|| drop(mutex.lock_interruptible())),
        (here!(), &|| drop(mutex.lock_killable(&token))),
        (here!(), &|| drop(mutex.lock_nested(1))),
        (here!(), &|| drop(mutex.lock_interruptible_nested(1))),
    ];
    for (place, call) in calls {
        let message = panic_of(call);
        assert!(message.contains(&place), "{place} is missing in: {message}");
        assert!(message.contains("`again`"), "{message}");
    }
    assert!(mutex.try_lock().is_none(), "try_lock fails and does not panic");
    drop(guard);
    assert!(mutex.try_lock().is_some());
}

#[test]
fn a_named_mutex_keeps_the_place_of_the_latest_acquisition() {
    let mutex = NamedMutex::named("log", 0);
    assert!(mutex.acquired_at().is_none());
    let (line, guard) = (line!(), mutex.lock());
    let site = mutex.acquired_at().expect("acquired");
    assert_eq!((site.file(), site.line()), (file!(), line));
    drop(guard);
    let (line, guard) = (line!(), mutex.try_lock());
    assert_eq!(mutex.acquired_at().map(|site| site.line()), Some(line));
    drop(guard);
}

#[test]
fn errors_say_what_happened_and_what_to_do() {
    let errors: [(&dyn std::error::Error, &str); 3] =
        [(&TimedOut, "timed out"), (&Interrupted, "signal handler"), (&Cancelled, "cancelled")];
    for (error, what) in errors {
        let text = error.to_string();
        assert!(text.contains(what) && text.contains("nothing was acquired; "), "{text}");
    }
}
