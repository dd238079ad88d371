//! What an interpreter says of its own layout, from 3.13 on.
//!
//! # Layout
//! The state of the runtime begins with `xdebugpy`, the version, whether it is a free-threaded
//! build, and then offsets, 8 bytes each, in an order that each minor version has for itself.
//! An offset that no such structure could have is not taken.

use super::layout::{FrameRoot, FrameShape, GilPlace, Layout, Minor};
use super::read::PageReader;

const COOKIE: &[u8; 8] = b"xdebugpy";
/// Words of the description that are read.
const WORDS: usize = 64;
/// No structure is larger; the state of an interpreter takes some 200 KiB.
const FURTHEST: u64 = 1 << 20;

/// What stands at the beginning of a runtime's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SelfDescription {
    words: [u64; WORDS],
}

impl SelfDescription {
    /// Reads the description at the start of a runtime's state; `None` if there is none.
    pub(super) fn read(runtime: u64, reader: &PageReader<'_>) -> Option<SelfDescription> {
        let mut bytes = [0; 8 * WORDS];
        reader.bytes(runtime, &mut bytes)?;
        if !bytes.starts_with(COOKIE) {
            return None;
        }
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().ok()?);
        }
        Some(SelfDescription { words })
    }

    /// Returns the version.
    pub(super) fn version(&self) -> Minor {
        ((self.words[1] >> 24) as u8, (self.words[1] >> 16) as u8)
    }

    /// Tells whether the build has no GIL.
    pub(super) fn is_free_threaded(&self) -> bool {
        self.words[2] != 0
    }

    /// Returns the table's layout with what the interpreter says put over it; `None` if it says
    /// what cannot be.
    pub(super) fn over(&self, table: Layout) -> Option<Layout> {
        let at = |word: usize| self.words.get(word).copied().filter(|&offset| offset < FURTHEST);
        let newer = table.version >= (3, 14);
        // 3.14 has a word more before the GIL and two behind it, and two more of a frame.
        let (gil, thread, frame) = if newer { (15, 22, 31) } else { (14, 19, 28) };
        let code = if newer { 39 } else { 34 };
        let FrameShape::Record { entries_from, .. } = table.frame else { return None };
        let mut layout = Layout {
            interpreters: at(5)?,
            interpreter_next: at(8)?,
            threads: at(9)?,
            gil: GilPlace::Interpreter(at(gil)?),
            thread_next: at(thread + 2)?,
            root: FrameRoot::Direct(at(thread + 4)?),
            ident: at(thread + 5)?,
            native: Some(at(thread + 6)?),
            frame_back: at(frame + 1)?,
            frame_code: at(frame + 2)?,
            frame: FrameShape::Record {
                instruction: at(frame + 3)?,
                locals: at(frame + 4)?,
                owner: at(frame + 5)?,
                entries_from,
            },
            ..table
        };
        layout.code.file = at(code + 1)?;
        layout.code.name = at(code + 2)?;
        layout.code.qualified = Some(at(code + 3)?);
        layout.code.lines = at(code + 4)?;
        layout.code.first_line = at(code + 5)?;
        layout.code.instructions = at(code + 9)?;
        Some(layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SavedMemory;

    /// What 3.13.0 and 3.14.10 say of themselves, as far as the code.
    const SAID: [(u64, &[u64]); 2] = [
        (
            0x030d_00f0,
            &[
                0, 283_320, 608, 632, 194_968, 7272, 7264, 7344, 7480, 7656, 7648, 7664, 16, 7752,
                0, 7768, 7760, 304, 0, 8, 16, 72, 152, 160, 232, 32, 80, 8, 0, 56, 72, 70, 208,
                112, 120, 128, 136, 68, 52, 96, 104, 200,
            ],
        ),
        (
            0x030e_0af0,
            &[
                0, 316_616, 784, 808, 200_000, 7280, 7272, 7344, 7360, 7528, 7688, 7680, 7696, 16,
                7784, 0, 7800, 7792, 0, 0, 304, 0, 8, 16, 72, 152, 160, 232, 32, 88, 8, 0, 56, 80,
                74, 64, 0, 216, 112, 120, 128, 136, 68, 52, 96, 104, 208,
            ],
        ),
    ];

    fn said(version: u64, words: &[u64]) -> Option<SelfDescription> {
        let mut bytes = COOKIE.to_vec();
        bytes.extend(version.to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes.resize(8 * WORDS, 0xee);
        let memory = SavedMemory::new(0x1000, bytes);
        SelfDescription::read(0x1000, &PageReader::new(&memory))
    }

    #[test]
    fn the_table_is_what_these_builds_say_of_themselves() {
        for (version, words) in SAID {
            let found = said(version, words).expect("a description");
            let table = Layout::of(found.version()).expect("read");
            assert_eq!(found.over(table), Some(table));
            assert!(!found.is_free_threaded());
        }
    }

    #[test]
    fn what_cannot_be_is_not_believed() {
        let (version, words) = SAID[0];
        let mut wrong = words.to_vec();
        wrong[3] = 1 << 40;
        let table = Layout::of((3, 13)).expect("read");
        assert_eq!(said(version, &wrong).and_then(|found| found.over(table)), None);
        wrong[0] = 1;
        assert!(said(version, &wrong).is_some_and(|found| found.is_free_threaded()));
        let memory = SavedMemory::new(0x1000, vec![0; 8 * WORDS]);
        assert_eq!(SelfDescription::read(0x1000, &PageReader::new(&memory)), None);
    }
}
