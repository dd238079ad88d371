//! Use without initialisation, of a copy, after destruction.
//!
//! # What tells it
//! The [`cookie`](super::cookie) where there is one, and else:
//!
//! | evidence | breach |
//! |---|---|
//! | a kind or a preference that no lock has | use without initialisation |
//! | a semaphore, a barrier without a cookie, of which no initialisation was seen | the same: they have no static initialiser. Not in a forked child, which its parent may have left them |
//! | a mutex with glibc's mark of a destroyed one | use after destruction |
//! | a spin lock that was destroyed by a call, and not initialised since | the same: it has no static initialiser |
//! | a condition variable that was destroyed, with glibc's mark of that | the same |
//!
//! A lock of zeroes is one that a static initialiser has made. Each use is looked
//! at once a thread and lock, and whenever a lock is not to be had at once.
//!
//! A lock that was in use and has lost its cookie was begun anew, by an assignment, or
//! in memory that is used again in a way that nobody sees: it is another lock.

use super::cookie::{Cookie, Mark};
use super::hush;
use super::note::Note;
use super::words::Words;
use crate::chain::{Nature, Place};
use crate::me::{Me, enter};
use crate::record::Call;
use crate::site::Site;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use lockstead_ledger::Birth;
use lockstead_ledger::breach::Rule;
use lockstead_ledger::lock::{Kind, Life, attribute};

/// Whether this process is a forked child.
static FORKED: AtomicBool = AtomicBool::new(false);

/// The process is a forked child.
pub fn forked() {
    FORKED.store(true, Relaxed);
}

/// See [`super::initialised`].
pub fn initialised(address: u64, kind: Kind, attributes: u16) {
    // SAFETY: the program has passed it to the function that it called.
    if let Some(cookie) = unsafe { Cookie::of(address, kind, attributes) } {
        plant(cookie, attributes);
    }
}

fn plant(cookie: Cookie, attributes: u16) {
    cookie.plant();
    if attributes & attribute::WRITERS_FIRST != 0 {
        // See `reader`.
        let _ = cookie.watch();
    }
}

/// See [`super::destroyed`].
pub fn destroyed(me: &Me, address: u64, kind: Kind, site: &Site) {
    let Some(lock) = me.ledger.find_lock(address).and_then(|index| me.ledger.lock(index)) else {
        return;
    };
    if hush::DESTROYED.take(address) {
        // It was held, and is no more.
        for thread in me.ledger.threads() {
            while thread.stack().revoke(address).is_some() {}
        }
    }
    // Its words say no more what it was.
    let (known, _, attributes) = lock.shape();
    if known != kind {
        return;
    }
    // SAFETY: the program has passed it to the function that it called, which
    // has not come back yet.
    let cookie = unsafe { Cookie::of(address, kind, attributes) };
    let (tid, stack) = (me.record().tid.load(Relaxed), me.stack(site));
    match cookie {
        Some(cookie) => cookie.destroy(tid, stack),
        None => Grave::of(address).fill(address, tid, stack),
    }
}

/// Where the latest of the locks without a cookie were destroyed.
struct Grave {
    address: AtomicU64,
    by: AtomicU64,
}

static GRAVES: [Grave; 256] =
    [const { Grave { address: AtomicU64::new(0), by: AtomicU64::new(0) } }; 256];

impl Grave {
    fn of(address: u64) -> &'static Grave {
        &GRAVES[(address >> 2) as usize % GRAVES.len()]
    }

    fn fill(&self, address: u64, tid: u32, stack: u32) {
        self.address.store(0, Relaxed);
        self.by.store(u64::from(tid) << 32 | u64::from(stack), Relaxed);
        self.address.store(address, Relaxed);
    }

    /// Thread and stack; zeroes if another lock lies there by now.
    fn read(&self, address: u64) -> Earlier {
        let by = self.by.load(Relaxed);
        let by = if self.address.load(Relaxed) == address { by } else { 0 };
        Earlier::Destroyed((by >> 32) as u32, by as u32)
    }
}

/// See [`super::fails`].
pub fn fails<N: Nature>(call: &Call<'_, N>) {
    if let Some(me) = enter() {
        let stack = me.stack(call.site);
        used(&me, call.target, &call.nature, stack);
    }
}

/// See [`super::first_use`].
pub fn first_use<N: Nature>(me: &Me, address: u64, nature: &N, stack: u32) {
    used(me, address, nature, stack);
}

/// See [`super::waits`].
pub fn waits<N: Nature>(me: &Me, call: &Call<'_, N>, place: Place) {
    used(me, call.target, &call.nature, place.stack);
}

