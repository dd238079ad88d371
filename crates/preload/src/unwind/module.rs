//! Finds the loaded modules, by glibc and without a lock.

use core::ffi::{c_int, c_void};
use lockstead_unwind::ModuleImage;

/// The modules of a process, by address.
pub trait LoadedModules {
    /// The mapping of a module.
    type Image<'a>: ModuleImage
    where
        Self: 'a;

    /// Returns the module that holds `pc`, with the address of its `.eh_frame_hdr`.
    fn find(&self, pc: u64) -> Option<(Self::Image<'_>, u64)>;

    /// Returns the eight bytes of code at `pc`, if a module holds them.
    fn code(&self, pc: u64) -> Option<[u8; 8]>;
}

/// Knows no modules without a way to find them; frame pointers are all that is left.
impl<M: LoadedModules> LoadedModules for Option<M> {
    type Image<'a>
        = M::Image<'a>
    where
        Self: 'a;

    fn find(&self, pc: u64) -> Option<(Self::Image<'_>, u64)> {
        self.as_ref()?.find(pc)
    }

    fn code(&self, pc: u64) -> Option<[u8; 8]> {
        self.as_ref()?.code(pc)
    }
}

/// The type of `_dl_find_object`, which takes the address to look up and the place for the answer,
/// a `struct dl_find_object`. It returns 0 if it found a module.
pub type FindObject = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;

/// `struct dl_find_object` as the glibc manual documents it, for 64 bits.
#[repr(C)]
struct FoundObject {
    flags: u64,
    map_start: u64,
    map_end: u64,
    link_map: *mut c_void,
    /// The module's `PT_GNU_EH_FRAME`, the section `.eh_frame_hdr`; 0 without.
    eh_frame: u64,
    reserved: [u64; 7],
}

/// The modules that the dynamic loader has loaded into this process.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    find: FindObject,
}

impl Loaded {
    /// Makes the modules that `find` knows.
    ///
    /// # Safety
    /// `find` is glibc's `_dl_find_object`.
    #[must_use]
    pub const unsafe fn new(find: FindObject) -> Self {
        Self { find }
    }
}

impl Loaded {
    /// Returns what glibc knows of the module that holds the address.
    fn ask(&self, address: u64) -> Option<FoundObject> {
        let mut found = FoundObject {
            flags: 0,
            map_start: 0,
            map_end: 0,
            link_map: core::ptr::null_mut(),
            eh_frame: 0,
            reserved: [0; 7],
        };
        // SAFETY: the constructor's caller promises glibc's function, which takes any address;
        // the place lives on this stack and has the documented layout.
        let status = unsafe { (self.find)(address as *mut c_void, (&raw mut found).cast()) };
        (status == 0).then_some(found)
    }
}

impl LoadedModules for Loaded {
    type Image<'a> = MappedModule;

    fn find(&self, pc: u64) -> Option<(MappedModule, u64)> {
        let mut found = self.ask(pc).filter(|found| found.eh_frame != 0)?;
        let header = found.eh_frame;
        // Of a module with gaps between its segments glibc tells the segment.
        // The tables lie in another, together.
        if !(found.map_start..found.map_end).contains(&header) {
            found = self.ask(header)?;
        }
        Some((MappedModule { start: found.map_start, end: found.map_end }, header))
    }

    fn code(&self, pc: u64) -> Option<[u8; 8]> {
        let found = self.ask(pc)?;
        let module = MappedModule { start: found.map_start, end: found.map_end };
        module.bytes(pc, 8)?.try_into().ok()
    }
}

/// The mapping of a loaded module, or of the segment with its tables.
///
/// It stays while one of the module's functions is on the stack, which is how a
/// walk comes to it. (A program that unloads code to which it will return has no
/// future. A stack that was overwritten with the address of a module that
/// another thread unloads at this moment is the one case that could fault.)
#[derive(Clone, Copy, Debug)]
pub struct MappedModule {
    start: u64,
    end: u64,
}

impl ModuleImage for MappedModule {
    fn bytes(&self, address: u64, len: u64) -> Option<&[u8]> {
        if address < self.start || address.checked_add(len)? > self.end {
            return None;
        }
        // SAFETY: WALK-TABLES: inside the mapping, which stays (see the type). The unwind
        // tables, and the code to which a return address leads, lie in a segment that
        // is readable and never written. A mapping may have gaps, but only a
        // table that names addresses outside itself could lead into one; the
        // loader and the C++ runtime trust it equally.
        Some(unsafe { core::slice::from_raw_parts(address as *const u8, len as usize) })
    }
}
