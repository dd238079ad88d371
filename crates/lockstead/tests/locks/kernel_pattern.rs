//! The pattern that kernel mutexes get wrong: whoever drops the last reference
//! under the mutex frees the mutex, while the previous holder is still on its
//! way out of unlock.

use crate::support::Watchdog;
use lockstead::Mutex;
use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;
use std::thread;
use std::time::Duration;

/// A page that becomes inaccessible when it is freed, so that a release which
/// touched the mutex once more would fault.
struct Page(NonNull<Mutex<u32>>);

// SAFETY: shared by the threads of a test, which keep to the protocol under
// test: the last one frees it.
unsafe impl Send for Page {}
// SAFETY: the threads of a test share it and keep to the protocol, as for Send.
unsafe impl Sync for Page {}

const PAGE: usize = 4096;

impl Page {
    fn new(references: u32) -> Self {
        // SAFETY: the call makes a mapping where nothing was, and its result is checked.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(memory, libc::MAP_FAILED);
        let mutex = memory.cast::<Mutex<u32>>();
        // SAFETY: the memory is fresh, aligned to a page and large enough.
        unsafe { mutex.write(Mutex::new(references)) };
        Page(NonNull::new(mutex).expect("mmap does not return null"))
    }

    /// Drops one reference; the last one unmaps the page.
    ///
    /// # Safety
    /// Called once per reference.
    unsafe fn release(&self) {
        // SAFETY: the caller's reference is left, so nobody has freed the memory.
        let mutex = unsafe { self.0.as_ref() };
        let mut references = mutex.lock();
        *references -= 1;
        let last = *references == 0;
        if references.is_multiple_of(3) {
            thread::sleep(Duration::from_micros(1));
        }
        drop(references);
        if last {
            // SAFETY: nobody holds a reference, so nobody may touch the page;
            // that the previous holder's unlock does not is what is tested.
            unsafe { libc::munmap(self.0.as_ptr().cast(), PAGE) };
        }
    }
}

#[test]
fn a_mutex_may_be_unmapped_by_the_next_holder() {
    let _watchdog = Watchdog::new("a_mutex_may_be_unmapped_by_the_next_holder");
    const THREADS: usize = 3;
    const ROUNDS: usize = 1_500;
    let pages: Vec<Page> = (0..ROUNDS).map(|_| Page::new(THREADS as u32)).collect();
    thread::scope(|s| {
        for _ in 0..THREADS {
            s.spawn(|| {
                for page in &pages {
                    // SAFETY: there are THREADS references, and each thread calls once.
                    unsafe { page.release() };
                }
            });
        }
    });
}

/// Shows the same with memory that is reused at once: a late write would be seen by the next
/// tenant.
#[test]
fn memory_of_a_freed_mutex_is_not_written() {
    let _watchdog = Watchdog::new("memory_of_a_freed_mutex_is_not_written");
    let layout = Layout::new::<Mutex<u32>>();
    for round in 0..1_500u32 {
        // SAFETY: the layout's size is not zero, and the pointer is checked.
        let memory = NonNull::new(unsafe { alloc(layout) }).expect("memory").cast();
        // SAFETY: the memory was just allocated for this type, and nobody else has it.
        unsafe { memory.write(Mutex::new(2)) };
        let shared = Page(memory);
        let free = |page: &Page| {
            // SAFETY: the caller's reference is left, so nobody has freed the memory.
            let mutex = unsafe { page.0.as_ref() };
            let mut references = mutex.lock();
            *references -= 1;
            let last = *references == 0;
            drop(references);
            if last {
                let bytes = page.0.cast::<[u32; 2]>();
                // SAFETY: as in `Page::release`; the memory is ours now.
                unsafe {
                    bytes.write([round, !round]);
                    for _ in 0..20 {
                        thread::yield_now();
                        assert_eq!(bytes.read_volatile(), [round, !round], "written after free");
                    }
                    dealloc(page.0.as_ptr().cast(), layout);
                }
            }
        };
        thread::scope(|s| {
            s.spawn(|| free(&shared));
            s.spawn(|| free(&shared));
        });
    }
}
