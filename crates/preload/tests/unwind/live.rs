//! Walks of the calling thread, beside what glibc's `backtrace` says there.

use crate::program::Entry;
use lockstead_preload::unwind::{
    FindObject, Loaded, OwnStack, Rules, Unwinder, WalkStart, WalkedStack,
};
use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::LazyLock;

unsafe extern "C" {
    fn backtrace(buffer: *mut *mut c_void, size: i32) -> i32;
}

pub(crate) const DEPTH: usize = 4096;

/// Returns `_dl_find_object` of this process, which glibc has since 2.35.
pub(crate) fn find_object() -> Option<FindObject> {
    static FOUND: LazyLock<Option<FindObject>> = LazyLock::new(|| {
        // SAFETY: `dlsym` takes any C string, and this one is static.
        let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
        // SAFETY: the function has this type where it exists.
        (!symbol.is_null())
            .then(|| unsafe { std::mem::transmute::<*mut c_void, FindObject>(symbol) })
    });
    *FOUND
}

/// Returns the modules of this process; a message says so where glibc is too old.
pub(crate) fn loaded() -> Option<Loaded> {
    // SAFETY: `find_object` gives glibc's function of this name.
    let loaded = find_object().map(|find| unsafe { Loaded::new(find) });
    if loaded.is_none() {
        eprintln!("skipped: this glibc has no _dl_find_object");
    }
    loaded
}

/// Returns the end of the calling thread's stack.
pub(crate) fn stack_end() -> u64 {
    thread_local!(static END: u64 = {
        let mut start = std::ptr::null_mut();
        let mut size = 0;
        // SAFETY: the attributes are initialised by the first call and
        // destroyed by the last.
        unsafe {
            let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
            assert_eq!(libc::pthread_getattr_np(libc::pthread_self(), &mut attributes), 0);
            assert_eq!(libc::pthread_attr_getstack(&attributes, &mut start, &mut size), 0);
            libc::pthread_attr_destroy(&mut attributes);
        }
        start as u64 + size as u64
    });
    END.with(|end| *end)
}

/// What the leaf of a chain of C calls is to run.
struct Call<'a> {
    run: &'a mut dyn FnMut(WalkStart),
    /// What it panicked with: a panic does not pass through C.
    panic: Option<Box<dyn Any + Send>>,
    arrived: bool,
}

/// Calls `entry` with `script`, whose leaf is to call `run`; sees that it does.
pub(crate) fn through(entry: Entry, script: &[u8], run: &mut dyn FnMut(WalkStart)) {
    assert_eq!(script.last(), Some(&0), "scripts end with 0");
    let mut call = Call { run, panic: None, arrived: false };
    // SAFETY: the script has its end, and the call lives.
    unsafe { entry(script.as_ptr(), leaf, (&raw mut call).cast()) };
    if let Some(panic) = call.panic {
        resume_unwind(panic);
    }
    assert!(call.arrived);
}

/// Stands where a program calls a lock function: notes the return address, the stack pointer above
/// it and the frame pointer, and passes all on.
///
/// # Safety
/// `data` is a live [`Call`].
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn leaf(data: *mut c_void) {
    std::arch::naked_asm!(
        ".cfi_startproc",
        "sub sp, sp, #48",
        ".cfi_def_cfa_offset 48",
        "stp x29, x30, [sp]",
        ".cfi_offset x29, -48",
        ".cfi_offset x30, -40",
        "add x1, sp, #48",
        "stp x30, x1, [sp, #16]",
        "str x29, [sp, #32]",
        "mov x1, x0",
        "add x0, sp, #16",
        "bl {arrived}",
        "ldp x29, x30, [sp]",
        "add sp, sp, #48",
        ".cfi_def_cfa_offset 0",
        "ret",
        ".cfi_endproc",
        arrived = sym arrived,
    )
}

/// Does the same on another processor.
///
/// # Safety
/// `data` is a live [`Call`].
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn leaf(data: *mut c_void) {
    std::arch::naked_asm!(
        ".cfi_startproc",
        "sub rsp, 40",
        ".cfi_adjust_cfa_offset 40",
        "mov rax, [rsp + 40]",
        "mov [rsp + 8], rax",
        "lea rax, [rsp + 48]",
        "mov [rsp + 16], rax",
        "mov [rsp + 24], rbp",
        "mov rsi, rdi",
        "lea rdi, [rsp + 8]",
        "call {arrived}",
        "add rsp, 40",
        ".cfi_adjust_cfa_offset -40",
        "ret",
        ".cfi_endproc",
        arrived = sym arrived,
    )
}

/// Calls what [`through`] was given; `place` has pc, sp and bp in this order.
unsafe extern "C" fn arrived(place: *const [u64; 3], data: *mut c_void) {
    // SAFETY: `leaf` passes three words of its frame, which waits.
    let [pc, sp, bp] = unsafe { *place };
    // SAFETY: the caller of `leaf` promises that this is a live `Call`, which waits meanwhile.
    let call = unsafe { &mut *data.cast::<Call<'_>>() };
    call.arrived = true;
    let run = AssertUnwindSafe(|| (call.run)(WalkStart { pc, sp, bp }));
    call.panic = catch_unwind(run).err();
}

/// Calls `run` with the place that this was called from.
#[inline(never)]
pub(crate) fn here(run: &mut dyn FnMut(WalkStart)) {
    unsafe extern "C" fn entry(
        _: *const u8,
        leaf: unsafe extern "C" fn(*mut c_void),
        data: *mut c_void,
    ) {
        // SAFETY: `through` passes `leaf` together with the data that it takes.
        unsafe { leaf(data) };
    }
    through(entry, &[0], run);
}

/// Returns the stack of the calling thread above `start`, a place on it.
pub(crate) fn stack(start: WalkStart) -> OwnStack {
    // SAFETY: `start` is of a caller that waits until this returns.
    unsafe { OwnStack::new(start.sp, stack_end()) }
}

/// Walks the stack from `start`. Returns how that ended, and the return addresses.
pub(crate) fn walk(
    modules: Option<Loaded>,
    rules: &Rules,
    start: WalkStart,
) -> (WalkedStack, Vec<u64>) {
    let mut chain = vec![0; DEPTH];
    let walk = Unwinder::new(modules, rules).walk(start, stack(start), &mut chain);
    chain.truncate(walk.len);
    (walk, chain)
}

/// Returns what glibc's `backtrace` says of the callers from `start` outwards.
pub(crate) fn expected(start: WalkStart) -> Vec<u64> {
    let mut buffer = vec![std::ptr::null_mut(); DEPTH];
    // SAFETY: the kernel writes at most the size given, which the buffer has.
    let len = unsafe { backtrace(buffer.as_mut_ptr(), DEPTH as i32) };
    let all: Vec<u64> = buffer[..len as usize].iter().map(|&pc| pc as u64).collect();
    let from = all.iter().position(|&pc| pc == start.pc).expect("backtrace passes the caller");
    all[from..].to_vec()
}
