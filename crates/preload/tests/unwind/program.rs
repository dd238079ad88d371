//! Small C programs, made by the system's compiler while the tests run.

use std::ffi::{CString, c_void};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Held while a program is unloaded.
pub(crate) static UNLOADING: Mutex<()> = Mutex::new(());

/// A loaded shared object, compiled from C. It stays loaded.
pub(crate) struct Program(*mut c_void);

/// A C function that takes a script, the function to call at its end, and what
/// to pass to that.
pub(crate) type Entry =
    unsafe extern "C" fn(*const u8, unsafe extern "C" fn(*mut c_void), *mut c_void);

impl Program {
    /// Compiles and loads `source`. `None`, with a message, without a compiler.
    pub(crate) fn new(source: &str, flags: &[&str]) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("unwind-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let base = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let (c, object) = (base.with_extension("c"), base.with_extension("so"));
        std::fs::write(&c, source).expect("a file in the temporary folder");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-w", "-o"])
            .args([&object, &c])
            .args(flags)
            .output();
        let output = match compiled {
            Ok(output) => output,
            Err(error) => {
                eprintln!("skipped: no C compiler `cc`: {error}");
                return None;
            }
        };
        assert!(output.status.success(), "{flags:?}: {}", String::from_utf8_lossy(&output.stderr));
        let path = CString::new(object.into_os_string().into_encoded_bytes()).expect("no zeros");
        // SAFETY: these programs have no initialisers, so that none of their code runs.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null(), "{path:?} does not load");
        Some(Self(handle))
    }

    /// Returns the function `name` of the program.
    pub(crate) fn entry(&self, name: &str) -> Entry {
        let name = CString::new(name).expect("no zeros");
        // SAFETY: `dlsym` reads `name`, which lives until the call returns.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!symbol.is_null(), "no {name:?} in the program");
        // SAFETY: the programs of these tests define it with this type.
        unsafe { std::mem::transmute::<*mut c_void, Entry>(symbol) }
    }

    /// Unloads the program, of which no function may be running.
    pub(crate) fn unload(self) {
        let _alone = UNLOADING.lock();
        // SAFETY: the handle is open; by the caller nothing of it is in use.
        assert_eq!(unsafe { libc::dlclose(self.0) }, 0);
    }
}
