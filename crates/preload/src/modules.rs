//! Notes in the ledger which files the program's code and static locks lie in, with the
//! first address in each: the process may be gone, or the file unloaded, when the
//! command asks.

use crate::me::Me;
use crate::real;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use lockstead_ledger::ledger::LedgerPart;
use lockstead_ledger::module::ModuleRecord;

/// `struct dl_find_object` of glibc's manual, for x86-64.
#[repr(C)]
struct FoundObject {
    flags: u64,
    start: u64,
    end: u64,
    link_map: *const LinkMap,
    unwind: u64,
    reserved: [u64; 7],
}

/// The part of `struct link_map` that `<link.h>` documents.
#[repr(C)]
struct LinkMap {
    bias: u64,
    name: *const c_char,
}

/// Returns the loaded file that `address` lies in, code or data.
fn find(address: u64) -> Option<FoundObject> {
    let function = real::find_object();
    if function == 0 {
        return None;
    }
    // SAFETY: not zero, so that `real::resolve` has found `_dl_find_object`, which takes any
    // address and the place for its answer, and no lock.
    unsafe {
        let function: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int =
            core::mem::transmute(function);
        let mut found = MaybeUninit::<FoundObject>::zeroed();
        let status = function(address as *mut c_void, found.as_mut_ptr().cast());
        (status == 0).then(|| found.assume_init())
    }
}

/// Tells whether both addresses lie in the same loaded file.
#[cfg(feature = "check")]
#[must_use]
pub fn are_together(one: u64, other: u64) -> bool {
    find(one).zip(find(other)).is_some_and(|(one, other)| one.link_map == other.link_map)
}

impl Me {
    /// Notes the files of all these addresses of code.
    pub fn note_modules(&self, addresses: &[u64]) {
        for &address in addresses {
            let _ = self.module_of(address);
        }
    }

    /// Returns the number plus one of the file in which `address` lies; 0 if it lies in
    /// none, or the ledger is full.
    #[must_use]
    pub fn module_of(&self, address: u64) -> u32 {
        // Read before the file is looked for: if one is unloaded in between, this note is an old one.
        let unloads = self.ledger.header().unloads.load(Relaxed);
        if let Some(index) = self.noted(address, unloads) {
            return index + 1;
        }
        let Some(found) = find(address) else { return 0 };
        // SAFETY: the loader keeps the link map of a file as long as the file is loaded; the
        // program's caller or its lock lies in it, so that it stays while the call lasts.
        let (bias, path) = unsafe {
            let map = &*found.link_map;
            let name = if map.name.is_null() { c"" } else { CStr::from_ptr(map.name) };
            (map.bias, name.to_bytes())
        };
        // A file that lies where it did has its record already, whatever was unloaded beside it.
        let mut noted = self.ledger.modules()[..self.ledger.used(LedgerPart::Modules)].iter();
        let same = |module: &ModuleRecord| module.is_of(found.start, found.end, bias, path);
        if let Some(index) = noted.position(same) {
            self.ledger.modules()[index].unloads.fetch_max(unloads, Relaxed);
            self.ledger.header().modules_noted.fetch_add(1, Relaxed);
            return index as u32 + 1;
        }
        let Some(index) = self.ledger.claim(LedgerPart::Modules, 1) else {
            self.ledger.header().losses.modules.fetch_add(1, Relaxed);
            return 0;
        };
        self.ledger.modules()[index].write(found.start, found.end, bias, unloads, path);
        self.ledger.header().modules_noted.fetch_add(1, Relaxed);
        index as u32 + 1
    }

    fn noted(&self, address: u64, unloads: u64) -> Option<u32> {
        let used = self.ledger.used(LedgerPart::Modules);
        let covers = |module: &ModuleRecord| {
            // ord: LED-6 (acquire): the record.
            let start = module.start.load(Acquire);
            start != 0
                && (start..module.end.load(Relaxed)).contains(&address)
                && module.unloads.load(Relaxed) == unloads
        };
        self.ledger.modules()[..used].iter().position(covers).map(|index| index as u32)
    }
}
