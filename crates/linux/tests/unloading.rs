//! A library with locks inside that a program loads and closes again, while threads live
//! that have used them: their ends are in order, and nothing is used up.

#![cfg(target_env = "gnu")]

use std::ffi::{CString, c_void};
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc;

/// This variable in a child's environment names the library.
const LIBRARY: &str = "LOCKSTEAD_TEST_UNLOADS";
/// The number of times: as there are keys for threads' values, and some more.
const TIMES: u64 = 1100;

fn library() -> Option<PathBuf> {
    let tests = std::env::current_exe().expect("this program");
    let built = tests.ancestors().nth(2).expect("the build").join("examples/libplugin.so");
    let built = built.exists().then_some(built);
    if built.is_none() {
        eprintln!("skipped: the library is built with all tests of the package only");
    }
    built
}

#[test]
fn a_library_with_locks_is_closed_while_threads_live() {
    if let Some(library) = std::env::var_os(LIBRARY) {
        return load_and_close(library.to_str().expect("a plain name"));
    }
    let Some(library) = library() else { return };
    let own = std::env::current_exe().expect("this program");
    let mut child = Command::new("timeout");
    child.args(["-k", "5", "60"]).arg(own).args(["--exact", "--nocapture"]);
    child.arg("a_library_with_locks_is_closed_while_threads_live").env(LIBRARY, library);
    let ended = child.output().expect("it runs");
    assert!(ended.status.success(), "{ended:?}");
}

fn load_and_close(library: &str) {
    let library = CString::new(library).expect("a plain name");
    let (first, last) = (keys_left(), TIMES - 1);
    for time in 0..TIMES {
        // SAFETY: a library whose constructors do no harm, and its function, of this
        // type.
        let (handle, uses_a_lock) = unsafe {
            let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            assert!(!handle.is_null(), "it is loaded");
            let found = libc::dlsym(handle, c"plugin_uses_a_lock".as_ptr());
            assert!(!found.is_null());
            (handle, std::mem::transmute::<*mut c_void, extern "C" fn() -> u64>(found))
        };
        let (has_used, used) = mpsc::channel();
        let (closed, is_closed) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            has_used.send(uses_a_lock()).expect("the other end waits");
            is_closed.recv().expect("it is closed");
        });
        assert!(used.recv().expect("it uses the lock") > 0);
        // SAFETY: the handle is open, and nobody calls the library any more.
        assert_eq!(unsafe { libc::dlclose(handle) }, 0);
        closed.send(()).expect("the thread waits");
        thread.join().expect("the thread ends in order");
        if time == 0 || time == last {
            assert!(keys_left() + 4 >= first, "{} of {first} keys are left", keys_left());
        }
    }
}

/// Returns how many keys for threads' values a program can have.
fn keys_left() -> usize {
    let mut keys = Vec::new();
    let mut key = 0;
    // SAFETY: this function has created the keys, and nobody else knows them.
    unsafe {
        while libc::pthread_key_create(&raw mut key, None) == 0 {
            keys.push(key);
        }
        keys.iter().for_each(|&key| assert_eq!(libc::pthread_key_delete(key), 0));
    }
    keys.len()
}
