//! Writes the two programs: one that keeps the table at every switch, and one that says
//! that nobody keeps it any longer.
//!
//! # Role
//! The first is run by the kernel in the middle of a switch, with interrupts off: it
//! has no loop and writes three words. Of what the kernel knows of the two threads it
//! reads their numbers.

use crate::assembler::{
    Instruction, Register::*, add, address_in_map, and32, call, copy, exit, load32, load64,
    multiply32, set, shift_left, skip_if_equal, skip_if_not_below, store32, store32_value,
};
use lockstead_linux::oncpu::layout::{CPUS, LINE, LIVE, SPREAD};

/// The number of `bpf_get_smp_processor_id`.
const CURRENT_PROCESSOR: i32 = 8;

/// The numbers that the program is written for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub(crate) processors: u32,
    pub(crate) threads: u32,
    /// The place where a thread's number lies in the kernel's `task_struct`.
    pub(crate) number_at: i16,
}

/// Returns the program for `sched_switch`, whose second and third argument are the thread that
/// leaves and the one that comes.
pub(crate) fn at_switch(map: i32, geometry: &Geometry) -> Vec<Instruction> {
    let Geometry { processors, threads, number_at } = *geometry;
    let cpus = CPUS as i32;
    let after_cpus = cpus + processors as i32 * LINE as i32;
    let mut program = vec![
        load64(R7, R1, 8),
        load64(R8, R1, 16),
        load32(R7, R7, number_at),
        load32(R8, R8, number_at),
        call(CURRENT_PROCESSOR),
        // A processor that the table has no line for: 5 instructions are left out.
        skip_if_not_below(R0, processors as i32, 5),
        shift_left(R0, LINE.trailing_zeros() as i32),
    ];
    program.extend(address_in_map(R1, map, cpus));
    program.extend([add(R1, R0), store32(R1, R8, 0)]);
    // The idle threads all have the number 0, and no entry: they would share its line.
    program.push(skip_if_equal(R7, 0, 7));
    let index = |thread| {
        [
            multiply32(thread, SPREAD as i32),
            and32(thread, threads as i32 - 1),
            shift_left(thread, size_of::<u32>().trailing_zeros() as i32),
        ]
    };
    program.extend(index(R7));
    program.extend(address_in_map(R1, map, after_cpus));
    program.extend([add(R1, R7), store32_value(R1, 0, 0)]);
    program.push(skip_if_equal(R8, 0, 8));
    program.push(copy(R6, R8));
    program.extend(index(R8));
    program.extend(address_in_map(R1, map, after_cpus));
    program.extend([add(R1, R8), store32(R1, R6, 0)]);
    program.extend([set(R0, 0), exit()]);
    program
}

/// Returns the program that is run once, when the table is given up (ONCPU-LIVE).
pub(crate) fn at_the_end(map: i32) -> Vec<Instruction> {
    let mut program = Vec::new();
    program.extend(address_in_map(R2, map, LIVE as i32));
    program.extend([store32_value(R2, 0, 0), set(R0, 0), exit()]);
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_are_short_and_end() {
        let geometry = Geometry { processors: 4, threads: 1024, number_at: 100 };
        for program in [at_switch(3, &geometry), at_the_end(3)] {
            assert!(program.len() < 40, "{} instructions in every switch", program.len());
            assert_eq!(program.last(), Some(&exit()));
        }
    }
}
