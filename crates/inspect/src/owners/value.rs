//! Numbers of which some bits may not be known.
//!
//! # Role
//! What a register or a piece of memory holds while code is emulated without knowing all of it.
//! Bits that are not known make the results of those steps unknown that depend on them, and no
//! others: `setcc al` leaves a known byte in an unknown register.

/// A number of up to 64 bits. Bits that are not known are zero in `bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Value {
    bits: u64,
    known: u64,
}

/// Returns the bits that a number of `size` bytes has, at most 8.
pub const fn mask(size: usize) -> u64 {
    if size >= 8 { u64::MAX } else { (1 << (8 * size)) - 1 }
}

impl Value {
    /// A number of which nothing is known.
    pub const UNKNOWN: Value = Value { bits: 0, known: 0 };

    /// Makes a number that is known.
    #[must_use]
    pub const fn of(bits: u64) -> Value {
        Value { bits, known: u64::MAX }
    }

    /// Makes a number of those bits that `known` has.
    #[must_use]
    pub const fn partly(bits: u64, known: u64) -> Value {
        Value { bits: bits & known, known }
    }

    /// Returns the lowest `size` bytes, if they are known.
    #[must_use]
    pub const fn get(self, size: usize) -> Option<u64> {
        let mask = mask(size);
        if self.known & mask == mask { Some(self.bits & mask) } else { None }
    }

    /// Returns the bits that are known, and which these are.
    #[must_use]
    pub const fn parts(self) -> (u64, u64) {
        (self.bits, self.known)
    }

    /// Returns the lowest `size` bytes with zeroes above.
    #[must_use]
    pub const fn zero_extended(self, size: usize) -> Value {
        let mask = mask(size);
        Value { bits: self.bits & mask, known: self.known | !mask }
    }

    /// Returns the number of `size` bytes with its sign in all bits above.
    #[must_use]
    pub const fn sign_extended(self, size: usize) -> Value {
        if size >= 8 {
            return self;
        }
        let shift = 64 - 8 * size as u32;
        // A sign that is not known is not known anywhere.
        let bits = (((self.bits << shift) as i64) >> shift) as u64;
        let known = (((self.known << shift) as i64) >> shift) as u64;
        Value { bits: bits & known, known }
    }

    /// Returns this number with the lowest `size` bytes of another, `shift` bits up.
    #[must_use]
    pub const fn with(self, other: Value, size: usize, shift: u32) -> Value {
        let mask = mask(size) << shift;
        Value {
            bits: self.bits & !mask | (other.bits << shift) & mask,
            known: self.known & !mask | (other.known << shift) & mask,
        }
    }

    /// Returns the number `bits` further down.
    #[must_use]
    pub const fn shifted_down(self, bits: u32) -> Value {
        Value { bits: self.bits >> bits, known: self.known >> bits | !(u64::MAX >> bits) }
    }

    /// Returns the bits that both have.
    #[must_use]
    pub const fn and(self, other: Value) -> Value {
        let zeroes = self.known & !self.bits | other.known & !other.bits;
        Value { bits: self.bits & other.bits, known: self.known & other.known | zeroes }
    }

    /// Returns the bits that either has.
    #[must_use]
    pub const fn or(self, other: Value) -> Value {
        let bits = self.bits | other.bits;
        Value { bits, known: self.known & other.known | bits }
    }

    /// Returns the bits that one of them has.
    #[must_use]
    pub const fn xor(self, other: Value) -> Value {
        let known = self.known & other.known;
        Value { bits: (self.bits ^ other.bits) & known, known }
    }

    /// Returns the other bits.
    #[must_use]
    pub const fn not(self) -> Value {
        Value { bits: !self.bits & self.known, known: self.known }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_byte_in_an_unknown_register_is_known() {
        let al = Value::UNKNOWN.with(Value::of(0x1ff), 1, 0);
        assert_eq!((al.get(1), al.get(2)), (Some(0xff), None));
        assert_eq!(al.zero_extended(1).get(8), Some(0xff));
        assert_eq!(al.sign_extended(1).get(8), Some(u64::MAX));
        assert_eq!(al.with(Value::of(2), 1, 8).get(2), Some(0x2ff));
        assert_eq!(al.shifted_down(4).get(8), None);
    }

    #[test]
    fn bits_that_decide_are_enough() {
        let unknown = Value::UNKNOWN;
        assert_eq!(unknown.and(Value::of(0)).get(8), Some(0));
        assert_eq!(unknown.and(Value::of(0xf)).get(8), None);
        assert_eq!(unknown.or(Value::of(u64::MAX)).get(8), Some(u64::MAX));
        assert_eq!(unknown.xor(Value::of(1)).get(8), None);
        assert_eq!(Value::of(5).xor(Value::of(5)).get(8), Some(0));
        assert_eq!(Value::of(5).not().get(1), Some(0xfa));
        assert_eq!(unknown.sign_extended(4).get(8), None);
    }
}
