//! Threads that come to a lock when they are told to, free its memory as soon as they have it, and
//! say how far they are.

use crate::frame::give_up;
use lockstead_core::{Atomic32, LockError, Ordering, Platform, WaitBounds};
use lockstead_linux::Linux;
use std::ffi::c_void;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread::{Thread, park, yield_now};
use std::time::{Duration, Instant};

/// One way to take locks of a kind.
pub(crate) trait Take: 'static {
    type Lock: Sync;
    type Hold;
    /// Whether those that wait come before the first holder.
    const COMES_LATER: bool = false;

    /// Makes a free lock, or for one that is done once, one of which nothing is done.
    fn fresh() -> Self::Lock;
    fn lock(lock: &Self::Lock, how: &WaitBounds<'_, Linux>) -> Result<Self::Hold, LockError>;
    fn try_lock(lock: &Self::Lock) -> Option<Self::Hold>;
    /// Releases the lock.
    ///
    /// # Safety
    /// The calling thread holds the lock, and got `hold` with it.
    unsafe fn unlock(lock: &Self::Lock, hold: Self::Hold);
}

/// The way a visitor comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Visit {
    /// It waits as long as it takes.
    Waits = 1,
    /// It tries once and goes on.
    Tries,
    /// It waits for so short a time that it often gives up.
    Hurries,
    /// It waits until it is cancelled.
    MayBeCancelled,
    /// It waits, and keeps the lock until the first holder is through.
    Keeps,
}

/// The time of a visitor that hurries, in nanoseconds.
const SHORT: u64 = 30_000;
/// What a visitor is told when no more visits follow.
const LEAVE: u32 = 99;

/// How far a visitor is.
const AWAITS_ORDERS: u32 = 0;
const TOLD: u32 = 1;
const BEGUN: u32 = 2;
const HAS_IT: u32 = 3;

/// A page with a lock in it, which its last visitor frees.
pub(crate) struct Page<L> {
    at: *mut L,
    /// Visitors that are expected, or have not gone again.
    pub(crate) expected: AtomicU32,
    /// Whether whoever held the lock first has come out of its release.
    pub(crate) through: AtomicBool,
}

// SAFETY: what lies there may be used by several threads.
unsafe impl<L: Sync> Sync for Page<L> {}

const PAGE: usize = 4096;

impl<L> Page<L> {
    pub(crate) fn new() -> Self {
        assert!(size_of::<L>() <= PAGE);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            libc::mmap(std::ptr::null_mut(), PAGE, protection, kind, -1, 0)
        };
        assert_ne!(at, libc::MAP_FAILED);
        let (expected, through) = (AtomicU32::new(0), AtomicBool::new(false));
        Page { at: at.cast(), expected, through }
    }

    /// Puts a fresh lock there. Nobody uses the former one.
    pub(crate) fn renew(&self, lock: L) {
        // SAFETY: the page is mapped, and locks need not be dropped.
        unsafe { self.at.write(lock) };
        self.through.store(false, SeqCst);
    }

    pub(crate) fn lock(&self) -> &L {
        // SAFETY: `renew` has put a lock there before anybody asks for it.
        unsafe { &*self.at }
    }

    /// Has every access to the lock fault, or none.
    fn protect(&self, frees: bool) {
        let rights = if frees { libc::PROT_NONE } else { libc::PROT_READ | libc::PROT_WRITE };
        // SAFETY: the page is this one's own.
        assert_eq!(unsafe { libc::mprotect(self.at.cast::<c_void>(), PAGE, rights) }, 0);
    }

    /// Has every access to the lock fault until the first holder has come out of its release.
    /// The caller has the lock, and nobody else uses it. `freed` is called meanwhile.
    pub(crate) fn free(&self, freed: impl FnOnce()) {
        self.protect(true);
        freed();
        eventually("the first holder is through", || self.through.load(SeqCst));
        self.protect(false);
    }
}

impl<L> Drop for Page<L> {
    fn drop(&mut self) {
        // SAFETY: nobody has a reference to what lies there any more.
        unsafe { libc::munmap(self.at.cast(), PAGE) };
    }
}

/// A thread that visits locks, as others see it.
pub(crate) struct Visitor {
    order: AtomicU32,
    stage: AtomicU32,
    cancel: <Linux as Platform>::U32,
    /// What the kernel says of the thread.
    state: Mutex<Option<(Thread, File)>>,
}

impl Visitor {
    pub(crate) fn new() -> Self {
        let none = || AtomicU32::new(0);
        Visitor { order: none(), stage: none(), cancel: Atomic32::ZERO, state: Mutex::new(None) }
    }

