//! What the decoder says of an instruction.

use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Instruction};

/// An instruction that was decoded.
#[derive(Clone, Copy)]
pub struct Decoded {
    pub(super) what: Instruction,
    pub(super) word: u32,
}

impl Decoded {
    pub(super) fn of(bytes: &[u8]) -> Option<Decoded> {
        let bytes = *bytes.first_chunk::<4>()?;
        let what = InstDecoder::default().decode(&mut U8Reader::new(&bytes)).ok()?;
        Some(Decoded { what, word: u32::from_le_bytes(bytes) })
    }
}
