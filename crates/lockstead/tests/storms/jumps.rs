//! Signal handlers that leave a call by a jump, as `siglongjmp` does, between any two of its
//! instructions.

use crate::kinds;
use crate::step::stop_at;
use crate::visitors::{Page, Take, Visit, Visitor, eventually, set_about};
use lockstead_core::{Platform, WaitBounds};
use lockstead_linux::Linux;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

std::arch::global_asm!(
    ".pushsection .text.storms_attempt, \"ax\"",
    ".globl storms_attempt, storms_jumped",
    "storms_attempt:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 8",
    "mov [rdx], rsp",
    "mov rax, rdi",
    "mov rdi, rsi",
    "call rax",
    "xor eax, eax",
    "2: add rsp, 8",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    "storms_jumped:",
    "mov eax, 1",
    "jmp 2b",
    ".popsection",
);

unsafe extern "C" {
    /// Calls `body`, and keeps at `back` where it can be left to. Returns 1 if it was left.
    fn storms_attempt(
        body: extern "C" fn(*mut c_void),
        argument: *mut c_void,
        back: *mut u64,
    ) -> u64;
    /// Is where the attempt goes on that a handler leaves, with its stack.
    fn storms_jumped();
}

extern "C" fn call<F: FnMut()>(body: *mut c_void) {
    // SAFETY: `attempt` gives a body of this type, which lives until it returns.
    unsafe { (*body.cast::<F>())() };
}

/// Has a handler leave `body` after so many of its instructions. Returns false if it has not so many.
fn jumps_at(step: u64, body: impl FnOnce()) -> bool {
    let mut back = 0_u64;
    let at = &raw mut back;
    let mut jump = |registers: &mut libc::ucontext_t| {
        let registers = &mut registers.uc_mcontext.gregs;
        // SAFETY: the attempt has left its stack there before it called its body.
        registers[libc::REG_RSP as usize] = unsafe { at.read_volatile() } as i64;
        registers[libc::REG_RIP as usize] = storms_jumped as *const () as i64;
    };
    let mut body = Some(body);
    attempt(at, || {
        stop_at(step, &mut jump, body.take().expect("called once"));
    })
}

/// Calls `body`. Returns whether a handler has left it by a jump to what is kept at `back`.
fn attempt<F: FnMut()>(back: *mut u64, mut body: F) -> bool {
    // SAFETY: the function keeps the registers that its caller relies on, and the frames that are
    // left have nothing to drop that this test needs.
    unsafe { storms_attempt(call::<F>, (&raw mut body).cast(), back) == 1 }
}

/// What the lock is like when the call begins that is left.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Before {
    /// The caller takes a free lock.
    Free,
    /// The caller waits for [`TIME`] behind one that keeps the lock and one that sleeps for it.
    Kept,
    /// The caller releases, and nobody waits.
    Held,
    /// The caller releases, and one sleeps.
    Awaited,
}

/// The time of a wait for a lock that is kept, in nanoseconds.
const TIME: u64 = 2_000_000;
/// Has a handler leave calls of a kind at many of their instructions. The lock is never torn, the
/// thread goes on with other locks, and every wait for this one still ends when it is told to.
fn leaves<K: Take<Hold = ()>>(name: &str, is_mine: fn(&K::Lock) -> bool, every: u64) {
    let (page, other) = (Page::<K::Lock>::new(), Page::new());
    let [keeper, sleeper, elsewhere] = [(); 3].map(|()| Visitor::new());
    std::thread::scope(|scope| {
        scope.spawn(|| keeper.serve::<K>(&page));
        scope.spawn(|| sleeper.serve::<K>(&page));
        scope.spawn(|| elsewhere.serve::<kinds::Shipped>(&other));
        for before in [Before::Free, Before::Kept, Before::Held, Before::Awaited] {
            let (mut step, mut jumps, mut stranded) = (0, 0, 0);
            loop {
                set_about(format!("{name}, {before:?}, left at step {step}"));
                page.renew(K::fresh());
                other.renew(kinds::Shipped::fresh());
                // Nobody frees anything.
                page.expected.store(9, SeqCst);
                other.expected.store(9, SeqCst);
                if before == Before::Kept {
                    keeper.comes(Visit::Keeps);
                    keeper.settles();
                    sleeper.comes(Visit::MayBeCancelled);
                    sleeper.settles();
                }
                // A thread of its own, which spins as if nothing had happened before.
                let call = || left_at::<K>(page.lock(), before, step, &sleeper);
                let life = || {
                    Linux::me();
                    let jumped = call();
                    let owner_is_right = match before {
                        Before::Kept => !is_mine(page.lock()),
                        _ => true,
                    };
                    assert!(owner_is_right, "it has what another keeps");
                    page.through.store(true, SeqCst);
                    if is_mine(page.lock()) {
                        // SAFETY: this thread holds the lock, as it has just found out.
                        unsafe { K::unlock(page.lock(), ()) };
                    }
                    goes_on(&other, &elsewhere);
                    jumped
                };
                let jumped =
                    std::thread::scope(|lives| lives.spawn(life).join().expect("no panic"));
                let end = Linux::now().after(TIME);
                while !sleeper.is_back() && Linux::now() < end {
                    std::thread::yield_now();
                }
                stranded += u32::from(!sleeper.is_back());
                sleeper.is_cancelled();
                eventually("all are back", || keeper.is_back() && sleeper.is_back());
                if !jumped {
                    break;
                }
                jumps += 1;
                // Fewer places later: most of a long wait is alike.
                step += every + step / 16;
            }
            println!(
                "{name}, {before:?}: {jumps} jumps in {step} instructions, {stranded} sleepers left"
            );
            assert!(jumps > 0, "no jump out of a call");
        }
        [&keeper, &sleeper, &elsewhere].into_iter().for_each(Visitor::leaves);
    });
}

