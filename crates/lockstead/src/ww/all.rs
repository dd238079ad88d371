//! Several locks at once, with all the backing off done.

use super::{Context, Error, WwGuard, WwMutex};
use core::fmt;

/// The reason for which [`lock_all`] holds nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LockAllError {
    /// The same lock stands at these two places of the list.
    Duplicate {
        /// The first of the two places.
        first: usize,
        /// The second of the two places.
        second: usize,
    },
    /// The context held the lock at this place before the call.
    Already {
        /// The place of the lock in the list.
        index: usize,
    },
    /// The context held other locks before the call, which `lock_all` cannot
    /// release, and must back off: drop their guards, take the lock at this place
    /// by [`WwMutex::lock_slow`], and begin again.
    Deadlock {
        /// The place of the lock in the list.
        index: usize,
    },
}

impl fmt::Display for LockAllError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockAllError::Duplicate { first, second } => write!(
                f,
                "the locks number {first} and {second} of the list (from 0) are the same one: \
                 leave one out"
            ),
            LockAllError::Already { index } => write!(
                f,
                "the context holds lock number {index} of the list (from 0) already: leave it out"
            ),
            LockAllError::Deadlock { index } => write!(
                f,
                "the context must back off at lock number {index} of the list (from 0), and held \
                 other locks before: drop their guards, take that lock by lock_slow, then begin \
                 again"
            ),
        }
    }
}

impl std::error::Error for LockAllError {}

/// Acquires all these locks in a context, whatever it takes. It waits; and where it is refused a
/// lock, it releases the others, waits for that one, and begins again. The guards are in the order
/// of the list. Allocates. The caller holds either all locks or none when it returns.
///
/// ```
/// use lockstead::ww::{Class, WwMutex, lock_all};
///
/// static ACCOUNTS: Class = Class::wait_die("accounts");
/// let (from, to) = (WwMutex::new(&ACCOUNTS, 100), WwMutex::new(&ACCOUNTS, 0));
///
/// let context = ACCOUNTS.begin();
/// let mut guards = lock_all(&context, &[&from, &to])?;
/// *guards[0] -= 30;
/// *guards[1] += 30;
/// # drop(guards);
/// # Ok::<(), lockstead::ww::LockAllError>(())
/// ```
///
/// # Errors
/// [`LockAllError::Duplicate`] before any lock is taken; the others, see there,
/// only for a context that holds locks already.
///
/// # Panics
/// As [`WwMutex::lock`].
#[track_caller]
pub fn lock_all<'a, T: ?Sized>(
    context: &'a Context,
    locks: &[&'a WwMutex<T>],
) -> Result<Vec<WwGuard<'a, T>>, LockAllError> {
    if let Some((first, second)) = duplicate(locks) {
        return Err(LockAllError::Duplicate { first, second });
    }
    let before = context.acquired();
    let mut guards: Vec<Option<WwGuard<'a, T>>> = Vec::new();
    guards.resize_with(locks.len(), || None);
    'again: loop {
        for (index, lock) in locks.iter().enumerate() {
            if guards[index].is_some() {
                continue;
            }
            match lock.lock(context) {
                Ok(guard) => guards[index] = Some(guard),
                Err(Error::Deadlock) => {
                    guards.iter_mut().for_each(|guard| *guard = None);
                    if before != 0 {
                        return Err(LockAllError::Deadlock { index });
                    }
                    guards[index] = Some(lock.lock_slow(context));
                    continue 'again;
                }
                Err(Error::Already) => return Err(LockAllError::Already { index }),
                Err(Error::Interrupted | Error::TimedOut) => {
                    unreachable!("nothing but the lock ends the wait")
                }
            }
        }
        return Ok(guards.into_iter().flatten().collect());
    }
}

/// Finds two places of the list with the same lock, if there are any.
fn duplicate<T: ?Sized>(locks: &[&WwMutex<T>]) -> Option<(usize, usize)> {
    let mut places: Vec<(usize, usize)> =
        locks.iter().enumerate().map(|(index, lock)| (lock.address(), index)).collect();
    places.sort_unstable();
    let same = places.windows(2).find(|two| two[0].0 == two[1].0)?;
    Some((same[0].1, same[1].1))
}
