//! A segment for tests: a memfd with a doorbell, slots, claims, locks and numbers.
#![allow(dead_code, reason = "each test program uses a part")]

use core::ptr::{NonNull, null_mut, slice_from_raw_parts_mut};
use core::sync::atomic::AtomicU64;
use lockstead_core::WaitBounds;
use lockstead_core::robust::{Claim, Got, Party, RawSharedMutex, RobustError, SlotRecord};
use lockstead_core::{Nanos, Platform};
use lockstead_linux::shared::{self, AttachError, SegmentHandle, SegmentMember, SegmentParts};
use lockstead_linux::{Linux, U32};
use std::time::{Duration, Instant};

pub(crate) const SLOTS: usize = 64;
const CLAIMS: usize = 8;
pub(crate) const LOCKS: usize = 1024;
pub(crate) const WORDS: usize = 1024;

#[repr(C, align(4096))]
struct Image {
    doorbell: U32,
    records: [SlotRecord<Linux>; SLOTS],
    claims: [Claim<Linux>; SLOTS * CLAIMS],
    locks: [RawSharedMutex<Linux>; LOCKS],
    words: [AtomicU64; WORDS],
}

/// A segment that is attached; its mapping stays for ever.
pub(crate) struct Segment {
    pub(crate) file: libc::c_int,
    image: &'static Image,
    pub(crate) handle: Option<SegmentHandle>,
}

pub(crate) type Mutex = RawSharedMutex<Linux>;

impl Segment {
    pub(crate) fn new() -> Self {
        Self::with(false)
    }

    pub(crate) fn with(exclusive: bool) -> Self {
        // SAFETY: the kernel reads the name, which is a static string.
        let file = unsafe { libc::memfd_create(c"lockstead-test".as_ptr(), libc::MFD_CLOEXEC) };
        assert!(file >= 0, "memfd: {}", std::io::Error::last_os_error());
        // SAFETY: the file was made above; `ftruncate` touches no memory.
        assert_eq!(unsafe { libc::ftruncate(file, size_of::<Image>() as libc::off_t) }, 0);
        Self::map(file, exclusive)
    }

    /// Maps the file and attaches it.
    pub(crate) fn map(file: libc::c_int, exclusive: bool) -> Self {
        let (base, image) = mapped(file);
        let parts = parts(base, image, file, exclusive);
        // SAFETY: `mapped` has mapped what the parts describe, and nobody ever unmaps it.
        let handle = unsafe { shared::attach(&parts, None) }.expect("attached");
        // SAFETY: `mapped` has mapped the image for good, and all zeroes are a valid one.
        Segment { file, image: unsafe { &*image }, handle: Some(handle) }
    }

    pub(crate) fn lock(&self, number: usize) -> &'static Mutex {
        &self.image.locks[number]
    }

    pub(crate) fn word(&self, number: usize) -> &'static AtomicU64 {
        &self.image.words[number]
    }

    pub(crate) fn record(&self, slot: u32) -> &'static SlotRecord<Linux> {
        &self.image.records[slot as usize]
    }

    pub(crate) fn party(&self) -> Party<'static, Linux> {
        shared::party(self.address()).expect("a slot")
    }

    pub(crate) fn member(&self) -> &'static SegmentMember {
        shared::join(self.address()).expect("a slot")
    }

    pub(crate) fn address(&self) -> usize {
        core::ptr::from_ref(self.image).addr()
    }

    pub(crate) fn handle(&self) -> &SegmentHandle {
        self.handle.as_ref().expect("attached")
    }

    /// Takes the lock within this time.
    pub(crate) fn lock_within(&self, number: usize, time: Duration) -> Result<Got, RobustError> {
        let party = self.party();
        let got = self.lock(number).lock(&party, &within(time))?;
        self.member().took();
        Ok(got)
    }

    pub(crate) fn unlock(&self, number: usize) -> bool {
        let done = self.lock(number).unlock(&self.party());
        if done {
            self.member().gave();
        }
        done
    }
}

/// Maps the file.
fn mapped(file: libc::c_int) -> (NonNull<u8>, *mut Image) {
    let (protection, bytes) = (libc::PROT_READ | libc::PROT_WRITE, size_of::<Image>());
    // SAFETY: the call makes a new mapping at an address of the kernel's choice, and touches
    // nothing that exists.
    let at = unsafe { libc::mmap(null_mut(), bytes, protection, libc::MAP_SHARED, file, 0) };
    assert_ne!(at, libc::MAP_FAILED);
    (NonNull::new(at.cast()).expect("mapped"), at.cast())
}

