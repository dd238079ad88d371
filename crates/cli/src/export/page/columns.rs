//! Numbers of many events, as a page has them: typed arrays in base64.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// A column of numbers: the name of its element in the page, its type, and its bytes in base64.
#[derive(Debug)]
pub(super) struct PageColumn {
    /// The name by which the script finds it.
    pub(super) name: &'static str,
    /// The narrowest of the script's types that has all of the numbers: `u8`, `u16`, `u32`, `f64`.
    pub(super) width: &'static str,
    /// The numbers, each with its lowest byte first, in base64.
    pub(super) data: String,
}

impl PageColumn {
    /// Packs numbers. Those above 2⁵³, of which a script has no whole numbers, are rounded: as
    /// nanoseconds they are 104 days.
    pub(super) fn of(name: &'static str, numbers: &[u64]) -> PageColumn {
        let most = numbers.iter().copied().max().unwrap_or(0);
        let (width, bytes): (_, Vec<u8>) = if most <= u8::MAX.into() {
            ("u8", numbers.iter().map(|&number| number as u8).collect())
        } else if most <= u16::MAX.into() {
            ("u16", numbers.iter().flat_map(|&number| (number as u16).to_le_bytes()).collect())
        } else if most <= u32::MAX.into() {
            ("u32", numbers.iter().flat_map(|&number| (number as u32).to_le_bytes()).collect())
        } else {
            ("f64", numbers.iter().flat_map(|&number| (number as f64).to_le_bytes()).collect())
        };
        PageColumn { name, width, data: BASE64_STANDARD.encode(bytes) }
    }
}

#[cfg(test)]
impl PageColumn {
    /// Returns the numbers again, as the script reads them.
    pub(super) fn numbers(&self) -> Vec<u64> {
        let bytes = BASE64_STANDARD.decode(&self.data).expect("base64");
        match self.width {
            "u8" => bytes.into_iter().map(u64::from).collect(),
            "u16" => {
                bytes.as_chunks().0.iter().map(|&two| u16::from_le_bytes(two).into()).collect()
            }
            "u32" => {
                bytes.as_chunks().0.iter().map(|&four| u32::from_le_bytes(four).into()).collect()
            }
            _ => {
                bytes.as_chunks().0.iter().map(|&eight| f64::from_le_bytes(eight) as u64).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_as_wide_as_its_largest_number() {
        for (largest, width) in [
            (255, "u8"),
            (256, "u16"),
            (65_535, "u16"),
            (65_536, "u32"),
            (u64::from(u32::MAX), "u32"),
            (1 << 32, "f64"),
            (1 << 53, "f64"),
        ] {
            let column = PageColumn::of("began", &[0, largest, 7]);
            assert_eq!((column.width, column.numbers()), (width, vec![0, largest, 7]));
        }
        assert_eq!(PageColumn::of("began", &[]).numbers(), Vec::<u64>::new());
    }
}
