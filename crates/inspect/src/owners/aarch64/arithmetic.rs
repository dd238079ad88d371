//! The arithmetic of an emulated run: results and flags.

use super::super::value::{Value, mask};
use super::state::Flags;

/// Returns the sum of two numbers and a carry, and the flags of it.
#[must_use]
pub fn add(a: Value, b: Value, carry: Option<bool>, size: usize) -> (Value, Flags) {
    let (Some(x), Some(y), Some(carry)) = (a.get(size), b.get(size), carry) else {
        return (Value::UNKNOWN, Flags::default());
    };
    let wide = u128::from(x) + u128::from(y) + u128::from(carry);
    let sum = wide as u64 & mask(size);
    let flags = Flags {
        negative: Some(sum & top(size) != 0),
        zero: Some(sum == 0),
        carry: Some(wide >> (8 * size) != 0),
        overflow: Some((x ^ sum) & (y ^ sum) & top(size) != 0),
    };
    (Value::of(sum), flags)
}

/// Returns the difference of two numbers, less one without a carry, and the flags of it.
#[must_use]
pub fn subtract(a: Value, b: Value, carry: Option<bool>, size: usize) -> (Value, Flags) {
    let (result, mut flags) = add(a, b.not(), carry, size);
    let (bits, known) = a.xor(b).parts();
    // Numbers of which one bit differs are not the same.
    if flags.zero.is_none() && carry == Some(true) && bits & known & mask(size) != 0 {
        flags.zero = Some(false);
    }
    (result, flags)
}

/// Returns the flags of an operation on bits.
#[must_use]
pub fn of_logic(result: Value, size: usize) -> Flags {
    let (bits, known) = result.parts();
    let all = known & mask(size) == mask(size);
    let negative = (known & top(size) != 0).then_some(bits & top(size) != 0);
    // A bit that is known to be set is enough to know that it is not zero.
    let zero = if bits & mask(size) != 0 { Some(false) } else { all.then_some(true) };
    Flags { negative, zero, carry: Some(false), overflow: Some(false) }
}

fn top(size: usize) -> u64 {
    1 << (8 * size - 1)
}

/// Tells whether the condition of this number holds.
#[must_use]
pub fn holds(flags: &Flags, condition: u8) -> Option<bool> {
    let Flags { negative, zero, carry, overflow } = *flags;
    let not = |value: Option<bool>| value.map(|value| !value);
    let less = || Some(negative? != overflow?);
    // One of two is enough, whatever the other.
    let either = |a: Option<bool>, b: Option<bool>| match (a, b) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    };
    let even = match condition >> 1 {
        0 => zero,
        1 => carry,
        2 => negative,
        3 => overflow,
        4 => not(either(not(carry), zero)),
        5 => not(less()),
        6 => not(either(zero, less())),
        _ => return Some(true),
    };
    if condition & 1 == 0 { even } else { not(even) }
}

/// Returns what a move of a field of bits makes of a register: the bits from `low` on, up to
/// `high`, go to the bottom; or, where `high` is the smaller one, those up to `high` go so far up
/// that `low` is reckoned from the top. `signed`: the sign of the field comes above. `into`: the
/// rest is that of this number.
#[must_use]
pub fn field(
    from: Value,
    (low, high): (u32, u32),
    size: usize,
    signed: bool,
    into: Option<Value>,
) -> Value {
    let width = 8 * size as u32;
    let (low, high) = (low % width, high % width);
    let (length, place) =
        if high >= low { (high - low + 1, 0) } else { (high + 1, (width - low) % width) };
    let start = if high >= low { low } else { 0 };
    let ones = if length >= 64 { u64::MAX } else { (1 << length) - 1 };
    let taken = from.zero_extended(size).shifted_down(start).and(Value::of(ones));
    let put = super::state::shifted_up(taken, place);
    let covered = ones << place;
    let (bits, known) = put.parts();
    let rest = match into {
        Some(into) => into.and(Value::of(!covered)),
        None if signed && place + length < 64 => {
            let at = place + length - 1;
            let above = !((1_u64 << (at + 1)) - 1);
            if known >> at & 1 == 0 {
                Value::partly(0, !above)
            } else if bits >> at & 1 != 0 {
                Value::of(above)
            } else {
                Value::of(0)
            }
        }
        None => Value::of(0),
    };
    put.or(rest).zero_extended(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_the_processors_flags() {
        let value = Value::of;
        let all = [(3_u64, 5_u64), (5, 3), (4, 4), (0, u64::MAX), (1 << 63, 1), (u64::MAX, 0)];
        for (a, b) in all {
            let (difference, flags) = subtract(value(a), value(b), Some(true), 8);
            assert_eq!(difference.get(8), Some(a.wrapping_sub(b)));
            let (x, y) = (a as i64, b as i64);
            for (condition, is) in [
                (0, a == b),
                (1, a != b),
                (2, a >= b),
                (3, a < b),
                (8, a > b),
                (9, a <= b),
                (10, x >= y),
                (11, x < y),
                (12, x > y),
                (13, x <= y),
                (14, true),
                (15, true),
            ] {
                assert_eq!(holds(&flags, condition), Some(is), "{a} {b} {condition}");
            }
        }
        let low = Value::UNKNOWN.with(value(1), 1, 0);
        let (_, flags) = subtract(low, value(2), Some(true), 8);
        assert_eq!((holds(&flags, 1), holds(&flags, 3)), (Some(true), None));
    }

    #[test]
    fn fields_are_taken_and_put() {
        let go = |from: u64, bits, size, signed, into: Option<u64>| {
            field(Value::of(from), bits, size, signed, into.map(Value::of)).get(8)
        };
        assert_eq!(go(0x1234, (4, 11), 8, false, None), Some(0x23), "ubfx");
        assert_eq!(go(0x80, (0, 7), 8, true, None), Some(!0x7f), "sxtb");
        assert_eq!(go(0x80, (0, 7), 4, true, None), Some(0xffff_ff80), "sxtb of 32 bits");
        assert_eq!(go(1, (61, 60), 8, false, None), Some(8), "lsl #3");
        assert_eq!(go(0x80, (3, 31), 4, false, None), Some(0x10), "lsr #3 of 32 bits");
        assert_eq!(go(1 << 63, (63, 63), 8, true, None), Some(u64::MAX), "asr #63");
        assert_eq!(go(0xd, (60, 1), 8, false, Some(!0xf)), Some(!0x2f), "bfi");
        assert_eq!(go(0xab, (0, 7), 8, false, Some(0x1100)), Some(0x11ab), "bfxil");
        let byte = Value::UNKNOWN.with(Value::of(0x5a), 1, 0);
        assert_eq!(field(byte, (4, 7), 8, false, None).get(8), Some(5), "known bits are enough");
        assert_eq!(field(byte, (4, 8), 8, false, None).get(1), None);
    }
}
