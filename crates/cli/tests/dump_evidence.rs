//! That `lockstead dump` calls nothing by a name for which it has no evidence, and that its status
//! is not that of a healthy process where it could not look.

use crate::common::{finish, lockstead};
use crate::dump::support::{Hung, frame, hang, plain};
use std::os::unix::process::CommandExt;
use std::process::Command;

#[test]
fn a_semaphore_in_the_waiters_own_frame_is_a_semaphore() {
    let Some(hung) = hang("own", 1) else { return };
    let outcome = hung.dump(&[]);
    let text = plain(&outcome.stdout);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let words = format!(
        "thread \"own-sem\" waits for semaphore on the stack of thread \"own-sem\"\n    \
         a semaphore has no owner in it: who will post it cannot be told\n{}",
        frame("*waits_for_own", "sem_wait").replace('*', ""),
    );
    assert!(text.contains(&words), "no {words:?} in {text}");
}

#[test]
fn a_once_among_the_words_of_a_condition_is_a_once() {
    let Some(hung) = hang("once", 1) else { return };
    hung.await_shown("\"preparing\" is asleep in pause()");
    let text = plain(&hung.dump(&[]).stdout);
    let words = "waits for once dressed.once\n    a once has no owner in it";
    assert!(text.contains(words), "no {words:?} in {text}");
    assert!(!text.contains("condition"), "{text}");
}

#[test]
fn memory_above_a_stack_is_not_on_it() {
    let Some(hung) = hang("above", 1) else { return };
    let text = plain(&hung.dump(&[]).stdout);
    let words = "thread \"below\" waits for semaphore at 0xN (heap or other private memory)\n";
    assert!(text.contains(words), "no {words:?} in {text}");
}

/// musl has no unwind tables, and its mutex no owner.
#[test]
fn a_ring_of_mutexes_of_musl_is_seen_through_code_without_tables() {
    if !cfg!(target_arch = "x86_64") {
        eprintln!(
            "skipped: code without unwind tables is left by its instructions on x86-64 alone"
        );
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program) = (folder.path().join("crossed.c"), folder.path().join("crossed"));
    std::fs::write(&source, include_str!("dump/crossed.c")).expect("written");
    for options in [&["-O1", "-g"][..], &["-O2", "-g", "-static"]] {
        let built =
            Command::new("musl-gcc").args(options).arg("-o").arg(&program).arg(&source).output();
        if !built.is_ok_and(|built| built.status.success()) {
            eprintln!("skipped: musl-gcc builds nothing here");
            return;
        }
        let hung = Hung::start(&mut Command::new(&program));
        if !hung.settle(2) {
            return;
        }
        let text = plain(&hung.dump(&[]).stdout);
        for words in [
            "DEADLOCK, probably: 2 threads wait for each other",
            "waits for right (pthread mutex)",
            "waits for left (pthread mutex)",
            "likely: both() would unlock it after this call",
            "      both() at crossed.c:14\n",
        ] {
            assert!(text.contains(words), "no {words:?} with {options:?} in {text}");
        }
    }
}

/// Dumps a program without the C library beside it, and without symbols.
#[test]
fn words_like_those_of_a_lock_are_not_one() {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: the program is for x86-64");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program) = (folder.path().join("words.c"), folder.path().join("words"));
    std::fs::write(&source, include_str!("dump/words.c")).expect("written");
    let built =
        Command::new("cc").args(["-O1", "-static", "-s", "-o"]).arg(&program).arg(&source).output();
    match built {
        Ok(built) if built.status.success() => {}
        Ok(built) => {
            let why = String::from_utf8_lossy(&built.stderr);
            eprintln!("skipped: no static programs can be built here: {why}");
            return;
        }
        Err(error) => {
            eprintln!("skipped: no C compiler: {error}");
            return;
        }
    }
    let hung = Hung::start(&mut Command::new(&program));
    if !hung.settle(1) {
        return;
    }
    let text = plain(&hung.dump(&[]).stdout);
    assert!(
        text.contains("waits for futex word at 0xN") || text.contains("futex word in"),
        "{text}"
    );
    assert!(!text.contains("rwlock") && !text.contains("reader"), "{text}");
}

/// Refuses the calling process, and what it becomes, to read other processes' memory.
fn refuse_memory() -> std::io::Result<()> {
    let step = |code: u32, jump_else: u8, value: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: jump_else,
        k: value,
    };
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let mut filter = [
        // The number of the call is what the kernel's record of it begins with.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(equal, 1, libc::SYS_process_vm_readv as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: both calls are about this process alone; the second reads the filter, which lives.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) != 0
    };
    if refused { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

#[test]
fn memory_that_may_not_be_read_is_no_answer() {
    let Some(hung) = hang("self", 1) else { return };
    for flags in [&[][..], &["--json"]] {
        let pid = hung.pid().to_string();
        let mut command = lockstead(&[&["dump", &pid], flags].concat());
        // SAFETY: the closure makes two system calls on its own stack, and allocates nothing.
        unsafe { command.pre_exec(refuse_memory) };
        let outcome = match command.spawn() {
            Ok(child) => finish(child),
            Err(error) => {
                eprintln!("skipped: no filters for system calls here: {error}");
                return;
            }
        };
        assert_eq!(outcome.status, 1, "{outcome:?}");
        assert!(outcome.stderr.contains("is deadlocked cannot be told"), "{outcome:?}");
        assert!(!outcome.stdout.contains("no deadlock found"), "{outcome:?}");
    }
    assert_eq!(hung.dump(&[]).status, 3);
}

/// Dumps a program of which only what follows its calls, and the variables in its frames, tell who
/// holds what.
#[test]
fn a_guard_in_scope_confirms_what_the_code_behind_a_call_shows() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program) = (folder.path().join("guards.cpp"), folder.path().join("guards"));
    std::fs::write(&source, include_str!("dump/guards.cpp")).expect("written");
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++20", "-O2", "-g", "-pthread", "-o"]).arg(&program).arg(&source);
    if !compiler.output().is_ok_and(|built| built.status.success()) {
        eprintln!("skipped: no compiler of C++20");
        return;
    }
    let hung = Hung::start(&mut Command::new(&program));
    if !hung.settle(3) {
        return;
    }
    let outcome = hung.dump(&["--json"]);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    let found: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let locks = found["locks"].as_array().expect("a list").iter();
    let holders: Vec<_> =
        locks.flat_map(|lock| lock["holders"].as_array().cloned().unwrap_or_default()).collect();
    assert_eq!(holders.len(), 2, "{found:#}");
    for holder in &holders {
        assert_eq!(holder["guard"], "kept", "neither `gone` nor `wanted`: {holder:#}");
        // Other versions of the C++ library may have a landing pad for the call.
        assert!(holder["evidence"] == "guard" || holder["evidence"] == "pad", "{holder:#}");
        let why = holder["rests_on"].as_str().expect("a reason");
        assert!(why.contains("cross() would"), "not what is inlined into it: {why}");
        assert!(why.ends_with("its guard is kept"), "{why}");
    }
    assert_eq!(found["cycles"][0]["verdict"], "deadlock", "{found:#}");
}
