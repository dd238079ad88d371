//! The methods of `Lock`, `RLock` and the semaphores for the usual case: a lock that is free, and a
//! release for which nobody waits.
//!
//! # Role
//! PyO3's methods keep books and take arguments apart, which costs more than the lock. These look
//! whether there is nothing to do but one step of the lock's fast path, and do it; all else they leave to
//! the methods of the same name with an underscore, by PyO3.
//!
//! # Invariants
//! - **FAST-OWN** The interpreter calls these as methods of the class that [`add`] gave them to, so with an
//!   object of it or of a class derived from it, attached to the interpreter: descriptors check that. It
//!   passes as many arguments as it says, and their names as a tuple, or none.

use core::ffi::{CStr, c_int};
use pyo3::PyClass;
use pyo3::ffi::{self, Py_ssize_t, PyMethodDef, PyMethodDefPointer, PyObject};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::{PyDict, PyTuple};

/// A class whose objects are acquired and released, usually in one step.
pub(crate) trait Fast: PyClass<Frozen = True> + Sync {
    /// Whether `release` takes arguments.
    const RELEASES_MANY: bool;

    /// Acquires it if that is one step. Returns whether it did.
    fn take_now(&self) -> bool;

    /// Releases it if that is one step. Returns whether it did.
    fn give_now(&self) -> bool;
}

/// What the interpreter calls with the object, the arguments, and the names of the last ones.
type WithArguments = unsafe extern "C" fn(
    *mut PyObject,
    *const *mut PyObject,
    Py_ssize_t,
    *mut PyObject,
) -> *mut PyObject;

/// `METH_FASTCALL`, which the stable interface has had since 3.10 only, but under this number and with
/// this meaning every CPython since 3.7. Methods that get a tuple instead cost a fifth of the time of a
/// lock and a release.
const FASTCALL: c_int = 0x0080;

struct Methods([PyMethodDef; 4]);

/// The methods of a class, which descriptors refer to for ever.
struct Of<T>(core::marker::PhantomData<T>);

impl<T: Fast> Of<T> {
    const METHODS: &'static Methods = &Methods([
        with_arguments(
            c"acquire",
            acquire::<T>,
            c"acquire($self, block=True, timeout=None)\n--\n\n\
              Acquires the lock or a unit, waiting for it if `block`, at most `timeout` seconds. Returns \
              whether the caller has it.",
        ),
        if T::RELEASES_MANY {
            with_arguments(
                c"release",
                release_many::<T>,
                c"release($self, n=1)\n--\n\n\
                  Gives units back: those that the calling thread has, or new ones if it has none.",
            )
        } else {
            without(
                c"release",
                release::<T>,
                c"release($self)\n--\n\nReleases the lock, which the calling thread has.",
            )
        },
        without(c"__enter__", enter::<T>, c"__enter__($self)\n--\n\n"),
        with_arguments(c"__exit__", exit::<T>, c"__exit__($self, *error)\n--\n\n"),
    ]);
}

// SAFETY: never changed; names, texts and functions are the program's.
unsafe impl Sync for Methods {}

const fn with_arguments(
    name: &'static CStr,
    method: WithArguments,
    doc: &'static CStr,
) -> PyMethodDef {
    // SAFETY: both are pointers to functions, and the flags say which function it is.
    let method =
        unsafe { core::mem::transmute::<WithArguments, ffi::PyCFunctionWithKeywords>(method) };
    PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: PyMethodDefPointer { PyCFunctionWithKeywords: method },
        ml_flags: FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: doc.as_ptr(),
    }
}

const fn without(name: &'static CStr, method: ffi::PyCFunction, doc: &'static CStr) -> PyMethodDef {
    PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: PyMethodDefPointer { PyCFunction: method },
        ml_flags: ffi::METH_NOARGS as c_int,
        ml_doc: doc.as_ptr(),
    }
}

/// Gives the class these methods.
pub(crate) fn add<T: Fast>(py: Python<'_>) -> PyResult<()> {
    let class = py.get_type::<T>();
    for method in &Of::<T>::METHODS.0 {
        // SAFETY: the class is one, and the definition lives for ever. The interpreter does not change it.
        let descriptor = unsafe {
            let definition = core::ptr::from_ref(method).cast_mut();
            let descriptor = ffi::PyDescr_NewMethod(class.as_type_ptr(), definition);
            Bound::from_owned_ptr_or_err(py, descriptor)?
        };
        // SAFETY: the name is a string of the program's, which ends in zero and lives for ever.
        let name = unsafe { CStr::from_ptr(method.ml_name) };
        class.setattr(name.to_str().unwrap_or_default(), descriptor)?;
    }
    Ok(())
}

/// Calls with the object as what it is.
///
/// # Safety
/// FAST-OWN.
#[inline(always)]
unsafe fn with<T: Fast, R>(slf: *mut PyObject, call: impl FnOnce(&T) -> R) -> R {
    // SAFETY: FAST-OWN: the thread is attached for the length of the call.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: FAST-OWN: the caller's reference lasts for the call.
    let object = unsafe { Borrowed::from_ptr(py, slf) };
    // SAFETY: FAST-OWN: the descriptor has checked the object's type.
    call(unsafe { object.cast_unchecked::<T>() }.get())
}

