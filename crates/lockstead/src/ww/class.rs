//! Classes of locks, and the contexts that acquire them.

use super::rules;
use core::fmt;
use core::panic::Location;
use lockstead_core::ww::{self as raw, CONTEXTS_PER_THREAD, Scheme};
use lockstead_linux::Linux;

/// Locks that are acquired together, and how their contexts settle who backs off.
pub struct Class {
    raw: raw::Class<Linux>,
    name: &'static str,
}

impl Class {
    /// Creates a class whose contexts are refused as soon as they hold locks and meet an older
    /// one.
    #[must_use]
    pub const fn wait_die(name: &'static str) -> Self {
        Class { raw: raw::Class::new(Scheme::WaitDie), name }
    }

    /// Creates a class whose contexts are refused when an older one has met them and they have to
    /// wait themselves, or when they hold locks and an older one waits for what they want.
    #[must_use]
    pub const fn wound_wait(name: &'static str) -> Self {
        Class { raw: raw::Class::new(Scheme::WoundWait), name }
    }

    /// Returns its name, for messages.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the scheme of its contexts.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.raw.scheme()
    }

    /// Begins to acquire. The context is older than all that begin later, and stays
    /// so however often it is refused: keep it until all its locks have been held.
    ///
    /// # Panics
    /// If the thread has [`CONTEXTS_PER_THREAD`] contexts already.
    #[track_caller]
    pub fn begin(&'static self) -> Context {
        match raw::Context::begin(&self.raw) {
            Some(raw) => Context {
                raw,
                class: self,
                rules: rules::RuleContext::begun(self, Location::caller()),
            },
            None => panic!(
                "a thread can have {CONTEXTS_PER_THREAD} contexts at a time, and begins another \
                 one, of class `{}`, at {}: drop one first, or acquire in one that there is",
                self.name,
                Location::caller()
            ),
        }
    }
}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Class").field("name", &self.name).field("scheme", &self.scheme()).finish()
    }
}

/// One thread's attempt to hold several locks of a class. Dropping it ends the
/// attempt; its guards cannot outlive it.
///
/// Stays on its thread:
///
/// ```compile_fail,E0277
/// static CLASS: lockstead::ww::Class = lockstead::ww::Class::wait_die("class");
/// let context = CLASS.begin();
/// std::thread::scope(|s| { s.spawn(move || drop(context)); });
/// ```
///
/// and outlives its guards:
///
/// ```compile_fail,E0505
/// use lockstead::ww::{Class, WwMutex};
/// static CLASS: Class = Class::wait_die("class");
/// let mutex = WwMutex::new(&CLASS, 0);
/// let context = CLASS.begin();
/// let guard = mutex.lock(&context);
/// drop(context);
/// drop(guard);
/// ```
#[must_use = "a context that is dropped has lost its age"]
pub struct Context {
    pub(super) raw: raw::Context<Linux>,
    class: &'static Class,
    pub(super) rules: rules::RuleContext,
}

impl Context {
    /// Notes that the context holds all its locks and will ask for no further one. Checked with the
    /// feature `check`; else it says something to the reader only.
    #[track_caller]
    pub fn done(&self) {
        self.rules.done(self, Location::caller());
    }

    /// Returns how many locks it holds.
    #[must_use]
    pub fn acquired(&self) -> u32 {
        self.raw.acquired()
    }

    /// Returns the class that it belongs to.
    #[must_use]
    pub fn class(&self) -> &'static Class {
        self.class
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.rules.ended(self);
        self.raw.finish();
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("class", &self.class.name)
            .field("stamp", &self.raw.stamp())
            .field("acquired", &self.acquired())
            .finish()
    }
}
