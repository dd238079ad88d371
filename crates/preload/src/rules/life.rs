//! Use without initialisation, of a copy, after destruction, in freed memory, of a lock that was
//! overwritten while it was free.
//!
//! # What tells it
//! The [`cookie`](super::cookie) where there is one, and else:
//!
//! | evidence | violation |
//! |---|---|
//! | a kind or a preference that no lock has | use without initialisation; overwritten, if its initialisation was seen |
//! | the lock's own cookie beside another kind of lock than it was, or beside words that no mutex has | overwritten |
//! | no cookie any more, where its initialisation was seen | the same; weak if the words are in order |
//! | the cookie that the call of `free` has left | use in freed memory |
//! | a semaphore, a barrier without a cookie, of which no initialisation was seen | the same: they have no static initialiser. Not in a forked child, which its parent may have left them |
//! | a mutex with glibc's mark of a destroyed one | use after destruction |
//! | a spin lock that was destroyed by a call, and not initialised since | the same: it has no static initialiser |
//! | a condition variable that was destroyed, with glibc's mark of that | the same |
//!
//! A lock of zeroes is one that a static initialiser has made. Each use is looked
//! at once a thread and lock, whenever a lock is not to be had at once, and when the cookie is
//! not the lock's own: the fast path compares the mark, all other uses the kind as well.
//!
//! A lock that was in use and has lost its cookie was begun anew, by an assignment, or
//! in memory that is used again in a way that nobody sees: it is another lock. If it was
//! initialised by a call, it may as well have been wiped, or its last bytes written over, which
//! nobody but us uses; and another process that shares the memory of a private lock, which it
//! should not, leaves a cookie of its own.
//!
//! Memory that was freed keeps the cookie until something is written there: an initialiser, a
//! call that initialises, `calloc` or a constructor takes it away. A block that `realloc` moves
//! is not marked, for it may stay.

use super::cookie::{Cookie, CookieMark, NATURE};
use super::hush;
use super::note::Note;
use super::words::LockWords;
use crate::call::{CallPlace, LockCall, Nature};
use crate::me::{Me, enter};
use crate::order::places;
use crate::site::CallSite;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use lockstead_ledger::Birth;
use lockstead_ledger::lock::{LockRecord, ObjectKind, RecordLife, attribute};
use lockstead_ledger::violation::Rule;

/// Whether this process is a forked child.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Notes that the process is a forked child.
pub fn forked() {
    FORKED.store(true, Relaxed);
}

/// Tells whether this process is a forked child.
pub fn is_forked() -> bool {
    FORKED.load(Relaxed)
}

/// Does this file's part of [`super::initialised`].
pub fn initialised(address: u64, kind: ObjectKind, attributes: u16) {
    // SAFETY: RULES-PASSED: the program has passed it to the function that it called.
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

/// Does this file's part of [`super::destroyed`].
pub fn destroyed(me: &Me, address: u64, kind: ObjectKind, site: &CallSite) {
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
    // SAFETY: RULES-PASSED: the program has passed it to the function that it called, which
    // has not come back yet.
    let cookie = unsafe { Cookie::of(address, kind, attributes) };
    let (tid, stack) = (me.record().tid.load(Relaxed), me.stack(site));
    match cookie {
        Some(cookie) => cookie.destroy(tid, stack),
        None => Grave::of(address).fill(address, tid, stack),
    }
}

/// Marks a lock whose memory is about to be freed by the call at `site`.
///
/// # Safety
/// At `address` is memory of the size of such a lock.
pub unsafe fn freed(me: &Me, address: u64, nature: (ObjectKind, u16), site: &CallSite) {
    // SAFETY: RULES-PASSED: the caller promises memory of the size of such a lock.
    let cookie = unsafe { Cookie::of(address, nature.0, nature.1) };
    // Bytes that do not carry the lock's own mark are the program's.
    if let Some(cookie) = cookie.filter(|cookie| cookie.read() == CookieMark::Own) {
        cookie.free(me.record().tid.load(Relaxed), me.stack(site));
    }
}

/// The places at which the latest of the locks without a cookie were destroyed.
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

    /// Returns thread and stack; zeroes if another lock lies there by now.
    fn read(&self, address: u64) -> Earlier {
        let by = self.by.load(Relaxed);
        let by = if self.address.load(Relaxed) == address { by } else { 0 };
        Earlier::Destroyed((by >> 32) as u32, by as u32)
    }
}

/// Does this file's part of [`super::fails`].
pub fn fails<N: Nature>(call: &LockCall<'_, N>) {
    if let Some(me) = enter() {
        let stack = me.stack(call.site);
        used(&me, call.target, &call.nature, stack);
    }
}

/// Does this file's part of [`super::first_use`].
pub fn first_use<N: Nature>(me: &Me, address: u64, nature: &N, stack: u32) {
    used(me, address, nature, stack);
}

/// Does this file's part of [`super::waits`].
pub fn waits<N: Nature>(me: &Me, call: &LockCall<'_, N>, place: CallPlace) {
    used(me, call.target, &call.nature, place.stack);
}

