//! Stands before `pthread_create`, `thrd_create`, and the function that names threads.

use crate::me::{self, enter};
use crate::names;
use crate::real::{self, ThrdRoutine, ThreadRoutine, call};
use crate::records;
use crate::site::CallSite;
use crate::state;
use crate::sys;
use core::ffi::{c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use lockstead_ledger::Ledger;
use lockstead_ledger::thread::ThreadRecord;

crate::thunk! {
    pthread_create(4) => create;
    thrd_create(3) => create_c11;
    pthread_setname_np(2) => set_name;
}

type ThreadHandle = libc::pthread_t;

unsafe extern "C" {
    fn pthread_attr_init(attributes: *mut libc::pthread_attr_t) -> c_int;
    fn pthread_attr_getstacksize(
        attributes: *const libc::pthread_attr_t,
        size: *mut usize,
    ) -> c_int;
}

/// What a thread begins with. It lies in memory of its own, not in the thread's record: a
/// handler may come before the thread has read it, and fork, and the child, which does not
/// get the ledger, begins with it as well.
struct ThreadStart {
    /// The record that the creator has claimed for the thread.
    record: &'static ThreadRecord,
    begins: Beginning,
}

/// The thread's routine and its argument, in two registers.
#[repr(C)]
struct Beginning {
    routine: usize,
    argument: *mut c_void,
}

const BYTES: usize = size_of::<ThreadStart>().next_multiple_of(4096);

/// Memory for one [`ThreadStart`], kept for the next thread, so that a program that creates thread
/// after thread maps none.
static SPARE: AtomicPtr<ThreadStart> = AtomicPtr::new(null_mut());

fn room() -> Option<*mut ThreadStart> {
    // ord: PRE-8 (acquire): it has been read.
    let spare = SPARE.swap(null_mut(), Acquire);
    if spare.is_null() { Some(sys::map_private(BYTES).ok()?.cast()) } else { Some(spare) }
}

/// Gives the room back.
///
/// # Safety
/// It comes from [`room`], and nobody uses it any more.
unsafe fn give_back(room: *mut ThreadStart) {
    // ord: PRE-8 (release): it has been read.
    if SPARE.compare_exchange(null_mut(), room, Release, Relaxed).is_err() {
        // SAFETY: the caller promises memory from `room` that nobody uses.
        unsafe { sys::unmap(room.cast(), BYTES) };
    }
}

/// Prepares for a thread that the caller is about to create.
fn expect(begins: Beginning, stack_size: usize, site: &CallSite) -> Option<*mut ThreadStart> {
    let me = enter()?;
    let start = room()?;
    let Some(claimed) = records::claim(me.ledger) else {
        // SAFETY: `room` has just made it, and nobody uses it.
        unsafe { give_back(start) };
        return None;
    };
    let record = claimed.record;
    record.start_routine.store(begins.routine as u64, Relaxed);
    record.stack_low.store(stack_size as u64, Relaxed);
    // Whoever joins it may begin to wait before it has begun itself.
    record.began.store(sys::now(), Relaxed);
    record.creator.store(me.record().index.load(Relaxed) + 1, Relaxed);
    record.creation_stack.store(me.stack(site), Relaxed);
    // SAFETY: `room` has made it for this thread alone, large enough and page-aligned.
    unsafe { start.write(ThreadStart { record, begins }) };
    Some(start)
}

/// Reads what [`expect`] has left, and gives its memory back.
///
/// # Safety
/// It comes from there, and nobody else reads it.
unsafe fn take(start: *mut ThreadStart) -> ThreadStart {
    // SAFETY: the caller promises a `ThreadStart` that `expect` has filled and nobody else reads.
    unsafe {
        let read = start.read();
        give_back(start);
        read
    }
}

/// Creates a thread, and says before that the caller is no longer alone.
fn counted(create: impl FnOnce() -> c_int) -> c_int {
    #[cfg(feature = "check")]
    crate::order::one_thread_more();
    let answer = create();
    #[cfg(feature = "check")]
    if answer != 0 {
        crate::order::one_thread_less();
    }
    answer
}

/// Returns the bytes of the stack of a thread with these attributes.
///
/// # Safety
/// `attributes` is null or what a program passes to `pthread_create`.
unsafe fn stack_size(attributes: *const c_void) -> usize {
    let mut size = 0;
    // SAFETY: the attributes are the program's (INTERPOSE-ARGUMENTS) or default ones that are
    // initialised here; neither function allocates.
    unsafe {
        let mut default = MaybeUninit::uninit();
        let mut attributes = attributes.cast::<libc::pthread_attr_t>();
        if attributes.is_null() && pthread_attr_init(default.as_mut_ptr()) == 0 {
            attributes = default.as_ptr();
        }
        if attributes.is_null() || pthread_attr_getstacksize(attributes, &raw mut size) != 0 {
            return 0;
        }
    }
    size
}

unsafe extern "C" fn create(
    thread: *mut ThreadHandle,
    attributes: *const c_void,
    routine: ThreadRoutine,
    argument: *mut c_void,
    site: &CallSite,
) -> c_int {
    real::resolve();
    let real = call::pthread_create;
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let size = unsafe { stack_size(attributes) };
    let Some(start) = expect(Beginning { routine: routine as usize, argument }, size, site) else {
        // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
        return counted(|| unsafe { real()(thread, attributes, routine, argument) });
    };
    // SAFETY: INTERPOSE-ARGUMENTS, but the thread begins in our trampoline, which takes
    // routine and argument from what it gets instead.
    let answer = counted(|| unsafe {
        let begin = core::mem::transmute::<unsafe extern "C" fn(), ThreadRoutine>(begin);
        real()(thread, attributes, begin, start.cast())
    });
    if answer != 0 {
        // SAFETY: the thread was not created, so that only this call knows `start`.
        records::abandon(unsafe { take(start) }.record);
    }
    answer
}

unsafe extern "C" fn create_c11(
    thread: *mut ThreadHandle,
    routine: ThrdRoutine,
    argument: *mut c_void,
    site: &CallSite,
) -> c_int {
    real::resolve();
    let real = call::thrd_create;
    // SAFETY: `stack_size` takes null for the default attributes.
    let size = unsafe { stack_size(core::ptr::null()) };
    let Some(start) = expect(Beginning { routine: routine as usize, argument }, size, site) else {
        // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
        return counted(|| unsafe { real()(thread, routine, argument) });
    };
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk. The trampoline returns the register in
    // which both kinds of routine return.
    let answer = counted(|| unsafe {
        let begin = core::mem::transmute::<unsafe extern "C" fn(), ThrdRoutine>(begin);
        real()(thread, begin, start.cast())
    });
    if answer != 0 {
        // SAFETY: the thread was not created, so that only this call knows `start`.
        records::abandon(unsafe { take(start) }.record);
    }
    answer
}

crate::thread_frame! {
    /// Begins every thread that was created through the library. It calls the thread's
    /// own routine with nothing of ours live, and can be unwound through.
    begin => adopt
}

unsafe extern "C" fn adopt(start: *mut ThreadStart) -> Beginning {
    // SAFETY: `create` has passed what it had prepared for this thread alone; in a forked
    // child it is a copy.
    let ThreadStart { record, begins } = unsafe { take(start) };
    // In a child that a handler has forked here, the record is its parent's.
    let is_ours = |ledger: &&Ledger<'_>| ledger.spans(core::ptr::from_ref(record).cast());
    let Some(ledger) = state::ledger().filter(is_ours) else { return begins };
    let size = record.stack_low.load(Relaxed) as usize;
    // SAFETY: `expect` has claimed the record for this thread.
    let me = unsafe { me::begin_with(ledger, record) };
    // The thread's descriptor lies at the upper end of its stack's memory.
    // Below, leave what the descriptor and the guard may take of the size: for
    // a stack of unknown size, all.
    // SAFETY: `start` resolves the real functions before there is any record.
    let high = unsafe { call::pthread_self()() } as usize;
    let certain = size.saturating_sub((size / 4).min(256 << 10));
    me.on_stack(high - certain, high);
    // Who created it may have named it already, before its record knew it. The
    // name that it has from its creator by default is none of its own.
    names::note_if_own(me.record());
    begins
}

/// Notes the name that the calling thread has given itself.
pub(super) fn note_own_name() {
    let Some(me) = enter() else { return };
    for (word, half) in me.record().name.iter().zip(names::now()) {
        word.store(half, Relaxed);
    }
}

unsafe extern "C" fn set_name(thread: ThreadHandle, name: *const c_char, _: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_setname_np()(thread, name) };
    if answer == 0
        && let Some(me) = enter()
    {
        // SAFETY: INTERPOSE-ARGUMENTS: the real function has accepted it, so that it is a string
        // of at most 16 bytes.
        let name = unsafe { core::ffi::CStr::from_ptr(name) }.to_bytes();
        me.note_name(thread, name);
    }
    answer
}
