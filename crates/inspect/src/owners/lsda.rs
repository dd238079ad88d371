//! Where an exception would go: the call sites of a function.
//!
//! # Role
//! Compilers write for each function that has something to clean up a table of its calls
//! (`.gcc_except_table`): which instructions, and which landing pad an exception from there would
//! run. Nothing in it is trusted: whatever the bytes are, there is an answer, after a number of
//! steps that the bytes' length bounds.

use std::ops::Range;

/// More calls than any function has.
const MOST_SITES: usize = 1 << 20;

/// What an exception would do in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Landing {
    /// It runs the pad at this address.
    Pad(u64),
    /// It passes: there is nothing to clean up.
    Passes,
    /// It cannot come from there, the compiler thinks.
    Gap,
}

/// Returns what an exception from the call at `pc` would do, by the table in `bytes`, which lies at
/// `address`, for the function that begins at `function`. `None` if the table is damaged or of a
/// kind that no compiler writes here.
#[must_use]
pub fn landing(bytes: &[u8], address: u64, function: u64, pc: u64) -> Option<Landing> {
    let mut table = TableReader { bytes, address, at: 0 };
    let encoding = table.byte()?;
    let base = match encoding {
        OMITTED => function,
        encoding => table.encoded(encoding)?,
    };
    if table.byte()? != OMITTED {
        table.uleb()?;
    }
    let encoding = table.byte()?;
    let length = usize::try_from(table.uleb()?).ok()?;
    let end = table.at.checked_add(length).filter(|&end| end <= bytes.len())?;
    let offset = pc.checked_sub(function)?;
    for _ in 0..MOST_SITES {
        if table.at >= end {
            break;
        }
        let site = table.site(encoding)?;
        if site.calls.contains(&offset) {
            let pad = (site.pad != 0).then(|| base.wrapping_add(site.pad));
            return Some(pad.map_or(Landing::Passes, Landing::Pad));
        }
        if site.calls.end > offset {
            break;
        }
    }
    Some(Landing::Gap)
}

/// The encoding of what is left out, `DW_EH_PE_omit`.
const OMITTED: u8 = 0xff;

struct CallSite {
    /// Counted from the function's start.
    calls: Range<u64>,
    /// Counted from the table's base; 0 for none.
    pad: u64,
}

struct TableReader<'a> {
    bytes: &'a [u8],
    address: u64,
    at: usize,
}

impl TableReader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    fn uleb(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            value |= part.checked_shl(shift).filter(|all| all >> shift == part)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
            shift += 7;
        }
    }

    fn number<const N: usize>(&mut self) -> Option<[u8; N]> {
        let from = self.at;
        self.at = from.checked_add(N)?;
        self.bytes.get(from..self.at)?.try_into().ok()
    }

    /// Reads a pointer of one of the formats that compilers use here: absolute, or relative to its
    /// own place.
    fn encoded(&mut self, encoding: u8) -> Option<u64> {
        let place = self.address.wrapping_add(self.at as u64);
        let value = match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => u64::from_le_bytes(self.number()?),
            0x01 => self.uleb()?,
            0x02 => u16::from_le_bytes(self.number()?).into(),
            0x03 => u32::from_le_bytes(self.number()?).into(),
            0x0a => i64::from(i16::from_le_bytes(self.number()?)).cast_unsigned(),
            0x0b => i64::from(i32::from_le_bytes(self.number()?)).cast_unsigned(),
            _ => return None,
        };
        match encoding & 0xf0 {
            0x00 => Some(value),
            0x10 => Some(place.wrapping_add(value)),
            _ => None,
        }
    }

    fn site(&mut self, encoding: u8) -> Option<CallSite> {
        let encoding = encoding & 0x0f;
        let (start, length) = (self.encoded(encoding)?, self.encoded(encoding)?);
        let pad = self.encoded(encoding)?;
        let _action = self.uleb()?;
        Some(CallSite { calls: start..start.saturating_add(length), pad })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls at 0x10..0x18 with the pad 0x40, 0x20..0x24 without, 0x30..0x38 with the pad 0x48.
    const TABLE: &[u8] = &[
        0xff, 0xff, 1, 12, // base: the function; no types; uleb128
        0x10, 8, 0x40, 0, 0x20, 4, 0, 0, 0x30, 8, 0x48, 1,
    ];

    fn at(offset: u64) -> Option<Landing> {
        landing(TABLE, 0x9000, 0x4000, 0x4000 + offset)
    }

    #[test]
    fn the_call_decides() {
        assert_eq!(at(0x10), Some(Landing::Pad(0x4040)));
        assert_eq!(at(0x17), Some(Landing::Pad(0x4040)));
        assert_eq!(at(0x18), Some(Landing::Gap));
        assert_eq!(at(0x23), Some(Landing::Passes));
        assert_eq!(at(0x28), Some(Landing::Gap));
        assert_eq!(at(0), Some(Landing::Gap));
        assert_eq!(at(0x99), Some(Landing::Gap));
    }

    #[test]
    fn a_base_of_its_own_counts() {
        // Relative to its place, 4 bytes signed; numbers of 4 bytes.
        let mut table = vec![0x1b];
        table.extend((-0x1001_i32).to_le_bytes());
        table.extend([0xff, 3, 13]);
        for number in [0_u32, 4, 8] {
            table.extend(number.to_le_bytes());
        }
        table.push(0);
        assert_eq!(landing(&table, 0x9000, 0x4000, 0x4001), Some(Landing::Pad(0x8008)));
    }

    #[test]
    fn damage_is_no_answer_and_no_panic() {
        for length in 0..TABLE.len() {
            assert_eq!(landing(&TABLE[..length], 0, 0x4000, 0x4010), None, "{length}");
        }
        assert_eq!(landing(TABLE, 0, 0x4000, 0x3fff), None, "outside of the function");
        assert_eq!(landing(&[0x80; 64], 0, 0, 0), None);
        assert_eq!(landing(&[0xff, 0xff, 1, 0x80, 0x80], 0, 0, 0), None);
        assert_eq!(landing(&[0xff, 0xff, 0x50, 4, 1, 1, 1, 1], 0, 0, 0), None);
        let endless = [&[0xff, 0xff, 1][..], &[0xff; 11]].concat();
        assert_eq!(landing(&endless, 0, 0, 0), None);
        // Any bytes: an answer or none.
        let mut state = 1_u32;
        let mut byte = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        for length in 0..2000 {
            let bytes: Vec<u8> = (0..length % 64).map(|_| byte()).collect();
            let _ = landing(&bytes, u64::MAX - 9, u64::from(byte()), u64::from(byte()));
        }
    }
}
