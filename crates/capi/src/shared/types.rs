//! What a root consists of, as C describes it.

use core::ffi::{CStr, c_char};
use lockstead::shared::inspect::Layout;
use lockstead::shared::raw::Form;
use lockstead::shared::{LockKind, SegmentError};

/// A part of a root: `enum lks_shm_kind` says which of the fields mean something.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[repr(C)]
#[derive(Debug)]
pub struct lks_shm_type {
    kind: u32,
    name: *const c_char,
    size: usize,
    align: usize,
    /// Elements of an array, fields of a struct.
    count: usize,
    /// From one element to the next; where the data of a lock begins.
    offset: usize,
    /// Each element; the data of a lock, or null.
    inner: *const lks_shm_type,
    fields: *const lks_shm_field,
}

/// A field of a struct.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[repr(C)]
#[derive(Debug)]
pub struct lks_shm_field {
    name: *const c_char,
    offset: usize,
    of: *const lks_shm_type,
}

const _: () = assert!(size_of::<lks_shm_type>() == 64 && size_of::<lks_shm_field>() == 24);

/// No description of a root has more parts; one that leads into itself has.
const MOST: usize = 1 << 17;

/// The form that is described.
///
/// # Safety
/// A description as `shm.h` has it: all that its kinds say is there.
pub(super) unsafe fn form(root: &lks_shm_type) -> Result<Form, SegmentError> {
    let mut left = MOST;
    // SAFETY: as the caller says.
    match unsafe { layout(root, 48, &mut left) } {
        Some(layout) => Form::new(layout, root.align as u64),
        None => Err(SegmentError::Options(
            "the root's description: parts that lie within each other and have names, locks at \
             multiples of 8, at most 48 levels",
        )),
    }
}

/// # Safety
/// As of [`form`].
unsafe fn layout(part: &lks_shm_type, deep: usize, left: &mut usize) -> Option<Layout> {
    let deep = deep.checked_sub(1)?;
    *left = left.checked_sub(1)?;
    // SAFETY: null, or a part (the caller).
    let mut inner = || unsafe { layout(part.inner.as_ref()?, deep, left) };
    let (size, count, offset) = (part.size as u64, part.count as u64, part.offset as u64);
    let lock = match part.kind {
        0 => return Some(Layout::plain(text(part.name)?, size)),
        1 => return Layout::array(count, offset, inner()?).filter(|array| array.size == size),
        2 => {
            let mut fields = Vec::new();
            for at in 0..part.count {
                // SAFETY: so many fields are there (the caller).
                let field = unsafe { part.fields.add(at).as_ref() }?;
                // SAFETY: null, or a part (the caller).
                let of = unsafe { layout(field.of.as_ref()?, deep, left) }?;
                fields.push((text(field.name)?, field.offset as u64, of));
            }
            return Layout::structure(text(part.name)?, size, fields);
        }
        3 => LockKind::Mutex,
        4 => LockKind::RwLock,
        5 => LockKind::Semaphore,
        6 => LockKind::Condvar,
        _ => return None,
    };
    let data = if part.inner.is_null() { Layout::plain("()", 0) } else { inner()? };
    Layout::lock(lock, size, offset, data)
}

/// A name.
fn text(name: *const c_char) -> Option<String> {
    if name.is_null() {
        return None;
    }
    // SAFETY: a string (the caller of `form`).
    Some(unsafe { CStr::from_ptr(name) }.to_str().ok()?.to_owned())
}
