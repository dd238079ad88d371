//! What is concluded of threads that the tests lay out.

use super::super::overlay::ReadPages;
use super::super::run::{Callee, Imported};
use super::*;
use crate::memory::SavedMemory;
use crate::stack::CodeAddress;

/// Code that is followed wherever it leads.
struct AllCode;

impl KnownCode for AllCode {
    fn callee(&self, _: u64) -> Callee {
        Callee::Followed
    }

    fn import(&self, _: u64) -> Option<Imported> {
        None
    }
}

#[test]
fn who_is_woken_without_a_value_goes_on_to_the_word() {
    const WORD: u64 = 0x5000;
    // If the second word of the result has its lowest bit, to the end; else an exchange of the word; the end.
    #[cfg(target_arch = "x86_64")]
    let (code, pointer) =
        ([0xf6, 0xc2, 1, 0x75, 4, 0x31, 0xc0, 0x87, 0x03, 0x0f, 0x0b, 0, 0, 0, 0, 0], 3);
    #[cfg(target_arch = "aarch64")]
    let (code, pointer) = (
        [0x3700_0061_u32, 0x5280_0000, 0xb860_8260, 0xd420_0020].map(u32::to_le_bytes).concat(),
        19,
    );
    let mut page = vec![0; 0x1000];
    page[..code.len()].copy_from_slice(&code);
    let memory = SavedMemory::new(WORD, page);
    let pages = ReadPages::new(&memory);
    let decoded = DecodedCode::new(&pages, 1000);
    let search =
        OwnerSearch { code: &AllCode, decoded: &decoded, canary: None, kept: &BTreeSet::new() };
    let events = |returns| {
        let at = CodeAddress::return_to(WORD);
        let registers = Registers::new(WORD, 0x2000).with(UnwindRegister(pointer), Some(WORD));
        let frame = FrameMoment { at, registers, landing: None, of_system: false, guessed: false };
        let thread = ThreadMoment {
            tid: 1,
            frames: vec![frame],
            wait: None,
            thread_pointer: None,
            is_cut: false,
            returns,
        };
        Onwards::new(&search, &thread).whole().events.len()
    };
    assert_eq!(events(Returned::NoValue), 1);
    assert_eq!(events(Returned::Zero), 0, "it may have one");
}

#[test]
fn a_range_that_exceptions_pass_is_mute_where_it_calls_a_library_of_c() {
    let frame = |of_system, landing| FrameMoment {
        at: CodeAddress::return_to(0x1000),
        registers: Registers::new(0x1000, 0x2000),
        landing,
        of_system,
        guessed: false,
    };
    let frames = vec![
        frame(true, None),
        frame(false, Some(Landing::Passes)),
        frame(false, Some(Landing::Passes)),
        frame(false, Some(Landing::Gap)),
        frame(false, Some(Landing::Pad(0x3000))),
    ];
    let thread = ThreadMoment {
        tid: 1,
        frames,
        wait: None,
        thread_pointer: None,
        is_cut: false,
        returns: Returned::Zero,
    };
    let mute: Vec<usize> = (0..6).filter(|&at| is_mute(&thread, at)).collect();
    assert_eq!(mute, [1, 3]);
}
