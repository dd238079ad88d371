//! The mutex that remembers panics.

use crate::support::{Watchdog, panic_of};
use lockstead::poison::{Mutex, TryLockError};
use lockstead::{CancelToken, Cancelled, TimedOut};
use std::thread;
use std::time::{Duration, Instant};

fn poisoned() -> Mutex<Vec<u8>> {
    let mutex = Mutex::new(vec![1]);
    panic_of(|| {
        let mut guard = mutex.lock().expect("not poisoned yet");
        guard.push(2);
        panic!("{} half way", guard.len());
    });
    mutex
}

#[test]
fn a_panic_of_the_holder_poisons_and_releases() {
    let mut mutex = poisoned();
    assert!(mutex.is_poisoned() && !mutex.is_locked());
    assert_eq!(*mutex.lock().expect_err("poisoned").into_inner(), [1, 2]);
    assert_eq!(mutex.get_mut().expect_err("poisoned").into_inner(), &[1, 2]);
    assert!(format!("{mutex:?}").starts_with("Mutex { poisoned: true"));
    mutex.clear_poison();
    assert_eq!(*mutex.lock().expect("cleared"), [1, 2]);
    assert_eq!(mutex.into_inner().expect("cleared"), [1, 2]);
    assert!(poisoned().into_inner().is_err());
}

#[test]
fn every_form_reports_poison_with_the_guard() {
    let mutex = poisoned();
    let hour = Duration::from_secs(3600);
    let token = CancelToken::new();
    assert!(matches!(mutex.try_lock(), Err(TryLockError::Poisoned(_))));
    assert!(mutex.lock_timeout(hour).expect("free").is_err());
    assert!(mutex.lock_until(Instant::now() + hour).expect("free").is_err());
    assert!(mutex.lock_interruptible().expect("free").is_err());
    assert!(mutex.lock_killable(&token).expect("free").is_err());
    assert!(!mutex.is_locked());
}

#[test]
fn a_held_mutex_gives_up_as_the_plain_one_does() {
    let _watchdog = Watchdog::new("a_held_mutex_gives_up_as_the_plain_one_does");
    let mutex = Mutex::from(0);
    let guard = mutex.lock().expect("fresh");
    assert!(mutex.owner().is_some_and(lockstead::Owner::is_current));
    thread::scope(|s| {
        s.spawn(|| {
            let token = CancelToken::new();
            token.cancel();
            assert!(matches!(mutex.try_lock(), Err(TryLockError::WouldBlock)));
            assert_eq!(mutex.lock_timeout(Duration::from_millis(1)).err(), Some(TimedOut));
            assert_eq!(mutex.lock_killable(&token).err(), Some(Cancelled));
        });
    });
    drop(guard);
    assert!(!mutex.is_poisoned());
}

/// Locking in a destructor that runs because of a panic elsewhere is no
/// failure of that critical section.
#[test]
fn a_panic_from_before_the_section_does_not_poison() {
    struct OnDrop<'a>(&'a Mutex<u32>);
    impl Drop for OnDrop<'_> {
        fn drop(&mut self) {
            *self.0.lock().expect("not poisoned") += 1;
        }
    }
    let mutex = Mutex::new(0);
    panic_of(|| {
        let _on_drop = OnDrop(&mutex);
        panic!("{}", "elsewhere");
    });
    assert!(!mutex.is_poisoned());
    assert_eq!(mutex.into_inner().expect("not poisoned"), 1);
}
