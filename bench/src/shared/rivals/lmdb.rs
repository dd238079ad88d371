//! LMDB's lock for writers and its table of readers, where the library is installed.
//!
//! It is loaded when it is measured, so that nothing is linked that most machines lack. Its
//! constants and calls are those of `lmdb.h` of version 0.9.

use super::locks::{Rival, RivalGround};
use super::trials::{Board, await_word, first};
use crate::Error;
use crate::shared::memory::SharedMemory;
use crate::shared::process::{Namespaces, WorkerProcess};
use serde::Serialize;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

type Environment = *mut c_void;
type Transaction = *mut c_void;

/// A transaction that only reads.
const READS: c_uint = 0x20000;

/// Declares a structure of the calls that are used, and how it is filled in.
macro_rules! calls {
    ($($field:ident: $name:literal, fn($($given:ty),*) $(-> $told:ty)?;)*) => {
        struct LmdbCalls {
            $($field: unsafe extern "C" fn($($given),*) $(-> $told)?,)*
        }

        impl LmdbCalls {
            /// Loads the library, or says why it cannot.
            fn load() -> Result<LmdbCalls, String> {
                // SAFETY: loads a library of the system, whose beginning has no effects.
                let library = unsafe { libc::dlopen(c"liblmdb.so.0".as_ptr(), libc::RTLD_NOW) };
                let library = NonNull::new(library).ok_or("liblmdb.so.0 is not installed")?;
                Ok(LmdbCalls { $($field: {
                    // SAFETY: the library stays loaded, and the name ends with a zero.
                    let found = unsafe { libc::dlsym(library.as_ptr(), $name.as_ptr()) };
                    if found.is_null() {
                        return Err(format!("liblmdb.so.0 has no {}", $name.to_string_lossy()));
                    }
                    type Call = unsafe extern "C" fn($($given),*) $(-> $told)?;
                    // SAFETY: `lmdb.h` declares the function with this type.
                    unsafe { std::mem::transmute::<*mut c_void, Call>(found) }
                },)* })
            }
        }
    };
}

calls! {
    version: c"mdb_version", fn(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
    text: c"mdb_strerror", fn(c_int) -> *const c_char;
    create: c"mdb_env_create", fn(*mut Environment) -> c_int;
    open: c"mdb_env_open", fn(Environment, *const c_char, c_uint, libc::mode_t) -> c_int;
    close: c"mdb_env_close", fn(Environment);
    begin: c"mdb_txn_begin", fn(Environment, Transaction, c_uint, *mut Transaction) -> c_int;
    abort: c"mdb_txn_abort", fn(Transaction);
    check: c"mdb_reader_check", fn(Environment, *mut c_int) -> c_int;
}

impl LmdbCalls {
    fn get() -> Result<&'static LmdbCalls, String> {
        static CALLS: OnceLock<Result<LmdbCalls, String>> = OnceLock::new();
        CALLS.get_or_init(LmdbCalls::load).as_ref().map_err(Clone::clone)
    }

    fn succeed(&self, what: &'static str, code: c_int) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the library returns a constant string for every number.
        let why = unsafe { CStr::from_ptr((self.text)(code)) };
        Err(Error::Segment { what, why: why.to_string_lossy().into_owned() })
    }
}

/// Returns the version of the library; or why there is none.
pub(super) fn version() -> Result<String, String> {
    let calls = LmdbCalls::get()?;
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: by CALL-LOCALS there is room for the three numbers.
    unsafe { (calls.version)(&raw mut major, &raw mut minor, &raw mut patch) };
    if (major, minor) != (0, 9) {
        return Err(format!("liblmdb.so.0 is version {major}.{minor}, and 0.9 is known"));
    }
    Ok(format!("{major}.{minor}.{patch}"))
}

/// A database, whose lock for writers is the lock, and whose readers share it: there they exclude
/// no writer, which makes a new version beside theirs.
pub(super) struct Lmdb {
    calls: &'static LmdbCalls,
    environment: Environment,
    transaction: Cell<Transaction>,
}

impl Lmdb {
    fn begin(&self, flags: c_uint) -> Result<(), Error> {
        let mut transaction = null_mut();
        // SAFETY: an environment that is open in this process; room for the result.
        let code = unsafe {
            (self.calls.begin)(self.environment, null_mut(), flags, &raw mut transaction)
        };
        self.calls.succeed("LMDB cannot begin", code)?;
        self.transaction.set(transaction);
        Ok(())
    }

