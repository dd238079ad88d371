//! Tells on which processor the calling thread runs.
//!
//! # Role
//! One load from the area that the libc registered with the kernel as the
//! thread's restartable-sequence area (glibc 2.35 and later); a call where it
//! registered none. There is one such area per thread and the libc owns it:
//! this file only reads it.

/// A thread's restartable-sequence area, as the libc registered it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RseqArea {
    /// The bytes from the thread pointer to the area.
    offset: isize,
    /// The bytes that the libc says are in use.
    pub(crate) size: u32,
}

/// Returns the libc's area; `None` when it registered none: an older or another libc,
/// the kernel without the call, or switched off
/// (`GLIBC_TUNABLES=glibc.pthread.rseq=0`).
#[cfg(not(feature = "rseq-by-name"))]
#[inline]
pub(crate) fn area() -> Option<RseqArea> {
    let (offset, size) = arch::symbols()?;
    // SAFETY: both symbols exist, and the libc writes them before any thread
    // but the first exists and never again.
    let (offset, size) = unsafe { (*offset, *size) };
    (size != 0).then_some(RseqArea { offset, size })
}

/// Returns the libc's area, asked for by name and kept.
#[cfg(feature = "rseq-by-name")]
#[inline]
pub(crate) fn area() -> Option<RseqArea> {
    use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// The libc has not been asked yet; no area has this size.
    const UNKNOWN: u64 = u64::MAX;
    /// The offset above the size, in one word, so that no thread sees one without the other.
    static FOUND: AtomicU64 = AtomicU64::new(UNKNOWN);

    let found = match FOUND.load(Relaxed) {
        UNKNOWN => {
            let found = by_name();
            FOUND.store(found, Relaxed);
            found
        }
        found => found,
    };
    let (offset, size) = ((found >> 32) as u32 as i32, found as u32);
    (size != 0).then_some(RseqArea { offset: offset as isize, size })
}

/// Returns offset and size; 0 where there is no area, or none within reach of its 32 bits.
#[cfg(feature = "rseq-by-name")]
#[cold]
fn by_name() -> u64 {
    // SAFETY: the names are static C strings; the libc returns an object of its own, or null.
    let [offset, size] = [c"__rseq_offset", c"__rseq_size"]
        .map(|name| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) });
    if offset.is_null() || size.is_null() {
        return 0;
    }
    // SAFETY: objects of these types, which the libc writes before any thread
    // but the first exists and never again.
    let (offset, size) = unsafe { (*offset.cast::<isize>(), *size.cast::<u32>()) };
    match i32::try_from(offset) {
        Ok(offset) if size != u32::MAX => u64::from(offset as u32) << 32 | u64::from(size),
        _ => 0,
    }
}

/// Returns where the kernel looks for the restartable section that the calling thread is in;
/// `None` if the thread is not registered.
pub(crate) fn sections() -> Option<core::ptr::NonNull<u64>> {
    field(SECTIONS).map(core::ptr::NonNull::cast)
}

/// Returns a field of the calling thread's area, which must be part of the size that the libc
/// says is in use, or of the first version; `None` if the thread is not registered.
pub(crate) fn field(offset: isize) -> Option<core::ptr::NonNull<u8>> {
    let area = area()?;
    // SAFETY: the libc has registered the area at this offset in every thread.
    let cpu = unsafe { arch::read_cpu(area.offset) };
    // SAFETY: inside the area, which every thread has in its static thread-local
    // storage.
    let field = unsafe { arch::thread_pointer().offset(area.offset + offset) };
    // A negative number means that the thread is not registered.
    if cpu <= i32::MAX as u32 { core::ptr::NonNull::new(field) } else { None }
}

