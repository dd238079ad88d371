//! The methods of `Lock` and `RLock` for the usual case: a lock that is free, and a release for which
//! nobody waits.
//!
//! # Role
//! PyO3's methods keep books and take arguments apart, which costs more than the lock. These look
//! whether there is nothing to do but one operation on the lock's word, and do it; all else they leave to
//! the methods of the same name with an underscore, by PyO3.
//!
//! # Invariants
//! - **FAST-OWN** The interpreter calls these as methods of [`Mutex`], so with an object of it or of a class
//!   derived from it, attached to the interpreter: descriptors check that.

use crate::mutex::Mutex;
use core::ffi::{CStr, c_int};
use pyo3::ffi::{self, PyMethodDef, PyMethodDefPointer, PyObject};
use pyo3::prelude::*;

/// A method with positional and named arguments.
type WithArguments =
    unsafe extern "C" fn(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;

/// The methods, which descriptors refer to for ever.
static METHODS: Methods = Methods([
    with_arguments(
        c"acquire",
        acquire,
        c"acquire($self, block=True, timeout=None)\n--\n\n\
          Acquires the lock, waiting for it if `block`, at most `timeout` seconds. Returns whether the \
          caller has it.",
    ),
    without(c"release", release, c"release($self)\n--\n\nReleases the lock, which the calling thread has."),
    without(c"__enter__", enter, c"__enter__($self)\n--\n\n"),
    with_arguments(c"__exit__", exit, c"__exit__($self, *error)\n--\n\n"),
]);

struct Methods([PyMethodDef; 4]);

// SAFETY: never changed; names, texts and functions are the program's.
unsafe impl Sync for Methods {}

const fn with_arguments(
    name: &'static CStr,
    method: WithArguments,
    doc: &'static CStr,
) -> PyMethodDef {
    PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: PyMethodDefPointer { PyCFunctionWithKeywords: method },
        ml_flags: ffi::METH_VARARGS | ffi::METH_KEYWORDS,
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
pub(crate) fn add(py: Python<'_>) -> PyResult<()> {
    let class = py.get_type::<Mutex>();
    for method in &METHODS.0 {
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
unsafe fn with<T>(slf: *mut PyObject, call: impl FnOnce(&Mutex) -> T) -> T {
    // SAFETY: FAST-OWN: the thread is attached for the length of the call.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: FAST-OWN: the caller's reference lasts for the call.
    let object = unsafe { Borrowed::from_ptr(py, slf) };
    // SAFETY: FAST-OWN: the descriptor has checked the object's type.
    call(unsafe { object.cast_unchecked::<Mutex>() }.get())
}

/// Returns a new reference to one of the objects that live for ever.
#[inline(always)]
fn new(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: FAST-OWN: attached, and the object is `True` or `None`.
    unsafe { ffi::Py_INCREF(object) };
    object
}

/// Calls the object's method of this name, by PyO3.
#[cold]
fn call(
    slf: *mut PyObject,
    name: &str,
    args: *mut PyObject,
    named: *mut PyObject,
) -> *mut PyObject {
    let result: PyResult<*mut PyObject> = Python::attach(|py| {
        // SAFETY: FAST-OWN; the arguments are the caller's, for the call, or null.
        let (slf, args, named) = unsafe {
            (
                Borrowed::from_ptr(py, slf),
                Borrowed::from_ptr_or_opt(py, args),
                Borrowed::from_ptr_or_opt(py, named),
            )
        };
        let method = slf.getattr(name)?;
        let args = match args {
            Some(args) => args.to_owned().cast_into::<pyo3::types::PyTuple>()?,
            None => pyo3::types::PyTuple::empty(py),
        };
        let named = named.map(|named| named.to_owned().cast_into::<pyo3::types::PyDict>());
        method.call(args, named.transpose()?.as_ref()).map(|result| result.into_ptr())
    });
    match result {
        Ok(result) => result,
        Err(error) => {
            Python::attach(|py| PyErr::restore(error, py));
            core::ptr::null_mut()
        }
    }
}

unsafe extern "C" fn acquire(
    slf: *mut PyObject,
    args: *mut PyObject,
    named: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: FAST-OWN; the interpreter passes a tuple.
    let taken =
        unsafe { named.is_null() && ffi::PyTuple_Size(args) == 0 && with(slf, Mutex::take_now) };
    // SAFETY: FAST-OWN: the thread is attached, and the object lives for ever.
    if taken { new(unsafe { ffi::Py_True() }) } else { call(slf, "_acquire", args, named) }
}

unsafe extern "C" fn enter(slf: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    let null = core::ptr::null_mut();
    // SAFETY: FAST-OWN holds of the object that this was called with.
    let taken = unsafe { with(slf, Mutex::take_now) };
    // SAFETY: FAST-OWN: the thread is attached, and the object lives for ever.
    if taken { new(unsafe { ffi::Py_True() }) } else { call(slf, "_acquire", null, null) }
}

unsafe extern "C" fn release(slf: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    let null = core::ptr::null_mut();
    // SAFETY: FAST-OWN holds of the object that this was called with.
    let given = unsafe { with(slf, Mutex::give_now) };
    // SAFETY: FAST-OWN: the thread is attached, and the object lives for ever.
    if given { new(unsafe { ffi::Py_None() }) } else { call(slf, "_release", null, null) }
}

unsafe extern "C" fn exit(slf: *mut PyObject, _: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: FAST-OWN holds of the object that this was called with.
    unsafe { release(slf, core::ptr::null_mut()) }
}