    /// Has the table of readers looked through. Returns how many dead ones were cleared.
    fn clear_dead(&self) -> Result<c_int, Error> {
        let mut dead = 0;
        // SAFETY: an environment that is open in this process; room for the result.
        let code = unsafe { (self.calls.check)(self.environment, &raw mut dead) };
        self.calls.succeed("LMDB cannot look through its readers", code)?;
        Ok(dead)
    }
}

impl<'g> Rival<'g> for Lmdb {
    const NAME: &'static str = "LMDB";
    const SHARES: bool = true;
    const OPENS_TWICE: bool = false;

    fn open(ground: &'g RivalGround) -> Result<Self, Error> {
        let calls = LmdbCalls::get().map_err(|why| Error::Segment { what: "no LMDB", why })?;
        let path = CString::new(ground.folder().as_os_str().as_bytes()).expect("no zero in a path");
        let mut environment = null_mut();
        // SAFETY: by CALL-LOCALS there is room for the result.
        calls.succeed("LMDB", unsafe { (calls.create)(&raw mut environment) })?;
        let lmdb = Lmdb { calls, environment, transaction: Cell::new(null_mut()) };
        // SAFETY: the environment was just created, and the path ends with a zero.
        let code = unsafe { (calls.open)(environment, path.as_ptr(), 0, 0o600) };
        calls.succeed("LMDB cannot open its folder", code)?;
        Ok(lmdb)
    }

    #[inline]
    fn lock(&self) -> Result<bool, Error> {
        self.begin(0).map(|()| false)
    }

    fn try_lock(&self) -> Result<bool, Error> {
        Err(Error::Segment { what: "LMDB", why: "its lock cannot be tried".into() })
    }

    #[inline]
    fn unlock(&self) -> Result<(), Error> {
        let transaction = self.transaction.replace(null_mut());
        if !transaction.is_null() {
            // SAFETY: the transaction is one of `begin`, and is ended here alone.
            unsafe { (self.calls.abort)(transaction) };
        }
        Ok(())
    }

    #[inline]
    fn share(&self) -> Result<(), Error> {
        self.begin(READS)
    }
}

impl Drop for Lmdb {
    fn drop(&mut self) {
        let _ = Rival::unlock(self);
        // SAFETY: the environment was created in `open`, and no transaction is left.
        unsafe { (self.calls.close)(self.environment) };
    }
}

/// What becomes of LMDB's table of readers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReaderTable {
    /// The number of places that a killed reader leaves, until somebody asks for them to be
    /// cleared.
    pub left_by_killed: i32,
    /// Whether of two readers, each process 1 of a container, the second one may read; null where
    /// there can be no containers.
    pub same_number_reads: Option<bool>,
}

/// Tries what becomes of it.
pub(super) fn readers(
    grounds: &[RivalGround],
    namespaces: Option<Namespaces>,
) -> Result<ReaderTable, Error> {
    let board = SharedMemory::<Board>::create()?;
    let [first_ground, second_ground, ..] = grounds else { unreachable!("several were made") };
    board.clear();
    let mut reader = WorkerProcess::fork(|| read_on(first_ground, &board))?;
    await_word(&board.held, &mut reader)?;
    // Opened while the reader lives: who opens a database that nobody uses clears the table.
    let lmdb = Lmdb::open(first_ground)?;
    reader.kill();
    reader.reap();
    let left_by_killed = lmdb.clear_dead()?;
    drop(lmdb);
    let same_number_reads = match namespaces {
        Some(namespaces) => Some(same_number(second_ground, &board, namespaces)?),
        None => None,
    };
    Ok(ReaderTable { left_by_killed, same_number_reads })
}

fn read_on(ground: &RivalGround, board: &Board) -> Result<(), Error> {
    let lmdb = Lmdb::open(ground)?;
    lmdb.share()?;
    board.held.store(1, Ordering::Release);
    loop {
        std::thread::park();
    }
}

fn same_number(ground: &RivalGround, board: &Board, namespaces: Namespaces) -> Result<bool, Error> {
    board.clear();
    let mut one = first(namespaces, board, || read_on(ground, board))?;
    await_word(&board.held, &mut one.parent)?;
    let mut other = first(namespaces, board, || {
        let reads = Lmdb::open(ground).and_then(|lmdb| lmdb.share().map(|()| lmdb)).is_ok();
        board.got.store(if reads { 1 } else { 2 }, Ordering::Release);
        Ok(())
    })?;
    Ok(await_word(&board.got, &mut other.parent)? == 1)
}