fn parts(base: NonNull<u8>, image: *mut Image, file: libc::c_int, exclusive: bool) -> SegmentParts {
    let at = |pointer| NonNull::new(pointer).expect("mapped");
    // SAFETY: `image` points to a mapped image, of which only addresses are taken.
    let (records, claims, doorbell) = unsafe {
        (&raw mut (*image).records, &raw mut (*image).claims, &raw mut (*image).doorbell)
    };
    let records = slice_from_raw_parts_mut(records.cast(), SLOTS);
    let claims = slice_from_raw_parts_mut(claims.cast(), SLOTS * CLAIMS);
    SegmentParts {
        base,
        len: size_of::<Image>(),
        doorbell: at(doorbell),
        records: NonNull::new(records).expect("mapped"),
        claims: NonNull::new(claims).expect("mapped"),
        file,
        scrub: None,
        exclusive,
    }
}

/// Tries to attach a segment with these parts changed.
pub(crate) fn attach_with(
    change: impl FnOnce(&mut SegmentParts),
) -> Result<SegmentHandle, AttachError> {
    // SAFETY: the kernel reads the name, which is a static string.
    let file = unsafe { libc::memfd_create(c"lockstead-test".as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: the file was made above; `ftruncate` touches no memory.
    assert_eq!(unsafe { libc::ftruncate(file, size_of::<Image>() as libc::off_t) }, 0);
    let (base, image) = mapped(file);
    let mut parts = parts(base, image, file, false);
    change(&mut parts);
    // SAFETY: the image was mapped above and is never unmapped, and the parts lie within it.
    unsafe { shared::attach(&parts, None) }
}

pub(crate) fn within(time: Duration) -> WaitBounds<'static, Linux> {
    WaitBounds { deadline: Some(Linux::now().after(time.as_nanos() as u64)), ..WaitBounds::FOREVER }
}

pub(crate) fn at(deadline: Nanos) -> WaitBounds<'static, Linux> {
    WaitBounds { deadline: Some(deadline), ..WaitBounds::FOREVER }
}

/// A forked child, which runs `body` and then ends without a word.
pub(crate) struct Child(pub(crate) libc::pid_t);

impl Child {
    pub(crate) fn new(body: impl FnOnce()) -> Self {
        // SAFETY: the child runs `body` and ends without returning here.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "fork: {}", std::io::Error::last_os_error());
        if child == 0 {
            // The test harness keeps what its threads print, and the child's copy of
            // that ends with it.
            std::panic::set_hook(Box::new(|panic| {
                let message = format!("in a child: {panic}\n");
                // SAFETY: the kernel reads `message`, which lives until the call returns.
                unsafe { libc::write(2, message.as_ptr().cast(), message.len()) };
            }));
            let right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            // SAFETY: ends the child without running the parent's exit handlers.
            unsafe { libc::_exit(if right.is_ok() { 0 } else { 1 }) };
        }
        Child(child)
    }

    pub(crate) fn kill(&self) {
        // SAFETY: the process is our own child, and was not waited for yet.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
    }

    /// Waits for its end, at most 30 seconds; the status.
    pub(crate) fn wait(self) -> libc::c_int {
        let end = Instant::now() + Duration::from_secs(30);
        let mut status = 0;
        // SAFETY: the kernel writes `status`, which lives until the call returns.
        while unsafe { libc::waitpid(self.0, &mut status, libc::WNOHANG) } == 0 {
            if Instant::now() > end {
                self.kill();
                // SAFETY: the kernel writes `status`, which lives until the call returns.
                unsafe { libc::waitpid(self.0, &mut status, 0) };
                panic!("the child hangs");
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        status
    }

    /// Kills it; it must not have found anything wrong before.
    pub(crate) fn kill_and_wait(self) {
        self.kill();
        let status = self.wait();
        assert!(status == 0 || libc::WIFSIGNALED(status), "the child has panicked");
    }
}

/// Makes the kernel forget the list of the calling thread.
pub(crate) fn lose_list() {
    // SAFETY: the kernel remembers the null pointer, and so reads no list.
    assert_eq!(unsafe { libc::syscall(libc::SYS_set_robust_list, 0usize, 24usize) }, 0);
}

/// Takes lock 0, and then tells.
pub(crate) fn hold(segment: &Segment) {
    assert_eq!(segment.lock_within(0, Duration::from_secs(20)), Ok(Got::Clean));
    segment.word(1).store(1, core::sync::atomic::Ordering::SeqCst);
}
