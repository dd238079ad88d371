//! Keeps a library with this crate inside from being unloaded.
//!
//! # Role
//! The libc keeps a destructor of ours for each thread that has waited, the kernel the address of a
//! restartable section, the process a handler of signals. Closing a plug-in that has locks inside
//! would leave them all behind, with nothing where they lead. What links the shared library says so
//! to the linker (`-z nodelete`); a plug-in is linked by others. So it asks the loader, in one of
//! its constructors: there the thread has the loader's lock already, and a first use of a lock
//! need not wait for that.
//!
//! In a program, and with musl, which unloads nothing, nothing happens.

use core::ffi::{c_char, c_int, c_void};
use core::mem::MaybeUninit;

/// Returns the address of a function of the loader's; 0 in a program without one.
macro_rules! loaders {
    ($name:literal) => {{
        let address: usize;
        // SAFETY: the instructions read a word that the linker has made: of a weak symbol, so that
        // a static program needs no such function.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            core::arch::asm!(
                concat!(".weak ", $name),
                concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address, options(pure, readonly, nostack, preserves_flags));
            #[cfg(target_arch = "aarch64")]
            core::arch::asm!(
                concat!(".weak ", $name),
                concat!("adrp {0}, :got:", $name),
                concat!("ldr {0}, [{0}, :got_lo12:", $name, "]"),
                out(reg) address, options(pure, readonly, nostack, preserves_flags));
        }
        address
    }};
}

/// Has the linker take the constructor along: for callers that leave something with the process
/// that leads into this code.
pub fn stay() {
    core::hint::black_box(&CONSTRUCTOR);
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = pin;

extern "C" fn pin() {
    type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
    type Find = unsafe extern "C" fn(*const c_void, *mut libc::Dl_info) -> c_int;
    let (open, find) = (loaders!("dlopen"), loaders!("dladdr"));
    if open == 0 || find == 0 {
        return;
    }
    // SAFETY: the loader's functions of these names have these types.
    let (open, find): (Open, Find) = unsafe { core::mem::transmute((open, find)) };
    let mut about = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address may be asked for; the answer has room on this stack.
    if unsafe { find(pin as *const c_void, about.as_mut_ptr()) } == 0 {
        return;
    }
    // SAFETY: the call has filled it in, as it said by its answer.
    let about = unsafe { about.assume_init() };
    // SAFETY: the call takes and returns a number.
    let programs = unsafe { libc::getauxval(libc::AT_PHDR) } as usize;
    // The headers of the program lie in its first page.
    if programs.wrapping_sub(about.dli_fbase.addr()) < PAGE {
        return;
    }
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: the name is the loader's own, of a library that is loaded: opening it again runs
    // none of its code.
    unsafe { open(about.dli_fname, flags) };
}

const PAGE: usize = 4096;
