//! The description of a root in C: what it consists of.

use core::ffi::{CStr, c_char};
use lockstead::shared::inspect::RootLayout;
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
    /// The number of elements of an array, of fields of a struct.
    count: usize,
    /// The distance from one element to the next; where the data of a lock begins.
    offset: usize,
    /// The type of each element; of the data of a lock, or null.
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

/// The most parts of a description. One that leads into itself has more.
const MOST: usize = 1 << 17;

/// Returns the form that C describes.
///
/// # Safety
/// CAPI-MEMORY holds: all that the kinds of the description say is there.
pub(super) unsafe fn form(root: &lks_shm_type) -> Result<Form, SegmentError> {
    let mut left = MOST;
    // SAFETY: CAPI-MEMORY: the description is whole, down to its last kind; the caller keeps it.
    match unsafe { layout(root, 48, &mut left) } {
        Some(layout) => Form::new(layout, root.align as u64),
        None => Err(SegmentError::Options(
            "the root's description: parts that lie within each other and have names, locks at \
             multiples of 8, at most 48 levels",
        )),
    }
}

/// Returns the layout of a part; `None` if the description means nothing.
///
/// # Safety
/// CAPI-MEMORY holds, as of [`form`].
unsafe fn layout(part: &lks_shm_type, deep: usize, left: &mut usize) -> Option<RootLayout> {
    let deep = deep.checked_sub(1)?;
    *left = left.checked_sub(1)?;
    // SAFETY: CAPI-MEMORY: the pointer is null or leads to a part; the caller keeps it.
    let mut inner = || unsafe { layout(part.inner.as_ref()?, deep, left) };
    let (size, count, offset) = (part.size as u64, part.count as u64, part.offset as u64);
    let lock = match part.kind {
        0 => return Some(RootLayout::plain(text(part.name)?, size)),
        1 => return RootLayout::array(count, offset, inner()?).filter(|array| array.size == size),
        2 => {
            let mut fields = Vec::new();
            for at in 0..part.count {
                // SAFETY: CAPI-MEMORY: so many fields are there; the caller keeps it.
                let field = unsafe { part.fields.add(at).as_ref() }?;
                // SAFETY: CAPI-MEMORY: the pointer is null or leads to a part; the caller keeps it.
                let of = unsafe { layout(field.of.as_ref()?, deep, left) }?;
                fields.push((text(field.name)?, field.offset as u64, of));
            }
            return RootLayout::structure(text(part.name)?, size, fields);
        }
        3 => LockKind::Mutex,
        4 => LockKind::RwLock,
        5 => LockKind::Semaphore,
        6 => LockKind::Condvar,
        _ => return None,
    };
    let data = if part.inner.is_null() { RootLayout::plain("()", 0) } else { inner()? };
    RootLayout::lock(lock, size, offset, data)
}

/// Returns a name; `None` if it is null or no UTF-8.
fn text(name: *const c_char) -> Option<String> {
    if name.is_null() {
        return None;
    }
    // SAFETY: CAPI-MEMORY: the name is a string; the caller of `form` keeps it.
    Some(unsafe { CStr::from_ptr(name) }.to_str().ok()?.to_owned())
}
