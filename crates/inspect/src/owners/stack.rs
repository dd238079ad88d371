//! Threads that may hold a lock, since its address is on their stacks.

use super::moment::ThreadMoment;
use super::shape::AwaitedLock;
use crate::memory::ReadableMemory;

/// The most of a stack that is looked through.
const MOST: u64 = 64 << 10;

/// Tells whether the address of a lock that the thread does not wait for itself is on its stack.
/// That alone says little: whoever uses a lock at times may have its address.
#[must_use]
pub fn may_hold(thread: &ThreadMoment, lock: AwaitedLock, memory: &dyn ReadableMemory) -> bool {
    let own = thread.wait.iter().flat_map(|wait| &wait.locks);
    if own.into_iter().any(|own| own.address == lock.address) {
        return false;
    }
    let pointers = || thread.frames.iter().filter_map(|frame| frame.registers.stack_pointer());
    let (Some(low), Some(high)) = (pointers().min(), pointers().max()) else { return false };
    let low = low & !7;
    let mut bytes = vec![0; high.saturating_sub(low).min(MOST) as usize];
    let Ok(length) = memory.read(low, &mut bytes) else { return false };
    let (words, _) = bytes[..length].as_chunks::<8>();
    words.iter().any(|word| u64::from_ne_bytes(*word) == lock.address)
}