/// Looks at a lock that is used at this stack; says whether it must not be.
pub fn used<N: Nature>(me: &Me, address: u64, nature: &N, stack: u32) -> bool {
    let (kind, mut attributes) = nature.nature();
    // SAFETY: the program passes it to the function that it calls.
    let words = unsafe { Words::read(kind, address) };
    // These do not say so themselves.
    if matches!(kind, Kind::Semaphore | Kind::Barrier) && words.is_shared() {
        attributes |= attribute::SHARED;
    }
    if words.is_sound() && !words.is_destroyed_mutex() {
        // SAFETY: as above.
        unsafe { me.ends_unseen(address, stack, (kind, attributes)) };
    }
    let Some((rule, earlier)) = judge(me, address, kind, attributes, &words) else { return false };
    let mut note = Note::new(rule, address, stack);
    match earlier {
        Earlier::Nothing => {
            me.use_lock(address, stack, (kind, attributes));
        }
        Earlier::Destroyed(tid, at) => {
            me.revive(address, stack);
            note = note.after(tid, at);
        }
        Earlier::Original(original) => {
            me.use_lock(address, stack, (kind, attributes));
            let other = me.ledger.find_lock(original).unwrap_or(0);
            let init = me.ledger.lock(other).map_or(0, |lock| lock.init_stack.load(Relaxed));
            note = note.after(0, init).with(other).number(original);
        }
    }
    me.note(&note);
    // Said once.
    // SAFETY: as above.
    if let Some(cookie) = unsafe { Cookie::of(address, kind, attributes) }
        && words.is_sound()
    {
        cookie.plant();
    }
    true
}

/// What a use collides with.
enum Earlier {
    Nothing,
    /// Its destruction, by this thread at this stack.
    Destroyed(u32, u32),
    /// The lock that it is a copy of.
    Original(u64),
}

fn judge(
    me: &Me,
    address: u64,
    kind: Kind,
    attributes: u16,
    words: &Words,
) -> Option<(Rule, Earlier)> {
    let found = me.ledger.find_lock(address);
    let life = found.and_then(|index| me.ledger.lock(index)).map(|lock| lock.shape().1);
    let was_destroyed = matches!(life, Some(Life::Destroyed));
    // SAFETY: as in `used`. A destroyed mutex has no attributes any more.
    let cookie = unsafe {
        let known = if words.is_destroyed_mutex() { 0 } else { attributes };
        Cookie::of(address, kind, known)
    };
    let mark = cookie.map_or(Mark::None, |cookie| cookie.read());
    if words.is_destroyed_mutex() {
        return match mark {
            Mark::Destroyed(tid, stack) => Some((Rule::Destroyed, Earlier::Destroyed(tid, stack))),
            _ if was_destroyed => Some((Rule::Destroyed, Earlier::Destroyed(0, 0))),
            _ if words.word(0) == u32::MAX => Some((Rule::Uninitialised, Earlier::Nothing)),
            _ => None,
        };
    }
    if !words.is_sound() {
        return Some((Rule::Uninitialised, Earlier::Nothing));
    }
    let ended = Some((Rule::Destroyed, Grave::of(address).read(address)));
    match kind {
        Kind::Spin if was_destroyed => return ended,
        Kind::Condition if was_destroyed && words.is_destroyed_condition() => return ended,
        _ => {}
    }
    let cookie = cookie?;
    match mark {
        Mark::Own => None,
        // A mutex without the mark of glibc's was begun anew in some way.
        Mark::Destroyed(..) if kind == Kind::Mutex => {
            cookie.plant();
            None
        }
        Mark::Destroyed(tid, stack) => Some((Rule::Destroyed, Earlier::Destroyed(tid, stack))),
        Mark::CopyOf(original) => Some((Rule::Copied, Earlier::Original(original))),
        Mark::None if matches!(kind, Kind::Mutex | Kind::RwLock) => {
            plant(cookie, attributes);
            None
        }
        Mark::None if found.is_some() || FORKED.load(Relaxed) => None,
        Mark::None => Some((Rule::Uninitialised, Earlier::Nothing)),
    }
}

impl Me {
    /// Whether another lock than the one that is known at `address` lives there, which
    /// begins a life then, as one that is used at `stack`.
    ///
    /// # Safety
    /// There is such a lock.
    pub unsafe fn ends_unseen(&self, address: u64, stack: u32, nature: (Kind, u16)) -> bool {
        let (kind, attributes) = nature;
        let Some(index) = self.ledger.find_lock(address) else { return false };
        let Some(lock) = self.ledger.lock(index) else { return false };
        let (known, life, before) = lock.shape();
        if !matches!(life, Life::Live) || [known, kind].contains(&Kind::Unknown) {
            return false;
        }
        let has_lost_it = || {
            // SAFETY: by the caller's promise. One that had no cookie has lost none.
            let cookie = unsafe { Cookie::of(address, kind, attributes | before) };
            cookie.is_some_and(|cookie| cookie.read() == Mark::None)
        };
        let is_other = match kind {
            _ if known != kind => true,
            Kind::Mutex | Kind::RwLock => has_lost_it(),
            _ => false,
        };
        if is_other {
            self.end_life(index, lock);
            self.use_lock(address, stack, nature);
            // SAFETY: by the caller's promise.
            let cookie = unsafe { Cookie::of(address, kind, attributes) };
            if let Some(cookie) = cookie.filter(|_| matches!(kind, Kind::Mutex | Kind::RwLock)) {
                plant(cookie, attributes);
            }
        }
        is_other
    }

    /// A lock that was destroyed is used: it begins a life, as what it was before.
    fn revive(&self, address: u64, stack: u32) {
        let Some(lock) = self.ledger.find_lock(address).and_then(|index| self.ledger.lock(index))
        else {
            return;
        };
        let (kind, _, attributes) = lock.shape();
        self.ledger.use_lock(&Birth {
            address,
            kind,
            attributes,
            init_stack: lock.init_stack.load(Relaxed),
            first_stack: stack,
            module: lock.module.load(Relaxed),
        });
    }
}