/// Returns the processor that the calling thread ran on a moment ago.
#[inline]
pub(crate) fn current_cpu() -> Option<u32> {
    if let Some(area) = area() {
        // SAFETY: the libc has the area in the static thread-local storage of
        // every thread; every version of it has the field.
        let cpu = unsafe { arch::read_cpu(area.offset) };
        // Negative: not registered in this thread after all.
        if cpu <= i32::MAX as u32 {
            return Some(cpu);
        }
    }
    // SAFETY: `sched_getcpu` takes no argument and touches no memory of ours.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// `rseq.cpu_id` lies here in the area; kernel ABI.
const CPU_ID: isize = 4;
/// `rseq.rseq_cs` lies here in the area; kernel ABI.
const SECTIONS: isize = 8;

#[cfg(target_arch = "x86_64")]
mod arch {
    use core::arch::asm;

    /// Returns where the libc keeps offset and size. Weak references: null in a libc
    /// that has no such symbols.
    #[cfg(not(feature = "rseq-by-name"))]
    #[inline]
    pub(super) fn symbols() -> Option<(*const isize, *const u32)> {
        let (offset, size): (*const isize, *const u32);
        // SAFETY: the instructions read two entries of the global offset table, which the
        // linker has made.
        unsafe {
            asm!(
                ".weak __rseq_offset",
                ".weak __rseq_size",
                "mov {}, qword ptr [rip + __rseq_offset@GOTPCREL]",
                "mov {}, qword ptr [rip + __rseq_size@GOTPCREL]",
                out(reg) offset,
                out(reg) size,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        (!offset.is_null() && !size.is_null()).then_some((offset, size))
    }

    /// Returns the thread pointer.
    pub(super) fn thread_pointer() -> *mut u8 {
        let pointer: *mut u8;
        // SAFETY: the first word behind the pointer is the pointer itself; so says the
        // architecture's supplement on thread-local storage.
        unsafe {
            asm!(
                "mov {}, qword ptr fs:[0]",
                out(reg) pointer,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        pointer
    }

    /// Reads the processor's number from the calling thread's area.
    ///
    /// # Safety
    /// A registered area lies at this offset from the thread pointer.
    #[inline]
    pub(super) unsafe fn read_cpu(offset: isize) -> u32 {
        let cpu: u32;
        // SAFETY: the caller promises that a registered area lies there.
        unsafe {
            asm!(
                "mov {:e}, dword ptr fs:[{}]",
                out(reg) cpu,
                in(reg) offset + super::CPU_ID,
                options(readonly, nostack, preserves_flags),
            );
        }
        cpu
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use core::arch::asm;

    /// Returns where the libc keeps offset and size. Weak references: null in a libc
    /// that has no such symbols.
    #[cfg(not(feature = "rseq-by-name"))]
    #[inline]
    pub(super) fn symbols() -> Option<(*const isize, *const u32)> {
        let (offset, size): (*const isize, *const u32);
        // SAFETY: the instructions read two entries of the global offset table, which the
        // linker has made.
        unsafe {
            asm!(
                ".weak __rseq_offset",
                ".weak __rseq_size",
                "adrp {0}, :got:__rseq_offset",
                "ldr {0}, [{0}, :got_lo12:__rseq_offset]",
                "adrp {1}, :got:__rseq_size",
                "ldr {1}, [{1}, :got_lo12:__rseq_size]",
                out(reg) offset,
                out(reg) size,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        (!offset.is_null() && !size.is_null()).then_some((offset, size))
    }

    /// Returns the thread pointer.
    #[inline]
    pub(super) fn thread_pointer() -> *mut u8 {
        let pointer;
        // SAFETY: the instruction reads the thread pointer and no memory.
        unsafe {
            asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags));
        }
        pointer
    }

    /// Reads the processor's number from the calling thread's area.
    ///
    /// # Safety
    /// A registered area lies at this offset from the thread pointer.
    #[inline]
    pub(super) unsafe fn read_cpu(offset: isize) -> u32 {
        let field = thread_pointer().wrapping_offset(offset + super::CPU_ID);
        // SAFETY: the caller promises that a registered area lies there; the kernel writes the
        // field, so the read is volatile.
        unsafe { field.cast::<u32>().read_volatile() }
    }
}