/// Looks at a lock that is used at this stack; says whether it must not be.
pub fn used<N: Nature>(me: &Me, address: u64, nature: &N, stack: u32) -> bool {
    let (kind, mut attributes) = nature.nature();
    // SAFETY: RULES-PASSED: the program passes it to the function that it calls.
    let words = unsafe { LockWords::read(kind, address) };
    // These do not say so themselves.
    if matches!(kind, ObjectKind::Semaphore | ObjectKind::Barrier) && words.is_shared() {
        attributes |= attribute::SHARED;
    }
    // SAFETY: RULES-PASSED: the program passes the lock to the function that it calls.
    if let Some(was) = unsafe { overwritten(me, address, (kind, attributes), &words) } {
        if let Some((index, lock)) = me.record_of(address) {
            me.end_life(index, lock);
        }
        if was.in_order {
            me.use_lock(address, stack, (kind, attributes));
        } else {
            me.revive(address, stack, words.is_sound().then_some(attributes));
        }
        let note = Note::new(Rule::OverwrittenFree, address, stack);
        me.note(&note.after(0, was.init_stack).weak(was.in_order));
        // SAFETY: RULES-PASSED: the program passes the lock to the function that it calls.
        let cookie = unsafe { Cookie::of(address, kind, attributes) };
        if let Some(cookie) = cookie.filter(|_| words.is_sound()) {
            plant(cookie, attributes);
        }
        return !was.in_order;
    }
    if words.is_sound() && !words.is_destroyed_mutex() {
        // SAFETY: RULES-PASSED: the program passes the lock to the function that it calls.
        unsafe { me.ends_unseen(address, stack, (kind, attributes)) };
    }
    let Some((rule, earlier)) = judge(me, address, kind, attributes, &words) else { return false };
    if rule == Rule::InFreedMemory && hush::BROKEN.take(address) {
        return true;
    }
    let mut note = Note::new(rule, address, stack);
    match earlier {
        Earlier::Nothing => {
            me.use_lock(address, stack, (kind, attributes));
        }
        Earlier::Destroyed(tid, at) => {
            me.revive(address, stack, None);
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
    // The rule is reported once. Nothing is written where nobody keeps a lock any more.
    // SAFETY: RULES-PASSED: the program passes the lock to the function that it calls.
    if let Some(cookie) = unsafe { Cookie::of(address, kind, attributes) }
        && words.is_sound()
        && rule != Rule::InFreedMemory
    {
        cookie.plant();
    }
    true
}

/// Tells whether a use that knows the lock is to look at it again: there is a place for a cookie,
/// and what is there is not its own. A semaphore or a barrier may have none all the same.
#[must_use]
pub fn has_changed<N: Nature>(address: u64, nature: &N) -> bool {
    let (kind, attributes) = nature.nature();
    let may_have_none = matches!(kind, ObjectKind::Semaphore | ObjectKind::Barrier);
    // SAFETY: RULES-PASSED: the program passes it to the function that it calls.
    match unsafe { Cookie::of(address, kind, attributes) }.map(|cookie| cookie.read()) {
        None | Some(CookieMark::Own) => false,
        Some(CookieMark::None) => !may_have_none,
        Some(_) => true,
    }
}

/// A lock that was written over while nobody held it.
struct Was {
    /// The stack of its initialisation, or 0.
    init_stack: u32,
    /// Its words are those of a lock, as an assignment leaves them that begins one anew.
    in_order: bool,
}

/// Looks whether a lock that lives was written over since its last use.
///
/// # Safety
/// At `address` is memory of the size of such a lock.
unsafe fn overwritten(
    me: &Me,
    address: u64,
    (kind, attributes): (ObjectKind, u16),
    words: &LockWords,
) -> Option<Was> {
    let (_, lock) = me.record_of(address)?;
    let (known, life, before) = lock.shape();
    if !matches!(kind, ObjectKind::Mutex | ObjectKind::RwLock)
        || !matches!(life, RecordLife::Live)
        || known != kind
        || words.is_destroyed_mutex()
    {
        return None;
    }
    // SAFETY: RULES-PASSED: the caller promises memory of the size of such a lock.
    let cookie = unsafe { Cookie::of(address, kind, before) }?;
    let init_stack = lock.init_stack.load(Relaxed);
    let in_order = match cookie.read() {
        CookieMark::Own if !words.is_possible() => false,
        CookieMark::Own
            if before & attribute::KNOWN != 0 && (before ^ attributes) & NATURE != 0 =>
        {
            false
        }
        // What lies on a stack may be of another call.
        CookieMark::None if init_stack != 0 && !places::may_be_on_stack(address) => {
            words.is_possible()
        }
        _ => return None,
    };
    // Of one that is held, the release says it.
    let is_held = me.ledger.threads().any(|thread| thread.stack().find(address).is_some());
    (!is_held).then_some(Was { init_stack, in_order })
}

/// The earlier event that a use of a lock collides with.
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
    kind: ObjectKind,
    attributes: u16,
    words: &LockWords,
) -> Option<(Rule, Earlier)> {
    let found = me.ledger.find_lock(address);
    let life = found.and_then(|index| me.ledger.lock(index)).map(|lock| lock.shape().1);
    let was_destroyed = matches!(life, Some(RecordLife::Destroyed));
    if let Some((tid, stack)) = found.and_then(|index| freed_by(me, address, kind, index)) {
        // Said once.
        let is_new = matches!(life, Some(RecordLife::Gone));
        return is_new.then_some((Rule::InFreedMemory, Earlier::Destroyed(tid, stack)));
    }
    // SAFETY: RULES-PASSED: the program passes the lock to the function that it calls. A destroyed
    // mutex has no attributes any more.
    let cookie = unsafe {
        let known = if words.is_destroyed_mutex() { 0 } else { attributes };
        Cookie::of(address, kind, known)
    };
    let mark = cookie.map_or(CookieMark::None, |cookie| cookie.read());
    if words.is_destroyed_mutex() {
        return match mark {
            CookieMark::Destroyed(tid, stack) => {
                Some((Rule::Destroyed, Earlier::Destroyed(tid, stack)))
            }
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
        ObjectKind::Spin if was_destroyed => return ended,
        ObjectKind::Condition if was_destroyed && words.is_destroyed_condition() => return ended,
        _ => {}
    }
    let cookie = cookie?;
    match mark {
        CookieMark::Own | CookieMark::Freed(..) => None,
        // A mutex without the mark of glibc's was begun anew in some way.
        CookieMark::Destroyed(..) if kind == ObjectKind::Mutex => {
            cookie.plant();
            None
        }
        CookieMark::Destroyed(tid, stack) => {
            Some((Rule::Destroyed, Earlier::Destroyed(tid, stack)))
        }
        CookieMark::CopyOf(original) => Some((Rule::Copied, Earlier::Original(original))),
        CookieMark::None if matches!(kind, ObjectKind::Mutex | ObjectKind::RwLock) => {
            plant(cookie, attributes);
            None
        }
        CookieMark::None if found.is_some() || is_forked() => None,
        CookieMark::None => Some((Rule::Uninitialised, Earlier::Nothing)),
    }
}

/// Returns the thread and the stack that have freed the memory of a lock of this kind. Its words
/// may be the allocator's by now, and what it was says its record.
fn freed_by(me: &Me, address: u64, kind: ObjectKind, index: u32) -> Option<(u32, u32)> {
    let (known, _, attributes) = me.ledger.lock(index)?.shape();
    // SAFETY: RULES-PASSED: the program passes the lock to the function that it calls.
    let cookie = unsafe { Cookie::of(address, kind, attributes) };
    match cookie.filter(|_| known == kind)?.read() {
        CookieMark::Freed(tid, stack) => Some((tid, stack)),
        _ => None,
    }
}

impl Me {
    /// Returns the record of a lock, if there is one.
    fn record_of(&self, address: u64) -> Option<(u32, &'static LockRecord)> {
        let index = self.ledger.find_lock(address)?;
        Some((index, self.ledger.lock(index)?))
    }

    /// Tells whether another lock than the one that is known at `address` lives there, which begins
    /// a life then, as one that is used at `stack`.
    ///
    /// # Safety
    /// There is such a lock.
    pub unsafe fn ends_unseen(&self, address: u64, stack: u32, nature: (ObjectKind, u16)) -> bool {
        let (kind, attributes) = nature;
        let Some((index, lock)) = self.record_of(address) else { return false };
        let (known, life, before) = lock.shape();
        if !matches!(life, RecordLife::Live) || [known, kind].contains(&ObjectKind::Unknown) {
            return false;
        }
        let has_lost_it = || {
            // SAFETY: RULES-PASSED: the caller promises that there is such a lock. One that had no
            // cookie has lost none.
            let cookie = unsafe { Cookie::of(address, kind, attributes | before) };
            cookie.is_some_and(|cookie| cookie.read() == CookieMark::None)
        };
        let is_other = match kind {
            _ if known != kind => true,
            ObjectKind::Mutex | ObjectKind::RwLock => has_lost_it(),
            _ => false,
        };
        if is_other {
            self.end_life(index, lock);
            self.use_lock(address, stack, nature);
            // SAFETY: RULES-PASSED: the caller promises memory of the size of such a lock.
            let cookie = unsafe { Cookie::of(address, kind, attributes) };
            if let Some(cookie) =
                cookie.filter(|_| matches!(kind, ObjectKind::Mutex | ObjectKind::RwLock))
            {
                plant(cookie, attributes);
            }
        }
        is_other
    }

    /// Begins a life of a lock that was at its end and is used, as what it was before but for these
    /// attributes.
    fn revive(&self, address: u64, stack: u32, attributes: Option<u16>) {
        let Some((_, lock)) = self.record_of(address) else { return };
        let (kind, _, before) = lock.shape();
        let attributes = attributes.unwrap_or(before);
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
