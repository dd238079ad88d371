//! Runs over code and memory that the tests lay out. The code of each processor runs on every other.

mod aarch64;
mod x86_64;

use super::functions::KnownFunction;
use super::overlay::{Overlay, ReadPages};
use super::processor::Processor;
use super::run::{Callee, DecodedCode, EXCEPTION, Imported, KnownCode, Ran, run};
use super::shape::{AwaitedLock, LockShape, Touch};
use super::state::State;
use crate::memory::SavedMemory;

/// Where code, data and stack of a test lie: one page each.
const CODE: u64 = 0x10_0000;
const DATA: u64 = 0x10_1000;
const STACK: u64 = 0x10_2800;
/// The slots of `_Unwind_Resume`, a function that unlocks, `memcmp`, C++20's that wait and notify,
/// `__cxa_end_catch`, and a function of which nothing is known.
const RESUME: u64 = DATA + 0x800;
const UNLOCK: u64 = DATA + 0x808;
const COMPARE: u64 = DATA + 0x810;
const WAIT: u64 = DATA + 0x818;
const NOTIFY: u64 = DATA + 0x820;
const END_CATCH: u64 = DATA + 0x828;
const ANOTHER: u64 = DATA + 0x830;

struct TestCode;

impl KnownCode for TestCode {
    fn callee(&self, address: u64) -> Callee {
        match address {
            CODE..DATA => Callee::Followed,
            _ => Callee::Nothing,
        }
    }

    fn import(&self, slot: u64) -> Option<Imported> {
        match slot {
            RESUME => Some(Imported::Known(KnownFunction::Resumes)),
            UNLOCK => Some(Imported::Known(KnownFunction::Unlocks)),
            COMPARE => Some(Imported::Known(KnownFunction::Compares)),
            WAIT => Some(Imported::Known(KnownFunction::SleepsOn)),
            NOTIFY => Some(Imported::Known(KnownFunction::Wakes)),
            END_CATCH => Some(Imported::Known(KnownFunction::Returns)),
            ANOTHER => Some(Imported::Skipped),
            _ => None,
        }
    }
}

/// Runs `code` as a landing pad. The registers of these numbers have the address of the stack, and
/// that of the data, which begins with `data`.
fn pad<P: Processor>(
    code: &[u8],
    data: &[u8],
    (stack, pointer): (u16, u16),
    known: Option<u64>,
) -> Ran {
    let mut bytes = vec![0; 0x3000];
    bytes[..code.len()].copy_from_slice(code);
    bytes[0x1000..0x1000 + data.len()].copy_from_slice(data);
    let memory = SavedMemory::new(CODE, bytes);
    let pages = ReadPages::new(&memory);
    let decoded = DecodedCode::<P>::new(&pages, 100_000);
    let registers = P::with(|number| match number {
        0 => Some(EXCEPTION),
        _ if number == stack => Some(STACK),
        _ if number == pointer => known,
        _ => None,
    });
    run(State::new(Overlay::new(&pages), registers, CODE), &TestCode, &decoded, false)
}

fn touch(ran: &Ran, shape: LockShape) -> Option<Touch> {
    AwaitedLock { address: DATA, shape }.first_touch(&ran.events)
}