    /// Makes visits until there are no more orders.
    pub(crate) fn serve<V: Take>(&self, page: &Page<V::Lock>) {
        // SAFETY: `gettid` takes no argument and touches no memory.
        let path = format!("/proc/self/task/{}/stat", unsafe { libc::gettid() });
        let state = (std::thread::current(), File::open(path).expect("this thread"));
        *self.state.lock().expect("no panic") = Some(state);
        // Joining holds signals off, and takes its time.
        lockstead_linux::prepare();
        Linux::me();
        loop {
            let order = self.order.swap(0, SeqCst);
            let visit = match order {
                0 => {
                    park();
                    continue;
                }
                LEAVE => return,
                1 => Visit::Waits,
                2 => Visit::Tries,
                3 => Visit::Hurries,
                4 => Visit::MayBeCancelled,
                _ => Visit::Keeps,
            };
            self.visit::<V>(page, visit);
            page.expected.fetch_sub(1, SeqCst);
            self.stage.store(AWAITS_ORDERS, SeqCst);
        }
    }

    fn visit<V: Take>(&self, page: &Page<V::Lock>, visit: Visit) {
        let mut how = WaitBounds::FOREVER;
        match visit {
            Visit::Hurries => how.deadline = Some(Linux::now().after(SHORT)),
            Visit::MayBeCancelled => how.cancel = Some(&self.cancel),
            _ => {}
        }
        self.stage.store(BEGUN, SeqCst);
        let hold = match visit {
            Visit::Tries => V::try_lock(page.lock()),
            _ => match V::lock(page.lock(), &how) {
                Ok(hold) => Some(hold),
                Err(LockError::TimedOut | LockError::Cancelled) => None,
                Err(error) => give_up(&format!("{error:?}: {}\n", about())),
            },
        };
        let Some(hold) = hold else { return };
        // SAFETY: this thread has taken the lock, by `hold`.
        let unlock = || unsafe { V::unlock(page.lock(), hold) };
        if page.expected.load(SeqCst) == 1 {
            page.free(|| self.stage.store(HAS_IT, SeqCst));
        }
        self.stage.store(HAS_IT, SeqCst);
        if visit == Visit::Keeps {
            eventually("the first holder is through", || page.through.load(SeqCst));
        }
        unlock();
    }

    fn orders(&self, order: u32) {
        eventually("the visitor is there", || self.state.lock().expect("no panic").is_some());
        self.order.store(order, SeqCst);
        if let Some((thread, _)) = &*self.state.lock().expect("no panic") {
            thread.unpark();
        }
    }

    /// Sends the visitor, which has come from the visit before.
    pub(crate) fn comes(&self, visit: Visit) {
        self.cancel.store(0, Ordering::Relaxed);
        self.stage.store(TOLD, SeqCst);
        self.orders(visit as u32);
    }

    pub(crate) fn is_cancelled(&self) {
        self.cancel.store(1, Ordering::Relaxed);
        Linux::wake(Linux::address32(&self.cancel), u32::MAX);
    }

    pub(crate) fn leaves(&self) {
        self.orders(LEAVE);
    }

    pub(crate) fn is_back(&self) -> bool {
        self.stage.load(SeqCst) == AWAITS_ORDERS
    }

    /// Waits until the visitor can go no further, or sleeps.
    pub(crate) fn settles(&self) {
        eventually("the visitor has the lock, or sleeps", || match self.stage.load(SeqCst) {
            AWAITS_ORDERS | HAS_IT => true,
            TOLD => false,
            _ => {
                let mut stat = [0; 256];
                let state = self.state.lock().expect("no panic");
                let file = &state.as_ref().expect("it is there").1;
                let len = file.read_at(&mut stat, 0).expect("it lives");
                let text = &stat[..len];
                let name = text.iter().rposition(|&byte| byte == b')').expect("a name");
                let sleeps = text.get(name + 2) == Some(&b'S') && self.stage.load(SeqCst) == BEGUN;
                if !sleeps {
                    // The look costs more than all else, and takes the processor from the visitor.
                    std::thread::sleep(Duration::from_micros(10));
                }
                sleeps
            }
        });
    }
}

/// What is being tried, for the message of a failure.
static ABOUT: Mutex<String> = Mutex::new(String::new());

pub(crate) fn set_about(text: String) {
    *ABOUT.lock().expect("no panic") = text;
}

/// Ends the program, since somebody touches a lock that has been freed.
extern "C" fn faulted(_number: libc::c_int) {
    give_up(&format!("the lock is touched after it was freed: {}\n", about()));
}

pub(crate) fn about() -> String {
    ABOUT.try_lock().map_or_else(|_| "?".to_owned(), |text| text.clone())
}

/// Has a touch of freed memory say where it happened.
pub(crate) fn tell_of_faults() {
    // SAFETY: a zeroed action is valid; the handler does not return.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = faulted as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGSEGV, &raw const action, std::ptr::null_mut()), 0);
    }
}

/// Waits until `done`; ends the program after a minute.
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        if Instant::now() > end {
            give_up(&format!("not within a minute: {what}: {}\n", about()));
        }
        yield_now();
    }
}
