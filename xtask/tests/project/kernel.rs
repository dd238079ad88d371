//! Only `crates/linux` makes the system calls of locks: nobody else calls the kernel by a number that
//! a reader cannot see, or by another name.

use proc_macro2::{Delimiter, Literal, TokenStream, TokenTree};
use std::path::Path;
use syn::Lit;
use xtask::{files, root, text};

/// Defines a `syscall` of its own, in place of the libc's: a test that a program's own one is
/// asked; and the function that stands before the libc's, which makes no call but the program's.
const OWN_SYSCALL: [&str; 3] = [
    "crates/lockstead/tests/shared_identity/windows.rs",
    "crates/preload/src/interpose/futex.rs",
    // Its list of the names that the library defines.
    "crates/preload/tests/symbols.rs",
];

/// Make system calls by an instruction of their own: `errno` is the program's. The `call` of the library's
/// `sys`, which calls these, is held to what `syscall` is held to.
const OWN_CALLS: [&str; 2] =
    ["crates/preload/src/arch/aarch64/mod.rs", "crates/preload/src/arch/x86_64/mod.rs"];

/// Tells whether `arguments` begin with a constant of `libc`, as it is named there, and a comma or
/// nothing follows.
fn begin_with_a_number(arguments: TokenStream) -> bool {
    let first: Vec<String> = arguments
        .into_iter()
        .map(|token| token.to_string())
        .take_while(|token| token != ",")
        .collect();
    matches!(&first[..], [libc, a, b, number]
        if libc == "libc" && a == ":" && b == ":" && number.starts_with("SYS_"))
}

/// Tells whether what follows the name of a function that enters the kernel is a call of it, by a
/// constant.
fn calls_by_a_number(next: Option<&TokenTree>) -> bool {
    matches!(next, Some(TokenTree::Group(group)) if begin_with_a_number(group.stream()))
}

/// Tells whether the name is that of an entry of a table of functions, `syscall: fn(…)`, and nothing
/// of it is called.
fn is_in_a_table(tokens: &[TokenTree], at: usize) -> bool {
    let next = |n: usize| tokens.get(at + n).map(ToString::to_string);
    next(1).as_deref() == Some(":") && next(2).as_deref() == Some("fn")
}

/// Tells whether a literal is the name of the function that enters the kernel, or an instruction
/// that does.
fn enters_the_kernel(literal: &Literal) -> bool {
    let text = match syn::parse_str::<Lit>(&literal.to_string()) {
        Ok(Lit::Str(text)) => text.value(),
        Ok(Lit::ByteStr(text)) => String::from_utf8_lossy(&text.value()).into_owned(),
        Ok(Lit::CStr(text)) => text.value().to_string_lossy().into_owned(),
        _ => return false,
    };
    text.split(['\n', ';', ':', '\0']).any(|line| {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("syscall" | "sysenter") => true,
            Some("int") => words.next() == Some("0x80"),
            Some("svc") => words.next().is_some_and(|number| number.starts_with(['#', '0'])),
            _ => false,
        }
    })
}

/// Finds the lines of `tokens` that enter the kernel otherwise than by a constant of `libc`, and
/// why that does not pass. `call`: the name of a function that is held to that as `syscall` is.
/// `texts`: whether the file may have instructions, or functions by other names.
fn kernel_entries(
    tokens: TokenStream,
    call: &str,
    texts: bool,
    found: &mut Vec<(usize, &'static str)>,
) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| tokens[before].to_string());
        let before = before.as_deref();
        let line = token.span().start().line;
        match token {
            TokenTree::Group(group) => kernel_entries(group.stream(), call, texts, found),
            TokenTree::Ident(name) if name == "libc" => {
                let is_path = tokens.get(at + 1).is_some_and(|next| next.to_string() == ":");
                if matches!(before, Some("as" | "mod" | "crate")) && !is_path {
                    found.push((line, "`libc` is another crate's name"));
                }
            }
            TokenTree::Ident(name)
                if name == "syscall"
                    && !calls_by_a_number(tokens.get(at + 1))
                    && !is_in_a_table(&tokens, at) =>
            {
                found.push((line, "a system call by another name, or without a constant"));
            }
            TokenTree::Ident(name) if name == call && !matches!(before, Some("fn" | ".")) => {
                let next = tokens.get(at + 1);
                let is_call = matches!(next, Some(TokenTree::Group(group))
                    if group.delimiter() == Delimiter::Parenthesis);
                let of_sys =
                    before == Some(":") && tokens[at.saturating_sub(3)].to_string() == "sys";
                let renamed = next.is_some_and(|next| next.to_string() == "as");
                if (is_call || of_sys || renamed) && !calls_by_a_number(next) {
                    found.push((line, "a system call by another name, or without a constant"));
                }
            }
            TokenTree::Literal(literal) if texts && enters_the_kernel(literal) => {
                found.push((line, "an instruction, or a name, that enters the kernel"));
            }
            _ => {}
        }
    }
}

