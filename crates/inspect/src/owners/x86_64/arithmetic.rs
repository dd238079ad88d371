//! The arithmetic of an emulated run: results and flags.

use super::super::value::{Value, mask};
use super::state::Flags;

/// Returns the sum of two numbers and a carry, and sets the flags.
pub fn add(flags: &mut Flags, a: Value, b: Value, carry: Option<bool>, size: usize) -> Value {
    let (Some(x), Some(y), Some(carry)) = (a.get(size), b.get(size), carry) else {
        *flags = Flags::default();
        return Value::UNKNOWN;
    };
    let wide = u128::from(x) + u128::from(y) + u128::from(carry);
    let result = Value::of(wide as u64 & mask(size));
    flags.of_result(result, size);
    flags.carry = Some(wide >> (8 * size) != 0);
    let sum = result.get(size).unwrap_or_default();
    flags.overflow = Some((x ^ sum) & (y ^ sum) & top(size) != 0);
    result
}

/// Returns the difference of two numbers less a borrow, and sets the flags.
pub fn subtract(flags: &mut Flags, a: Value, b: Value, borrow: Option<bool>, size: usize) -> Value {
    let (Some(x), Some(y), Some(borrow)) = (a.get(size), b.get(size), borrow) else {
        *flags = Flags::default();
        flags.zero = differ(a, b, size).then_some(false);
        return Value::UNKNOWN;
    };
    let result = Value::of(x.wrapping_sub(y).wrapping_sub(borrow.into()) & mask(size));
    flags.of_result(result, size);
    flags.carry = Some(u128::from(x) < u128::from(y) + u128::from(borrow));
    let difference = result.get(size).unwrap_or_default();
    flags.overflow = Some((x ^ y) & (x ^ difference) & top(size) != 0);
    result
}

/// Tells whether two numbers differ in bits that are known of both.
fn differ(a: Value, b: Value, size: usize) -> bool {
    let (bits, known) = a.xor(b).parts();
    bits & known & mask(size) != 0
}

fn top(size: usize) -> u64 {
    1 << (8 * size - 1)
}

/// The ways in which bits are moved within a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// They go to the left, and zeroes come in.
    Left,
    /// They go to the right, and zeroes come in.
    Right,
    /// They go to the right, and the sign comes in.
    Arithmetic,
    /// They go round to the left.
    RotateLeft,
    /// They go round to the right.
    RotateRight,
}

/// Returns a number with its bits moved, and sets the flags. Flags that compilers do not ask for
/// after it are not known.
pub fn shift(flags: &mut Flags, how: Shift, value: Value, count: Value, size: usize) -> Value {
    let Some(count) = count.get(1).map(|count| count & if size == 8 { 63 } else { 31 }) else {
        *flags = Flags::default();
        return Value::UNKNOWN;
    };
    if count == 0 {
        return value;
    }
    let width = 8 * size as u64;
    let by = count.min(63) as u32;
    let result = match how {
        Shift::Right if count < width => value.zero_extended(size).shifted_down(by),
        Shift::Right => Value::of(0),
        _ => match (how, value.get(size)) {
            (_, None) => Value::UNKNOWN,
            (Shift::Left, Some(number)) if count < width => Value::of(number << by),
            (Shift::Left | Shift::Right, Some(_)) => Value::of(0),
            (Shift::Arithmetic, Some(_)) => {
                let signed = value.sign_extended(size).get(8).unwrap_or_default() as i64;
                Value::of((signed >> by).cast_unsigned())
            }
            (Shift::RotateLeft | Shift::RotateRight, Some(number)) => {
                let turn = (count % width) as u32;
                let left = if how == Shift::RotateLeft { turn } else { width as u32 - turn };
                let (left, right) = (left % width as u32, (width as u32 - left) % width as u32);
                Value::of(if left == 0 { number } else { number << left | number >> right })
            }
        },
    };
    let result = result.zero_extended(size);
    match how {
        Shift::RotateLeft | Shift::RotateRight => (flags.carry, flags.overflow) = (None, None),
        _ => {
            flags.of_result(result, size);
            flags.overflow = None;
            let out = match how {
                Shift::Left => width.checked_sub(count),
                _ => Some(count - 1),
            };
            flags.carry = value.get(size).and_then(|number| match (out, how) {
                (Some(bit), _) if bit < width => Some(number >> bit & 1 != 0),
                (_, Shift::Arithmetic) => None,
                _ => Some(false),
            });
        }
    }
    result
}