/// Returns a new reference to one of the objects that live for ever.
#[inline(always)]
fn new(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: FAST-OWN: attached, and the object is `True` or `None`.
    unsafe { ffi::Py_INCREF(object) };
    object
}

/// The arguments of a call: `count` by position, then those that have names.
#[derive(Clone, Copy)]
struct Arguments {
    all: *const *mut PyObject,
    count: Py_ssize_t,
    names: *mut PyObject,
}

impl Arguments {
    const NONE: Arguments =
        Arguments { all: core::ptr::null(), count: 0, names: core::ptr::null_mut() };

    /// Tells whether there is none, or `True` alone, as what `acquire` is called with.
    #[inline(always)]
    fn are_usual(self) -> bool {
        if !self.names.is_null() {
            return false;
        }
        // SAFETY: FAST-OWN: so many arguments are there; `True` lives for ever.
        self.count == 0 || self.count == 1 && unsafe { *self.all == ffi::Py_True() }
    }

    /// Returns the arguments as PyO3 passes them.
    ///
    /// # Safety
    /// FAST-OWN: they are those of a call that goes on.
    unsafe fn apart<'py>(
        self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>)> {
        let at = |index: usize| {
            // SAFETY: the caller asks for arguments that are there, each a live object.
            unsafe { Borrowed::from_ptr(py, *self.all.add(index)) }
        };
        let count = self.count.unsigned_abs();
        let args = PyTuple::new(py, (0..count).map(at))?;
        // SAFETY: the interpreter's tuple, for the call, or null.
        let Some(names) = (unsafe { Borrowed::from_ptr_or_opt(py, self.names) }) else {
            return Ok((args, None));
        };
        let named = PyDict::new(py);
        for (index, name) in names.try_iter()?.enumerate() {
            named.set_item(name?, at(count + index))?;
        }
        Ok((args, Some(named)))
    }
}

/// Calls the object's method of this name, by PyO3.
#[cold]
fn call(slf: *mut PyObject, name: &str, arguments: Arguments) -> *mut PyObject {
    let result: PyResult<*mut PyObject> = Python::attach(|py| {
        // SAFETY: FAST-OWN: the caller's reference lasts for the call.
        let method = unsafe { Borrowed::from_ptr(py, slf) }.getattr(name)?;
        // SAFETY: FAST-OWN: the arguments are the caller's, who keeps them for the call.
        let (args, named) = unsafe { arguments.apart(py)? };
        method.call(args, named.as_ref()).map(|result| result.into_ptr())
    });
    match result {
        Ok(result) => result,
        Err(error) => {
            Python::attach(|py| PyErr::restore(error, py));
            core::ptr::null_mut()
        }
    }
}

unsafe extern "C" fn acquire<T: Fast>(
    slf: *mut PyObject,
    all: *const *mut PyObject,
    count: Py_ssize_t,
    names: *mut PyObject,
) -> *mut PyObject {
    let arguments = Arguments { all, count, names };
    // SAFETY: FAST-OWN holds of the object that this was called with.
    let taken = arguments.are_usual() && unsafe { with(slf, T::take_now) };
    // SAFETY: FAST-OWN: the thread is attached, and the object lives for ever.
    if taken { new(unsafe { ffi::Py_True() }) } else { call(slf, "_acquire", arguments) }
}

unsafe extern "C" fn enter<T: Fast>(slf: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: FAST-OWN holds of the object that this was called with.
    let taken = unsafe { with(slf, T::take_now) };
    // SAFETY: FAST-OWN: the thread is attached, and the object lives for ever.
    if taken { new(unsafe { ffi::Py_True() }) } else { call(slf, "_acquire", Arguments::NONE) }
}

unsafe extern "C" fn release<T: Fast>(slf: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: FAST-OWN holds of the object that this was called with.
    let given = unsafe { with(slf, T::give_now) };
    // SAFETY: FAST-OWN: the thread is attached, and the object lives for ever.
    if given { new(unsafe { ffi::Py_None() }) } else { call(slf, "_release", Arguments::NONE) }
}

unsafe extern "C" fn release_many<T: Fast>(
    slf: *mut PyObject,
    all: *const *mut PyObject,
    count: Py_ssize_t,
    names: *mut PyObject,
) -> *mut PyObject {
    if count == 0 && names.is_null() {
        // SAFETY: FAST-OWN holds of the object that this was called with.
        return unsafe { release::<T>(slf, core::ptr::null_mut()) };
    }
    call(slf, "_release", Arguments { all, count, names })
}

unsafe extern "C" fn exit<T: Fast>(
    slf: *mut PyObject,
    _: *const *mut PyObject,
    _: Py_ssize_t,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: FAST-OWN holds of the object that this was called with.
    unsafe { release::<T>(slf, core::ptr::null_mut()) }
}