/// Tells whether a file could have instructions of its own, or call a function by a text.
fn has_instructions(text: &str) -> bool {
    ["asm!", "macro_rules!", "link_name", "dlsym"].iter().any(|word| text.contains(word))
}

/// Elsewhere `syscall` is called by its own name only, with a constant of `libc` that is none
/// of the futex's, and nobody else has assembly that enters the kernel.
#[test]
fn only_the_linux_crate_makes_lock_system_calls() {
    let mut seen_in_linux = false;
    let mut wrong = Vec::new();
    for folder in ["crates", "bench"] {
        for path in files(folder, &["rs"]) {
            let relative = path.strip_prefix(root()).expect("below the root");
            let text = text(&path);
            let futex = text.contains("SYS_futex");
            if relative.starts_with("crates/linux") {
                seen_in_linux |= futex;
                continue;
            }
            assert!(!futex, "{}: a futex call outside crates/linux", relative.display());
            if OWN_SYSCALL.iter().any(|own| relative == Path::new(own)) {
                continue;
            }
            let call = if relative.starts_with("crates/preload/src") { "call" } else { "syscall" };
            let texts =
                has_instructions(&text) && !OWN_CALLS.iter().any(|own| relative == Path::new(own));
            let mut found = Vec::new();
            kernel_entries(text.parse().expect("Rust"), call, texts, &mut found);
            wrong.extend(
                found.iter().map(|(line, why)| format!("{}:{line}: {why}", relative.display())),
            );
        }
    }
    // What is compiled for C programs has no system calls at all.
    for folder in ["crates/capi/include", "crates/preload/include", "bench/shim"] {
        for path in files(folder, &["h", "hpp", "c", "cc"]) {
            let enters =
                text(&path).split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| {
                    word == "syscall" || word.starts_with("SYS_") || word.starts_with("__NR_")
                });
            assert!(!enters, "{}: a system call", path.display());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen_in_linux, "the check looks for a name that crates/linux does not use");
}

/// Lists what must not pass, each with the number of complaints.
#[test]
fn what_would_enter_the_kernel_unseen_is_found() {
    for (code, complaints) in [
        ("fn f() { libc::syscall(libc::SYS_gettid) }", 0),
        ("fn f() { libc::syscall(202, word) }", 1),
        ("fn f() { libc::syscall(202 + libc::SYS_read, word) }", 1),
        ("const SYS_MINE: i64 = 202; fn f() { libc::syscall(SYS_MINE, word) }", 1),
        ("use libc::syscall as enter;", 1),
        ("use mine as libc;", 1),
        ("fn f(x: i64) { g(x as libc::c_int) }", 0),
        ("extern \"C\" { fn syscall(number: i64, ...) -> i64; }", 1),
        ("extern \"C\" { #[link_name = \"syscall\"] fn enter(number: i64, ...) -> i64; }", 1),
        ("fn f() { dlsym(handle, c\"syscall\") }", 1),
        ("fn f() { asm!(\"mov eax, 202\\n syscall\") }", 1),
        ("fn f() { asm!(\"mov eax, 202\", \"syscall\") }", 1),
        ("macro_rules! enter { () => { \"2: syscall\" } }", 1),
        ("fn f() { call(202, arguments) }", 1),
        ("fn f() { call(libc::SYS_close, arguments) }", 0),
        ("fn call(number: i64) {}", 0),
        ("fn f(call: &Call) { g(call, 1) }", 0),
        ("use crate::sys::{call as enter};", 1),
        ("fn f() { let enter = sys::call; enter(202, arguments) }", 1),
        ("fn f() { read(\"/proc/1/syscall\") }", 0),
    ] {
        let mut found = Vec::new();
        kernel_entries(code.parse().expect("Rust"), "call", has_instructions(code), &mut found);
        assert_eq!(found.len(), complaints, "{code}\n{found:?}");
    }
}
