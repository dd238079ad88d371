//! The switch that chooses one mutant of a build, as a module of the mutated core.
//!
//! It is a plain static, so that `const` functions may look at it; where the compiler evaluates
//! such a function, it says so, and the place is left out of the build.

/// Returns the text of the module, for so many mutants.
#[must_use]
pub fn module(mutants: u32) -> String {
    format!("const MUTANTS: usize = {mutants};\n{MODULE}")
}

const MODULE: &str = r#"
extern crate std;

static mut CHOSEN: u32 = 0;
static mut SEEN: [u8; MUTANTS + 1] = [0; MUTANTS + 1];

/// Returns which of `count` mutants from the number `first` on is chosen, counted from 1, or 0.
#[inline(always)]
pub const fn at(first: u32, count: u32) -> u32 {
    // SAFETY: `CHOSEN` is written before `main` only; `SEEN` is written with one value, and read
    // after `main`.
    unsafe {
        (&raw mut SEEN).cast::<u8>().add(first as usize).write(1);
        let chosen = (&raw const CHOSEN).read().wrapping_sub(first);
        if chosen < count { chosen + 1 } else { 0 }
    }
}

/// Stands where no mutant is: the numbers of a site end before.
pub const fn none() -> ! {
    panic!("no such mutant")
}

extern "C" fn begin() {
    let chosen = std::env::var("LOCKSTEAD_MUTANT").ok().and_then(|text| text.parse().ok());
    // SAFETY: no other thread runs before `main`.
    unsafe { CHOSEN = chosen.unwrap_or(0) };
}

extern "C" fn end() {
    if let Some(path) = std::env::var_os("LOCKSTEAD_MUTANT_TRACE") {
        // SAFETY: the tests have ended with `main`, and nobody else writes it.
        let seen = unsafe { (&raw const SEEN).read() };
        std::fs::write(path, seen).expect("a place for the trace");
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;
"#;
