//! A call site in C is as short as one in Rust: the instructions of lock and unlock on
//! the path of a free mutex, counted in both. The fair mutex's are the same ones.

use crate::common::{compilers, scratch, strict};
use std::fs;
use std::process::Command;
use xtask::library::said_by;

const SOURCE: &str = "\
#include <lockstead.h>
extern int counter;
int counter;
void call_site(lks_mutex *mutex);
void call_site(lks_mutex *mutex)
{
    lks_mutex_lock(mutex);
    counter++;
    lks_mutex_unlock(mutex);
}
void fair_call_site(lks_fair_mutex *mutex);
void fair_call_site(lks_fair_mutex *mutex)
{
    lks_fair_mutex_lock(mutex);
    counter++;
    lks_fair_mutex_unlock(mutex);
}
";

/// Stands for the call site in Rust, in this very program.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn rust_call_site(mutex: &lockstead::Mutex<i32>) {
    *mutex.lock() += 1;
}

/// Returns the instructions of a function, in their order: address, mnemonic, operands.
fn function(file: &std::path::Path, name: &str) -> Option<Vec<(u64, String, String)>> {
    function_by("objdump", file, name)
}

/// Does so by this disassembler.
fn function_by(
    objdump: &str,
    file: &std::path::Path,
    name: &str,
) -> Option<Vec<(u64, String, String)>> {
    let mut objdump = Command::new(objdump);
    objdump.args(["-d", "--no-show-raw-insn", &format!("--disassemble={name}")]).arg(file);
    let text = match said_by(&mut objdump) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("skipped: {error}");
            return None;
        }
    };
    let lines = text.lines().filter_map(|line| {
        let (address, code) = line.split_once(":\t")?;
        let address = u64::from_str_radix(address.trim(), 16).ok()?;
        let (mnemonic, operands) = code.trim().split_once(' ').unwrap_or((code.trim(), ""));
        let operands = operands.split('#').next().unwrap_or_default().trim();
        if mnemonic == "lock" {
            // A prefix of the next word, which is the instruction.
            let (mnemonic, operands) = operands.split_once(' ').unwrap_or((operands, ""));
            return Some((address, mnemonic.to_owned(), operands.trim().to_owned()));
        }
        Some((address, mnemonic.to_owned(), operands.to_owned()))
    });
    let found: Vec<_> = lines.collect();
    assert!(!found.is_empty(), "{name} is not in {}:\n{text}", file.display());
    Some(found)
}

/// Returns how many instructions a call runs as long as no conditional jump is taken: the compilers
/// put what is unlikely behind the end.
fn on_the_fast_path(function: &[(u64, String, String)]) -> usize {
    let mut count = 0;
    for (_, mnemonic, _) in function {
        count += 1;
        if mnemonic.starts_with("ret") {
            return count;
        }
        assert!(!mnemonic.starts_with("call"), "a call on the fast path: {function:?}");
        assert!(mnemonic != "jmp", "the fast path is straight: {function:?}");
    }
    panic!("no end: {function:?}");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_call_site_in_c_is_as_short_as_one_in_rust() {
    let mutex = lockstead::Mutex::new(0);
    rust_call_site(&mutex);
    assert_eq!(mutex.into_inner(), 1);
    let program = std::env::current_exe().expect("this program");
    let Some(in_rust) = function(&program, "rust_call_site") else { return };
    let in_rust = on_the_fast_path(&in_rust);
    let source = scratch().join("call-site.c");
    fs::write(&source, SOURCE).expect("scratch can be written");
    for compiler in compilers().iter().filter(|compiler| !compiler.cpp) {
        let object = scratch().join(format!("call-site-{}.o", compiler.command));
        let mut command = strict(compiler.command, "c11");
        command.arg("-c").arg("-o").arg(&object).arg(&source);
        crate::common::ends_well(&mut command);
        let Some(in_c) = function(&object, "call_site") else { return };
        let in_c = on_the_fast_path(&in_c);
        println!("{}: {in_c} instructions; Rust: {in_rust}", compiler.command);
        assert!(in_c <= in_rust, "{}: {in_c}, Rust {in_rust}", compiler.command);
        let Some(fair) = function(&object, "fair_call_site") else { return };
        assert_eq!(on_the_fast_path(&fair), in_c, "{}: {fair:?}", compiler.command);
    }
}

/// Where the processor has LSE, a pair is one exchange that acquires and one store that releases, and
/// nothing orders more than that.
#[test]
fn a_call_site_in_c_for_aarch64_has_no_barrier() {
    const COMPILER: &str = "aarch64-linux-gnu-gcc";
    if Command::new(COMPILER).arg("--version").output().is_err() {
        return println!("skipped: {COMPILER} is not installed (gcc-aarch64-linux-gnu has it)");
    }
    let source = scratch().join("call-site-aarch64.c");
    fs::write(&source, SOURCE).expect("scratch can be written");
    let object = scratch().join("call-site-aarch64.o");
    let mut command = strict(COMPILER, "c11");
    command.args(["-march=armv8.1-a", "-c", "-o"]).arg(&object).arg(&source);
    crate::common::ends_well(&mut command);
    // This disassembler has a tab behind a mnemonic.
    let first = |words: &String| words.split_whitespace().next().unwrap_or_default().to_owned();
    for name in ["call_site", "fair_call_site"] {
        let function = function_by("aarch64-linux-gnu-objdump", &object, name);
        let Some(function) = function else { return };
        let mnemonics: Vec<String> = function.iter().map(|(_, words, _)| first(words)).collect();
        let end = mnemonics.iter().position(|mnemonic| mnemonic == "ret").expect("it ends");
        let path = &mnemonics[..=end];
        println!("{name}: {} instructions", path.len());
        let count = |which: fn(&str) -> bool| path.iter().filter(|name| which(name)).count();
        // What does not go straight on, calls, or orders more.
        assert_eq!(
            count(|name| matches!(name, "b" | "bl" | "br" | "blr" | "dmb" | "dsb" | "isb")),
            0
        );
        let exchanges = ["cas", "swp", "ldadd", "ldset", "ldclr", "ldax", "ldx", "stx", "stlx"];
        let all: Vec<_> =
            path.iter().filter(|name| exchanges.iter().any(|e| name.starts_with(e))).collect();
        assert_eq!(all, ["casa"], "{path:?}");
        assert_eq!(count(|name| name.starts_with("stl")), 1, "{path:?}");
        assert!(path.len() <= 32, "{}: {path:?}", path.len());
    }
}