/// Makes the call, and leaves it at the step. Returns false if it has not so many.
fn left_at<K: Take<Hold = ()>>(
    lock: &K::Lock,
    before: Before,
    step: u64,
    sleeper: &Visitor,
) -> bool {
    if matches!(before, Before::Free | Before::Kept) {
        return jumps_at(step, || {
            let how =
                WaitBounds { deadline: Some(Linux::now().after(TIME)), ..WaitBounds::FOREVER };
            let _ = K::lock(lock, &how);
        });
    }
    assert!(K::lock(lock, &WaitBounds::FOREVER).is_ok(), "it is free");
    if before == Before::Awaited {
        sleeper.comes(Visit::MayBeCancelled);
        sleeper.settles();
    }
    // SAFETY: this thread has just taken the lock.
    jumps_at(step, || unsafe { K::unlock(lock, ()) })
}

/// Has the calling thread and another one use another lock.
fn goes_on(other: &Page<<kinds::Shipped as Take>::Lock>, elsewhere: &Visitor) {
    assert!(kinds::Shipped::lock(other.lock(), &WaitBounds::FOREVER).is_ok());
    elsewhere.comes(Visit::Waits);
    elsewhere.settles();
    // SAFETY: this thread has just taken the lock.
    unsafe { kinds::Shipped::unlock(other.lock(), ()) };
    eventually("the other lock goes from hand to hand", || elsewhere.is_back());
}

fn all_kinds(every: u64) {
    let _alone = crate::releases::ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    leaves::<kinds::Shipped>("mutex", |lock| lock.is_mine(), every);
    leaves::<kinds::HastyMutex>("mutex with hand-off waiters", |lock| lock.is_mine(), every);
    leaves::<kinds::HastyWrite>("reader-writer lock", |lock| lock.is_mine(), every);
    leaves::<kinds::Bare>("wait/wound mutex", |lock| lock.is_mine(), every);
    leaves::<kinds::Rt>("real-time mutex", |lock| lock.is_mine(), every);
}

#[test]
fn out_of_calls_at_some_steps() {
    all_kinds(16);
}

#[test]
#[ignore = "takes minutes"]
fn out_of_calls_at_every_step() {
    all_kinds(1);
}

thread_local! {
    /// Where the stack of the attempt is kept that a signal leaves; null: it leaves none.
    static BACK: Cell<*mut u64> = const { Cell::new(null_mut()) };
}

/// Returns the signal whose handler leaves a wait. The storms have others.
fn leaving() -> libc::c_int {
    libc::SIGRTMIN() + 3
}

