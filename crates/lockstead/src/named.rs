//! Locks that know their name and where they were last taken.

#[cfg(feature = "check")]
use crate::check::Checked;
use crate::{Mutex, RwLock, Site};
use core::panic::Location;
use core::sync::atomic::{AtomicPtr, Ordering};
use lockstead_core::{Access, Hooks, LockId, Path};

/// A [`Mutex`] with a name and the place of its latest acquisition, for the
/// messages of recursive locking and for your own. 16 bytes more than an
/// ordinary mutex of the same data, and one more store in each acquisition.
pub type NamedMutex<T> = Mutex<T, Named>;

/// A [`RwLock`] with a name and the place of its latest acquisition, by
/// whichever of its readers and writers.
pub type NamedRwLock<T> = RwLock<T, Named>;

/// The hooks behind [`NamedMutex`] and [`NamedRwLock`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Named;

/// The name and the last place that [`Named`] keeps in each lock.
pub struct Label {
    name: Option<&'static str>,
    /// The place where it was last acquired, which each holder writes after it acquired; null: not
    /// acquired so far.
    acquired_at: AtomicPtr<Location<'static>>,
    #[cfg(feature = "check")]
    lock: crate::check::CheckedLock,
}

impl Label {
    pub(crate) const fn new(name: Option<&'static str>) -> Self {
        Label {
            name,
            acquired_at: AtomicPtr::new(core::ptr::null_mut()),
            #[cfg(feature = "check")]
            lock: crate::check::CheckedLock::new(name, None),
        }
    }

    /// Says that it is the label of a reader-writer lock, to whoever checks.
    #[cfg_attr(not(feature = "check"), allow(unused_mut, reason = "nobody is told"))]
    const fn reader_writer(mut self) -> Self {
        #[cfg(feature = "check")]
        self.lock.reads_and_writes();
        self
    }
}

impl Hooks for Named {
    type Waits = lockstead_core::Standard;
    type State = Label;
    const NEW: Label = Label::new(None);

    #[inline(always)]
    fn acquired(label: &Label, lock: LockId, access: Access, path: Path, site: Site) {
        label.acquired_at.store(core::ptr::from_ref(site).cast_mut(), Ordering::Relaxed);
        #[cfg(feature = "check")]
        Checked::acquired(&label.lock, lock, access, path, site);
        #[cfg(not(feature = "check"))]
        let _ = (lock, access, path);
    }

    #[cfg(feature = "check")]
    #[track_caller]
    fn will_acquire(label: &Label, id: LockId, access: Access, subclass: u32, site: Site) {
        Checked::will_acquire(&label.lock, id, access, subclass, site);
    }

    #[cfg(feature = "check")]
    #[track_caller]
    fn will_wait(label: &Label, id: LockId, endless: bool) {
        Checked::will_wait(&label.lock, id, endless);
    }

    #[cfg(feature = "check")]
    fn abandoned(label: &Label, id: LockId, site: Site) {
        Checked::abandoned(&label.lock, id, site);
    }

    #[cfg(feature = "check")]
    fn releasing(label: &Label, id: LockId) {
        Checked::releasing(&label.lock, id);
    }

    fn name(label: &Label) -> Option<&'static str> {
        label.name
    }

    fn acquired_at(label: &Label) -> Option<Site> {
        let site = label.acquired_at.load(Ordering::Relaxed);
        // SAFETY: null, or `acquired` made it from a `&'static Location`, a constant of the program
        // that nobody writes.
        unsafe { site.as_ref() }
    }
}

impl<T> NamedMutex<T> {
    /// Creates a free mutex that guards `value` and is called `name` in messages.
    ///
    /// ```
    /// use lockstead::NamedMutex;
    ///
    /// static CACHE: NamedMutex<Vec<u32>> = NamedMutex::named("cache", Vec::new());
    /// CACHE.lock().push(1);
    /// assert_eq!(CACHE.name(), Some("cache"));
    /// assert_eq!(CACHE.acquired_at().unwrap().file(), file!());
    /// ```
    pub const fn named(name: &'static str, value: T) -> Self {
        Mutex::with_hooks(Label::new(Some(name)), value)
    }
}

impl<T: ?Sized> NamedMutex<T> {
    /// Returns where the mutex was last acquired; `None` if it never was. That is the current
    /// holder's place, if there is one, up to a race with its acquisition.
    #[must_use]
    pub fn acquired_at(&self) -> Option<Site> {
        Named::acquired_at(self.hook_state())
    }
}

impl<T> NamedRwLock<T> {
    /// Creates a free lock that guards `value` and is called `name` in messages.
    ///
    /// ```
    /// use lockstead::NamedRwLock;
    ///
    /// static ROUTES: NamedRwLock<Vec<&str>> = NamedRwLock::named("routes", Vec::new());
    /// ROUTES.write().push("/");
    /// assert_eq!(ROUTES.name(), Some("routes"));
    /// ```
    pub const fn named(name: &'static str, value: T) -> Self {
        RwLock::with_hooks(Label::new(Some(name)).reader_writer(), value)
    }
}

impl<T: ?Sized> NamedRwLock<T> {
    /// Returns where the lock was last acquired; `None` if it never was.
    #[must_use]
    pub fn acquired_at(&self) -> Option<Site> {
        Named::acquired_at(self.hook_state())
    }
}