/// Tells whether the condition holds that a jump, a move or a set asks for.
#[must_use]
pub fn holds(flags: &Flags, condition: iced_x86::ConditionCode) -> Option<bool> {
    use iced_x86::ConditionCode as C;
    let Flags { carry, parity, zero, sign, overflow } = *flags;
    let less = || Some(sign? != overflow?);
    // One of two is enough, whatever the other.
    let either = |a: Option<bool>, b: Option<bool>| match (a, b) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    };
    let not = |value: Option<bool>| value.map(|value| !value);
    match condition {
        C::o => overflow,
        C::no => not(overflow),
        C::b => carry,
        C::ae => not(carry),
        C::e => zero,
        C::ne => not(zero),
        C::be => either(carry, zero),
        C::a => not(either(carry, zero)),
        C::s => sign,
        C::ns => not(sign),
        C::p => parity,
        C::np => not(parity),
        C::l => less(),
        C::ge => not(less()),
        C::le => either(zero, less()),
        C::g => not(either(zero, less())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::ConditionCode as C;

    #[test]
    fn sums_and_differences_have_the_processors_flags() {
        let mut flags = Flags::default();
        let value = |v: u64| Value::of(v);
        let sum = add(&mut flags, value(0x7f), value(1), Some(false), 1);
        assert_eq!(sum.get(1), Some(0x80));
        assert_eq!(
            (flags.overflow, flags.carry, flags.sign),
            (Some(true), Some(false), Some(true))
        );
        add(&mut flags, value(u64::MAX), value(1), Some(false), 8);
        assert_eq!(
            (flags.zero, flags.carry, flags.overflow),
            (Some(true), Some(true), Some(false))
        );
        let all = [(3_u64, 5_u64), (5, 3), (4, 4), (0, u64::MAX), (1 << 63, 1), (u64::MAX, 0)];
        for (a, b) in all {
            subtract(&mut flags, value(a), value(b), Some(false), 8);
            assert_eq!(holds(&flags, C::b), Some(a < b), "{a} {b}");
            assert_eq!(holds(&flags, C::a), Some(a > b), "{a} {b}");
            assert_eq!(holds(&flags, C::l), Some((a as i64) < b as i64), "{a} {b}");
            assert_eq!(holds(&flags, C::g), Some((a as i64) > b as i64), "{a} {b}");
            assert_eq!(holds(&flags, C::le), Some((a as i64) <= b as i64), "{a} {b}");
            assert_eq!(holds(&flags, C::e), Some(a == b), "{a} {b}");
        }
        let low = Value::UNKNOWN.with(value(1), 1, 0);
        subtract(&mut flags, low, value(2), Some(false), 8);
        assert_eq!((holds(&flags, C::ne), holds(&flags, C::b)), (Some(true), None));
    }

    #[test]
    fn bits_move_as_the_processor_moves_them() {
        let mut flags = Flags::default();
        let mut go = |how, value: u64, count: u64, size| {
            shift(&mut flags, how, Value::of(value), Value::of(count), size).get(8)
        };
        assert_eq!(go(Shift::Left, 0x81, 1, 1), Some(2));
        assert_eq!(go(Shift::Left, 1, 32, 4), Some(1), "counts go round");
        assert_eq!(go(Shift::Left, 1, 20, 1), Some(0));
        assert_eq!(go(Shift::Right, 0x80, 7, 1), Some(1));
        assert_eq!(go(Shift::Arithmetic, 0x80, 1, 1), Some(0xc0));
        assert_eq!(go(Shift::Arithmetic, 0x80, 31, 1), Some(0xff));
        assert_eq!(go(Shift::RotateLeft, 0x81, 1, 1), Some(3));
        assert_eq!(go(Shift::RotateRight, 1, 1, 8), Some(1 << 63));
        assert_eq!(go(Shift::RotateLeft, 0x12, 8, 1), Some(0x12));
        let count = Value::UNKNOWN;
        assert_eq!(shift(&mut flags, Shift::Left, Value::of(1), count, 8), Value::UNKNOWN);
        assert_eq!(flags, Flags::default());
    }
}
