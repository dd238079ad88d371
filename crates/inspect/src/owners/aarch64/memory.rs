//! Loads and stores.

use super::super::event::RunEnd;
use super::super::state::State;
use super::super::value::Value;
use super::decoded::Decoded;
use super::state::{Aarch64, bytes, moved};
use yaxpeax_arm::armv8::a64::{Opcode, Operand, SIMDSizeCode};

/// Where in memory an instruction reads or writes.
pub struct Place {
    /// The address, if it is known.
    pub address: Option<u64>,
    /// The register that the instruction changes with it, and what it makes of it.
    back: Option<(u16, Value)>,
}

impl Place {
    /// Returns the place that an operand names; `None` if it names none. `pc`: the address of the
    /// instruction.
    #[must_use]
    pub fn of(processor: &Aarch64, operand: &Operand, pc: u64) -> Option<Place> {
        let plus = |base: u16, by: i64| {
            processor.pointer(base).get(8).map(|base| base.wrapping_add_signed(by))
        };
        let back = |base: u16, by| (base, plus(base, by).map_or(Value::UNKNOWN, Value::of));
        Some(match *operand {
            Operand::RegPreIndex(base, by, writes) => {
                let address = plus(base, by.into());
                Place { address, back: writes.then(|| back(base, by.into())) }
            }
            Operand::RegPostIndex(base, by) => {
                Place { address: plus(base, 0), back: Some(back(base, by.into())) }
            }
            Operand::RegRegOffset(base, index, size, how, by) => {
                let index = processor.get(index).zero_extended(bytes(size));
                let index = moved(index, how, by.into(), 8).get(8);
                let address = index.and_then(|index| plus(base, index.cast_signed()));
                Place { address, back: None }
            }
            Operand::PCOffset(by) => {
                Place { address: Some(pc.wrapping_add_signed(by)), back: None }
            }
            _ => return None,
        })
    }

    fn write_back(&self, processor: &mut Aarch64) {
        if let Some((base, value)) = self.back {
            processor.set_pointer(base, value);
        }
    }
}

/// What a load or store moves for one register.
struct Access {
    loads: bool,
    size: usize,
    signed: bool,
}

/// Returns what a load or store of one register does, if it is one that is emulated.
fn single(name: Opcode, register: &Operand) -> Option<Access> {
    use Opcode as O;
    let whole = match *register {
        Operand::Register(size, _) => bytes(size),
        Operand::SIMDRegister(size, _) => width(size),
        _ => return None,
    };
    let (loads, size, signed) = match name {
        O::LDR | O::LDUR | O::LDTR | O::LDAR | O::LDLAR | O::LDAPR | O::LDAPUR => {
            (true, whole, false)
        }
        O::LDRB | O::LDURB | O::LDTRB | O::LDARB | O::LDLARB | O::LDAPRB | O::LDAPURB => {
            (true, 1, false)
        }
        O::LDRH | O::LDURH | O::LDTRH | O::LDARH | O::LDLARH | O::LDAPRH | O::LDAPURH => {
            (true, 2, false)
        }
        O::LDRSB | O::LDURSB | O::LDTRSB | O::LDAPURSB => (true, 1, true),
        O::LDRSH | O::LDURSH | O::LDTRSH | O::LDAPURSH => (true, 2, true),
        O::LDRSW | O::LDURSW | O::LDTRSW | O::LDAPURSW => (true, 4, true),
        O::STR | O::STUR | O::STTR | O::STLR | O::STLLR | O::STLUR => (false, whole, false),
        O::STRB | O::STURB | O::STTRB | O::STLRB | O::STLLRB | O::STLURB => (false, 1, false),
        O::STRH | O::STURH | O::STTRH | O::STLRH | O::STLLRH | O::STLURH => (false, 2, false),
        _ => return None,
    };
    Some(Access { loads, size, signed })
}

/// Returns what a load or store of two registers does for each of them.
fn pair(name: Opcode, register: &Operand) -> Option<Access> {
    use Opcode as O;
    let size = match *register {
        Operand::Register(..) if name == O::LDPSW => 4,
        Operand::Register(size, _) => bytes(size),
        Operand::SIMDRegister(size, _) => width(size),
        _ => return None,
    };
    match name {
        O::LDP | O::LDNP => Some(Access { loads: true, size, signed: false }),
        O::LDPSW => Some(Access { loads: true, size, signed: true }),
        O::STP | O::STNP => Some(Access { loads: false, size, signed: false }),
        _ => None,
    }
}

const fn width(size: SIMDSizeCode) -> usize {
    match size {
        SIMDSizeCode::B => 1,
        SIMDSizeCode::H => 2,
        SIMDSizeCode::S => 4,
        SIMDSizeCode::D => 8,
        SIMDSizeCode::Q => 16,
    }
}

/// Does a load or store; returns `false` if it is another instruction. `pc`: its address.
///
/// # Errors
/// The run cannot go on.
pub fn execute(
    state: &mut State<'_, Aarch64>,
    instruction: &Decoded,
    pc: u64,
) -> Result<bool, RunEnd> {
    let (name, [first, second, third, _]) = (instruction.what.opcode, &instruction.what.operands);
    if let Some(access) = single(name, first)
        && let Some(place) = Place::of(&state.processor, second, pc)
    {
        let value = stored(&state.processor, first);
        place.write_back(&mut state.processor);
        one(state, &access, place.address, first, value)?;
        return Ok(true);
    }
    if let Some(access) = pair(name, first)
        && let Some(place) = Place::of(&state.processor, third, pc)
    {
        let values = [first, second].map(|register| stored(&state.processor, register));
        place.write_back(&mut state.processor);
        one(state, &access, place.address, first, values[0])?;
        let next = place.address.map(|address| address.wrapping_add(access.size as u64));
        one(state, &access, next, second, values[1])?;
        return Ok(true);
    }
    Ok(false)
}

/// Returns what a register has for a store.
fn stored(processor: &Aarch64, register: &Operand) -> [Value; 2] {
    match *register {
        Operand::Register(_, number) => [processor.get(number), Value::UNKNOWN],
        Operand::SIMDRegister(_, number) => processor.vector(number),
        _ => [Value::UNKNOWN; 2],
    }
}

fn one(
    state: &mut State<'_, Aarch64>,
    access: &Access,
    address: Option<u64>,
    register: &Operand,
    values: [Value; 2],
) -> Result<(), RunEnd> {
    let size = access.size.min(8);
    let parts = access.size.div_ceil(8);
    let places = |address: u64| (0..parts).map(move |part| address.wrapping_add(8 * part as u64));
    if !access.loads {
        let address = address.ok_or(RunEnd::UnknownStore)?;
        for (place, value) in places(address).zip(values) {
            state.memory.write(place, value, size)?;
        }
        return Ok(());
    }
    let mut read = [Value::of(0); 2];
    match address {
        Some(address) => {
            for (place, value) in places(address).zip(&mut read) {
                *value = state.memory.read(place, size)?;
            }
        }
        None => read[..parts].fill(Value::UNKNOWN.zero_extended(size)),
    }
    match *register {
        Operand::SIMDRegister(_, number) => state.processor.set_vector(number, read),
        _ => {
            let value = if access.signed { read[0].sign_extended(size) } else { read[0] };
            state.processor.set_operand(register, value);
            if let (Operand::Register(_, number), Some(address), 8) = (*register, address, size) {
                state.processor.set_slot(number, address);
            }
        }
    }
    Ok(())
}
