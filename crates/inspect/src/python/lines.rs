//! From an instruction to its line, by the tables of each version.
//!
//! # Role
//! Pure functions over bytes that anybody may have written: every step moves forward, and what
//! does not parse has no line.

use super::layout::LineTable;

/// Returns the line of the instruction at a byte offset; `first` is the line at which the code
/// begins.
pub(super) fn line(kind: LineTable, table: &[u8], first: i64, offset: u32) -> Option<u32> {
    let found = match kind {
        LineTable::Steps => steps(table, first, offset),
        LineTable::Ranges => ranges(table, first, offset)?,
        LineTable::Locations => locations(table, first, offset)?,
    };
    u32::try_from(found).ok().filter(|&line| line != 0)
}

/// Steps of the offset and of the line, both added up as far as the instruction.
fn steps(table: &[u8], first: i64, offset: u32) -> i64 {
    let (mut at, mut line) = (0_u64, first);
    for pair in table.chunks_exact(2) {
        at += u64::from(pair[0]);
        if at > u64::from(offset) {
            break;
        }
        line += i64::from(pair[1].cast_signed());
    }
    line
}

/// Lengths of ranges with the step of the line in front of each; -128 is "no line".
fn ranges(table: &[u8], first: i64, offset: u32) -> Option<i64> {
    let (mut at, mut line) = (0_u64, first);
    for pair in table.chunks_exact(2) {
        let step = pair[1].cast_signed();
        if step != -128 {
            line += i64::from(step);
        }
        at += u64::from(pair[0]);
        if at > u64::from(offset) {
            return (step != -128).then_some(line);
        }
    }
    None
}

/// Entries of one head byte each, with its high bit set, and a few more without: the head has the
/// length in code units of two bytes, and how the rest is to be read.
fn locations(table: &[u8], first: i64, offset: u32) -> Option<i64> {
    let unit = u64::from(offset / 2);
    let (mut at, mut line, mut rest) = (0_u64, first, table);
    while let Some((&head, after)) = rest.split_first() {
        let end = after.iter().position(|byte| byte & 0x80 != 0).unwrap_or(after.len());
        let (body, next) = after.split_at(end);
        let code = head >> 3 & 15;
        let step = match code {
            0..=9 | 15 => 0,
            10..=12 => i64::from(code) - 10,
            _ => signed(body),
        };
        line = line.checked_add(step)?;
        at += u64::from(head & 7) + 1;
        if at > unit {
            return (code != 15).then_some(line);
        }
        rest = next;
    }
    None
}

/// Returns the first number of `bytes`: six bits a byte, the lowest first, bit 6 where more follow,
/// and the sign in the lowest bit.
fn signed(bytes: &[u8]) -> i64 {
    let mut number = 0_i64;
    for (at, &byte) in bytes.iter().take(8).enumerate() {
        number |= i64::from(byte & 63) << (6 * at);
        if byte & 64 == 0 {
            break;
        }
    }
    if number & 1 == 1 { -(number >> 1) } else { number >> 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The functions of `f`, whose `def` is in line 3, as each version compiled it.
    #[test]
    fn the_tables_of_all_versions_lead_to_lines() {
        let steps = [0, 1, 10, 1, 6, 255];
        assert_eq!(line(LineTable::Steps, &steps, 3, 0), Some(4));
        assert_eq!(line(LineTable::Steps, &steps, 3, 12), Some(5));
        assert_eq!(line(LineTable::Steps, &steps, 3, 200), Some(4));
        let ranges = [2, 0, 4, 1, 6, 128, 2, 2];
        let at = |offset| line(LineTable::Ranges, &ranges, 3, offset);
        assert_eq!([at(0), at(2), at(8), at(12), at(14)], [Some(3), Some(4), None, Some(6), None]);
        // RESUME without a column, one short entry, a long one two lines back, and none.
        let locations = [0x80 | 13 << 3, 0, 0x80 | 11 << 3 | 1, 1, 2, 0x80 | 14 << 3, 5, 0, 1, 1];
        let at = |offset| line(LineTable::Locations, &locations, 3, offset);
        assert_eq!([at(0), at(2), at(4), at(6), at(8)], [Some(3), Some(4), Some(4), Some(2), None]);
        assert_eq!(line(LineTable::Locations, &[0x80 | 15 << 3], 3, 0), None);
    }

    #[test]
    fn damaged_tables_have_no_line_and_end() {
        for kind in [LineTable::Steps, LineTable::Ranges, LineTable::Locations] {
            for byte in [0, 0x7f, 0x80, 0xff] {
                let _ = line(kind, &[byte; 65], i64::from(i32::MAX), u32::MAX);
                let _ = line(kind, &[byte; 64], i64::from(i32::MIN), 0);
            }
            let _ = line(kind, &[], 1, 0);
        }
        assert_eq!(signed(&[0xff; 20]), -((1_i64 << 47) - 1));
    }
}
