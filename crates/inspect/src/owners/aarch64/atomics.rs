//! Instructions that change memory as one step, and the pairs of loads and stores that do.
//!
//! # Pairs
//! An exclusive load and the store that belongs to it are one step if the store succeeds, and in a
//! run nobody else is there, so that it does. What the step is for others the code between tells:
//! nothing lies between those of an exchange; a comparison and a jump lie between those of one that
//! compares. That one is told at its load, for where the comparison fails the store is never reached;
//! all others at their stores.

use super::super::event::{Change, Event, RunEnd};
use super::super::state::State;
use super::super::value::{Value, mask};
use super::decoded::Decoded;
use super::memory::Place;
use super::state::{Aarch64, Monitor, ZERO, bytes};
use yaxpeax_arm::armv8::a64::{Opcode, Operand, ShiftStyle};

/// The condition of a jump where two numbers differ.
const DIFFERENT: u8 = 1;

/// Does an instruction that changes memory as one step, or a half of a pair; returns `false` if it
/// is another. `pc`: its address.
///
/// # Errors
/// The run cannot go on.
pub fn execute(
    state: &mut State<'_, Aarch64>,
    instruction: &Decoded,
    pc: u64,
    events: &mut Vec<Event>,
) -> Result<bool, RunEnd> {
    if whole(state, instruction, events)? {
        return Ok(true);
    }
    let [first, second, third, _] = instruction.what.operands;
    match (kind(instruction.what.opcode), first, second, third) {
        (Some((Half::Load, size)), Operand::Register(of, to), place, _) => {
            let size = size.unwrap_or(bytes(of));
            load(state, (to, size), &place, pc, events)?;
        }
        (
            Some((Half::Store, size)),
            Operand::Register(_, status),
            Operand::Register(of, from),
            place,
        ) => {
            let size = size.unwrap_or(bytes(of));
            store(state, (status, from, size), &place, pc, events)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Load,
    Store,
}

/// Returns which half of a pair an instruction is, and the bytes of it, if not those of its register.
fn kind(name: Opcode) -> Option<(Half, Option<usize>)> {
    use Opcode as O;
    Some(match name {
        O::LDXR | O::LDAXR => (Half::Load, None),
        O::LDXRB | O::LDAXRB => (Half::Load, Some(1)),
        O::LDXRH | O::LDAXRH => (Half::Load, Some(2)),
        O::STXR | O::STLXR => (Half::Store, None),
        O::STXRB | O::STLXRB => (Half::Store, Some(1)),
        O::STXRH | O::STLXRH => (Half::Store, Some(2)),
        _ => return None,
    })
}

fn load(
    state: &mut State<'_, Aarch64>,
    (to, size): (u16, usize),
    place: &Operand,
    pc: u64,
    events: &mut Vec<Event>,
) -> Result<(), RunEnd> {
    let Some(address) = Place::of(&state.processor, place, pc).and_then(|place| place.address)
    else {
        state.processor.monitor = None;
        state.processor.set(to, Value::UNKNOWN.zero_extended(size));
        return Ok(());
    };
    let value = state.memory.read(address, size)?;
    let before = value.get(size);
    let compared = compared(state, (to, size), place);
    if let Some((expected, new)) = compared {
        // What does not fit into the number is never found there.
        let expected = expected.get(8).filter(|&number| number <= mask(size));
        let new = new.get(size);
        let after = match (before, expected) {
            (Some(before), Some(expected)) if before == expected => new,
            (Some(before), Some(_)) => Some(before),
            _ => None,
        };
        let change = Change::CompareExchange { expected, new };
        events.push(Event::Locked { address, size, change, before, after });
    }
    let told = compared.is_some();
    state.processor.monitor = Some(Monitor { address, size, before, register: to, at: pc, told });
    state.processor.set(to, value);
    Ok(())
}

/// Returns what the number that is loaded into `register` is compared with, and what is stored if
/// they are the same, where nothing else is done between the load and the store. The state is that
/// before the load, at the instruction behind it.
fn compared(
    state: &State<'_, Aarch64>,
    (register, size): (u16, usize),
    place: &Operand,
) -> Option<(Value, Value)> {
    let mut at = state.pc;
    let mut next = || {
        let mut bytes = [0; 4];
        let length = state.memory.pages().bytes(at, &mut bytes);
        at = at.checked_add(4)?;
        Decoded::of(&bytes[..length])
    };
    let is_whole = |how: ShiftStyle| match how {
        ShiftStyle::LSL | ShiftStyle::UXTX => true,
        ShiftStyle::UXTB => size == 1,
        ShiftStyle::UXTH => size <= 2,
        ShiftStyle::UXTW => size <= 4,
        _ => false,
    };
    let is_it = |operand: &Operand| match *operand {
        Operand::Register(_, number) | Operand::RegisterOrSP(_, number) => {
            number == register && number != ZERO
        }
        Operand::RegShift(how, 0, _, number) => {
            number == register && number != ZERO && is_whole(how)
        }
        _ => false,
    };
    // A base that the load has changed is another one's where the store is.
    let (Operand::RegPreIndex(base, ..) | Operand::RegPostIndex(base, ..)) = *place else {
        return None;
    };
    if base == register {
        return None;
    }
    let one = next()?;
    let [first, second, third, _] = one.what.operands;
    // All that was loaded is compared.
    let Operand::Register(code, _) = first else { return None };
    if bytes(code) < size {
        return None;
    }
    let expected = match one.what.opcode {
        Opcode::CBNZ if is_it(&first) => Value::of(0),
        Opcode::SUBS if matches!(first, Operand::Register(_, ZERO)) => {
            let other = match (is_it(&second), is_it(&third)) {
                (true, false) => third,
                (false, true) => second,
                _ => return None,
            };
            if !matches!(next()?.what.opcode, Opcode::Bcc(DIFFERENT)) {
                return None;
            }
            state.processor.operand(&other, bytes(code))?
        }
        _ => return None,
    };
    let store = next()?;
    let (half, of) = kind(store.what.opcode)?;
    let [_, Operand::Register(code, from), to, _] = store.what.operands else { return None };
    let same = half == Half::Store && of.unwrap_or(bytes(code)) == size && to == *place;
    (same && from != register).then(|| (expected, state.processor.get(from)))
}

fn store(
    state: &mut State<'_, Aarch64>,
    (status, from, size): (u16, u16, usize),
    place: &Operand,
    pc: u64,
    events: &mut Vec<Event>,
) -> Result<(), RunEnd> {
    let address = Place::of(&state.processor, place, pc).and_then(|place| place.address);
    let address = address.ok_or(RunEnd::UnknownStore)?;
    let monitor = state.processor.monitor.take();
    // Alone it fails, and is tried for ever.
    let monitor = monitor.filter(|monitor| (monitor.address, monitor.size) == (address, size));
    let monitor = monitor.ok_or(RunEnd::BadCode)?;
    let value = state.processor.get(from);
    state.memory.write(address, value, size)?;
    if !monitor.told {
        let is_other = from != monitor.register || from == ZERO;
        let behind = monitor.at.wrapping_add(4) == pc && is_other;
        let change = if behind { Change::Exchange } else { Change::Update };
        let (before, after) = (monitor.before, value.get(size));
        events.push(Event::Locked { address, size, change, before, after });
    }
    state.processor.set(status, Value::of(0));
    Ok(())
}

/// What is made of the number in memory and that in a register.
#[derive(Clone, Copy)]
enum Made {
    Exchanged,
    Compared,
    Added,
    Cleared,
    Inverted,
    Set,
    Unknown,
}

/// Does an instruction that changes memory as one step by itself.
fn whole(
    state: &mut State<'_, Aarch64>,
    instruction: &Decoded,
    events: &mut Vec<Event>,
) -> Result<bool, RunEnd> {
    let Some((made, size)) = made(instruction.what.opcode) else { return Ok(false) };
    let [Operand::Register(of, first), Operand::Register(_, second), place, _] =
        instruction.what.operands
    else {
        return Err(RunEnd::BadCode);
    };
    let size = size.unwrap_or(bytes(of));
    let place = Place::of(&state.processor, &place, 0).ok_or(RunEnd::BadCode)?;
    let address = place.address.ok_or(RunEnd::UnknownStore)?;
    let old = state.memory.read(address, size)?;
    let given = state.processor.get(first).zero_extended(size);
    let new = match made {
        Made::Exchanged => given,
        Made::Compared => return compare(state, (first, second), (address, size), events),
        Made::Added => {
            let both = old.get(size).zip(given.get(size));
            both.map_or(Value::UNKNOWN, |(a, b)| Value::of(a.wrapping_add(b)))
        }
        Made::Cleared => old.and(given.not()),
        Made::Inverted => old.xor(given),
        Made::Set => old.or(given),
        Made::Unknown => Value::UNKNOWN,
    };
    state.memory.write(address, new, size)?;
    state.processor.set(second, old);
    let change = match made {
        Made::Exchanged => Change::Exchange,
        _ => Change::Update,
    };
    let (before, after) = (old.get(size), new.get(size));
    events.push(Event::Locked { address, size, change, before, after });
    Ok(true)
}

fn compare(
    state: &mut State<'_, Aarch64>,
    (expected, new): (u16, u16),
    (address, size): (u64, usize),
    events: &mut Vec<Event>,
) -> Result<bool, RunEnd> {
    let old = state.memory.read(address, size)?;
    let (register, wanted) = (expected, state.processor.get(expected).zero_extended(size));
    let put = state.processor.get(new).zero_extended(size);
    let (bits, known) = old.xor(wanted).parts();
    let after = match old.get(size).zip(wanted.get(size)) {
        _ if bits & known != 0 => old,
        Some(_) => put,
        None => Value::UNKNOWN,
    };
    state.memory.write(address, after, size)?;
    state.processor.set(register, old);
    let change = Change::CompareExchange { expected: wanted.get(size), new: put.get(size) };
    let (before, after) = (old.get(size), after.get(size));
    events.push(Event::Locked { address, size, change, before, after });
    Ok(true)
}

/// Returns what an instruction makes of memory, and the bytes of it, if not those of its registers.
fn made(name: Opcode) -> Option<(Made, Option<usize>)> {
    use Opcode as O;
    let unknown = |size| (Made::Unknown, size);
    Some(match name {
        O::SWP(_) => (Made::Exchanged, None),
        O::SWPB(_) => (Made::Exchanged, Some(1)),
        O::SWPH(_) => (Made::Exchanged, Some(2)),
        O::CAS(_) => (Made::Compared, None),
        O::CASB(_) => (Made::Compared, Some(1)),
        O::CASH(_) => (Made::Compared, Some(2)),
        O::LDADD(_) => (Made::Added, None),
        O::LDADDB(_) => (Made::Added, Some(1)),
        O::LDADDH(_) => (Made::Added, Some(2)),
        O::LDCLR(_) => (Made::Cleared, None),
        O::LDCLRB(_) => (Made::Cleared, Some(1)),
        O::LDCLRH(_) => (Made::Cleared, Some(2)),
        O::LDEOR(_) => (Made::Inverted, None),
        O::LDEORB(_) => (Made::Inverted, Some(1)),
        O::LDEORH(_) => (Made::Inverted, Some(2)),
        O::LDSET(_) => (Made::Set, None),
        O::LDSETB(_) => (Made::Set, Some(1)),
        O::LDSETH(_) => (Made::Set, Some(2)),
        O::LDSMAX(_) | O::LDSMIN(_) | O::LDUMAX(_) | O::LDUMIN(_) => unknown(None),
        O::LDSMAXB(_) | O::LDSMINB(_) | O::LDUMAXB(_) | O::LDUMINB(_) => unknown(Some(1)),
        O::LDSMAXH(_) | O::LDSMINH(_) | O::LDUMAXH(_) | O::LDUMINH(_) => unknown(Some(2)),
        _ => return None,
    })
}