extern "C" fn jumps(_number: libc::c_int, _about: *mut libc::siginfo_t, registers: *mut c_void) {
    let back = BACK.replace(null_mut());
    if back.is_null() {
        return;
    }
    // SAFETY: the kernel gives a handler the registers of what it has interrupted; the attempt has left
    // its stack there before its body named the place.
    unsafe {
        let registers = &mut (*registers.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        registers[libc::REG_RSP as usize] = back.read_volatile() as i64;
        registers[libc::REG_RIP as usize] = storms_jumped as *const () as i64;
    }
}

/// Waits for a lock for [`TIME`], and leaves that by a jump when a signal comes, which may be in the
/// kernel. Says in `thread` when one may come. Returns whether it jumped.
fn waits_until_a_signal<K: Take>(lock: &K::Lock, thread: &AtomicI32) -> bool {
    let mut back = 0_u64;
    let at = &raw mut back;
    attempt(at, || {
        let how = WaitBounds { deadline: Some(Linux::now().after(TIME)), ..WaitBounds::FOREVER };
        BACK.set(at);
        // SAFETY: asks for the number of the calling thread.
        thread.store(unsafe { libc::gettid() }, SeqCst);
        let got = K::lock(lock, &how).is_ok();
        BACK.set(null_mut());
        assert!(!got, "it has what another keeps");
    })
}

/// Has signals leave waits at moments that follow each other by chance of the machine, in the kernel as
/// outside. The thread goes on with another lock, and every other wait for this one ends when it is
/// told to. Where nobody `keeps` the lock there is nobody to release it, and nobody else waits.
fn waits_are_left<K: Take>(name: &str, keeps: bool) {
    const ROUNDS: u64 = 60;
    let (page, other) = (Page::<K::Lock>::new(), Page::new());
    let [keeper, sleeper, elsewhere] = [(); 3].map(|()| Visitor::new());
    let mut jumped = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| keeper.serve::<K>(&page));
        scope.spawn(|| sleeper.serve::<K>(&page));
        scope.spawn(|| elsewhere.serve::<kinds::Shipped>(&other));
        for round in 0..ROUNDS {
            set_about(format!("{name}, left by signal {round}"));
            page.renew(K::fresh());
            other.renew(kinds::Shipped::fresh());
            // Nobody frees anything.
            page.expected.store(9, SeqCst);
            other.expected.store(9, SeqCst);
            if keeps {
                keeper.comes(Visit::Keeps);
                keeper.settles();
                sleeper.comes(Visit::MayBeCancelled);
                sleeper.settles();
            }
            let thread = AtomicI32::new(0);
            let left = std::thread::scope(|lives| {
                let life = lives.spawn(|| {
                    Linux::me();
                    let left = waits_until_a_signal::<K>(page.lock(), &thread);
                    page.through.store(true, SeqCst);
                    goes_on(&other, &elsewhere);
                    left
                });
                eventually("it is about to wait", || thread.load(SeqCst) != 0);
                // From at once to well into its sleep.
                let moment = Linux::now().after(round * round * 100);
                while Linux::now() < moment {
                    std::hint::spin_loop();
                }
                let pid = std::process::id();
                let number = thread.load(SeqCst);
                // SAFETY: sends a signal, for which there is a handler, to a thread of this process that
                // has not been joined.
                unsafe { libc::syscall(libc::SYS_tgkill, pid, number, leaving()) };
                life.join().expect("no panic")
            });
            jumped += u32::from(left);
            sleeper.is_cancelled();
            eventually("all are back", || keeper.is_back() && sleeper.is_back());
        }
        [&keeper, &sleeper, &elsewhere].into_iter().for_each(Visitor::leaves);
    });
    println!("{name}: {jumped} of {ROUNDS} waits left by a signal");
    assert!(jumped > 0, "no jump out of a wait");
}

#[test]
fn out_of_waits_when_a_signal_comes() {
    let _alone = crate::releases::ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // SAFETY: a zeroed action is valid, and the handler is of the type that the flag says.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = jumps as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(leaving(), &raw const action, null_mut()), 0);
    }
    waits_are_left::<kinds::Shipped>("mutex", true);
    waits_are_left::<kinds::HastyMutex>("mutex with hand-off waiters", true);
    waits_are_left::<kinds::HastyWrite>("reader-writer lock", true);
    waits_are_left::<kinds::Tuned>("tuned semaphore", true);
    waits_are_left::<kinds::Classic>("classic semaphore", true);
    waits_are_left::<kinds::Biased>("biased mutex", true);
    waits_are_left::<kinds::Rt>("real-time mutex", true);
    waits_are_left::<kinds::Once>("once", true);
    waits_are_left::<kinds::Condition>("condition variable", false);
}
