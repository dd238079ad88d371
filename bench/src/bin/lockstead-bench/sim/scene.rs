//! Machines, workloads and locks as users name them.

use super::flags::{MachineFlags, SceneFlags};
use crate::failure::Failure;
use lockstead_sim::{
    FileError, LOCKS, MACHINES, Machine, NUMBERS, SimLockName, WORKLOADS, Workload,
};
use std::path::Path;

/// Reads the machine that `--machine` names.
///
/// # Errors
/// If it is neither built in nor a file, or the file is wrong.
pub(super) fn machine(name: &str) -> Result<Machine, Failure> {
    if let Some(machine) = Machine::bundled(name) {
        return Ok(machine);
    }
    let known: Vec<&str> = MACHINES.iter().map(|&(name, _)| name).collect();
    read("--machine <NAME|FILE>", name, &known, Machine::parse)
}

fn workload(name: &str) -> Result<Workload, Failure> {
    if let Some(workload) = Workload::bundled(name) {
        return Ok(workload);
    }
    let known: Vec<&str> = WORKLOADS.iter().map(|&(name, _)| name).collect();
    read("--workload <NAME|FILE>", name, &known, Workload::parse)
}

fn read<T>(
    option: &str,
    name: &str,
    known: &[&str],
    parse: fn(&str, &str) -> Result<T, FileError>,
) -> Result<T, Failure> {
    let bytes = std::fs::read(Path::new(name)).map_err(|error| {
        let built_in = known.join(", ");
        Failure::option(option, name, format!("built in are {built_in}; as a file: {error}"))
    })?;
    let text = text(name, bytes, "text in TOML")?;
    parse(name, &text).map_err(|error| Failure::Usage(error.to_string()))
}

/// Returns a file's content as text; `what` was expected.
///
/// # Errors
/// With file and line, if it is none.
pub(super) fn text(name: &str, bytes: Vec<u8>, what: &str) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|&&byte| byte == b'\n').count() + 1;
        Failure::Usage(format!("{name}:{line}: not in UTF-8; expected: {what}"))
    })
}

/// Finds the lock that `--lock` names.
///
/// # Errors
/// If there is no such lock.
pub(super) fn lock(name: &str) -> Result<SimLockName, Failure> {
    SimLockName::by_name(name).ok_or_else(|| {
        let known: Vec<&str> = LOCKS.iter().map(|&(_, name, _)| name).collect();
        Failure::option("--lock <NAME>", name, format!("there are {}", known.join(", ")))
    })
}

/// The C library's mutex, as a program has it at present.
pub(super) const PRESENT: &str = "present";

/// Finds a lock that `whatif` compares: as [`lock`], or the present one.
///
/// # Errors
/// If there is no such lock.
pub(super) fn compared(name: &str) -> Result<(SimLockName, &'static str), Failure> {
    if name == PRESENT {
        return Ok((SimLockName::Futex, PRESENT));
    }
    lock(name).map(|lock| (lock, lock.name()))
}

/// Returns a machine with what was changed.
///
/// # Errors
/// If a change is wrong.
pub(super) fn changed(
    mut machine: Machine,
    no_threads: bool,
    set: &[String],
) -> Result<Machine, Failure> {
    if no_threads {
        machine = machine.with_threads(1).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    for change in set {
        let wrong = |why: String| Failure::option("--set <NAME=VALUE>", change, why);
        let (name, value) =
            change.split_once('=').ok_or_else(|| wrong("it has the form NAME=VALUE".to_owned()))?;
        let value: f64 = value
            .parse()
            .ok()
            .filter(|value| (0.0..=1e9).contains(value))
            .ok_or_else(|| wrong("the value is a number from 0 to 1000000000".to_owned()))?;
        if !NUMBERS.contains(&name) || !machine.change(name, |_| value) {
            return Err(wrong(format!("there are {}", NUMBERS.join(", "))));
        }
    }
    Ok(machine)
}

impl MachineFlags {
    /// Returns the machine, with what was changed.
    ///
    /// # Errors
    /// If it, or a change, is wrong.
    pub(super) fn resolve(&self) -> Result<Machine, Failure> {
        changed(machine(&self.machine)?, self.no_threads, &self.set)
    }
}

impl SceneFlags {
    /// Returns the machine and the workload, with what was changed.
    ///
    /// # Errors
    /// If one of them is wrong.
    pub(super) fn resolve(&self) -> Result<(Machine, Workload), Failure> {
        Ok((self.machine.resolve()?, workload(&self.workload)?))
    }

    /// Returns how many tasks there are.
    pub(super) fn tasks(&self, workload: &Workload) -> usize {
        self.tasks.map_or(workload.own_tasks(), |tasks| tasks as usize)
    }
}

/// Returns the machine with so many cores.
///
/// # Errors
/// If it has fewer.
pub(super) fn with_cores(machine: &Machine, cores: usize) -> Result<Machine, Failure> {
    machine.with_cores(cores).map_err(|error| Failure::option("--cores <LIST>", cores, error))
}

/// Returns 1, 2, 4 … and all of the machine's cores.
pub(super) fn doubling(machine: &Machine) -> Vec<usize> {
    let all = machine.cores();
    let mut cores: Vec<usize> =
        std::iter::successors(Some(1), |&n| Some(2 * n)).take_while(|&n| n < all).collect();
    cores.push(all);
    cores
}
