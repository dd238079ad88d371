//! `_dl_find_object`, for the unwinder that is linked into the command.
//!
//! The command carries the compiler's unwinder, so that it starts where the C library is alone. That
//! unwinder, since GCC 12, asks `_dl_find_object` for the tables of the code which an address lies in,
//! and glibc has it since 2.35, one version newer than the oldest that the command runs with. So the
//! command defines it, over `dl_iterate_phdr`, which unwinders asked before.

use libc::{PT_GNU_EH_FRAME, PT_LOAD, c_int, c_void, dl_phdr_info};

/// `struct dl_find_object`, as glibc's manual has it, for x86-64.
#[repr(C)]
struct Found {
    flags: u64,
    start: usize,
    end: usize,
    link_map: usize,
    /// The module's section `.eh_frame_hdr`.
    eh_frame: usize,
    reserved: [u64; 7],
}

/// What `look` searches for, and the place for what it finds.
struct Search {
    address: usize,
    found: *mut Found,
}

/// Finds the loaded module that has the address: 0 and what is known of it, or -1. The member
/// `link_map`, which no unwinder reads, is left empty.
///
/// # Safety
/// `found` is valid for writing.
#[unsafe(no_mangle)]
unsafe extern "C" fn _dl_find_object(address: *mut c_void, found: *mut Found) -> c_int {
    let mut search = Search { address: address.addr(), found };
    // SAFETY: `look` gets the search, which outlives the call, and does not unwind.
    let ended = unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    if ended > 0 { 0 } else { -1 }
}

/// Looks whether a module has the address: 1 ends the search as found, -1 as vain, 0 goes on.
///
/// # Safety
/// The loader describes one of its modules, and `search` points to a [`Search`] of which nobody else
/// knows meanwhile.
unsafe extern "C" fn look(info: *mut dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: as the caller promises; the loader's headers stay while it calls.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader says where the headers are, and how many.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let place = |at: u64| (info.dlpi_addr as usize).wrapping_add(at as usize);
    let (mut start, mut end, mut eh_frame, mut has_it) = (usize::MAX, 0, 0, false);
    for header in headers {
        let from = place(header.p_vaddr);
        let to = from.wrapping_add(header.p_memsz as usize);
        match header.p_type {
            PT_LOAD => {
                has_it |= (from..to).contains(&search.address);
                (start, end) = (start.min(from), end.max(to));
            }
            PT_GNU_EH_FRAME => eh_frame = from,
            _ => {}
        }
    }
    if !has_it {
        return 0;
    }
    if eh_frame == 0 {
        return -1;
    }
    let found = Found { flags: 0, start, end, link_map: 0, eh_frame, reserved: [0; 7] };
    // SAFETY: the caller of `_dl_find_object` promises that it is valid for writing.
    unsafe { search.found.write(found) };
    1
}

#[cfg(test)]
mod tests {
    use super::{_dl_find_object, Found};
    use libc::{c_int, c_void};

    type Find = unsafe extern "C" fn(*mut c_void, *mut Found) -> c_int;

    fn ask(find: Find, address: usize) -> Option<(std::ops::Range<usize>, usize)> {
        let mut found = std::mem::MaybeUninit::uninit();
        // SAFETY: the place is valid for writing, and read only where something was found.
        unsafe {
            (find(address as *mut c_void, found.as_mut_ptr()) == 0).then(|| {
                let found: Found = found.assume_init();
                (found.start..found.end, found.eh_frame)
            })
        }
    }

    #[test]
    fn it_finds_the_tables_that_glibc_finds() {
        // SAFETY: the names end with a zero; nothing is loaded, and what is loaded stays.
        let theirs = unsafe {
            let loader = libc::dlopen(c"ld-linux-x86-64.so.2".as_ptr(), libc::RTLD_NOLOAD | 1);
            if loader.is_null() { loader } else { libc::dlsym(loader, c"_dl_find_object".as_ptr()) }
        };
        let here = it_finds_the_tables_that_glibc_finds as fn() as usize;
        let away = libc::getpid as unsafe extern "C" fn() -> c_int as usize;
        let (program, library) = (ask(_dl_find_object, here), ask(_dl_find_object, away));
        for (address, found) in [(here, &program), (away, &library)] {
            let (range, eh_frame) = found.as_ref().expect("a module with tables");
            assert!(
                range.contains(&address) && range.contains(eh_frame),
                "{range:x?} {eh_frame:x}"
            );
        }
        assert_ne!(program, library);
        let local = 0_u8;
        let outside = [0, 1, (&raw const local).addr(), usize::MAX];
        assert!(outside.iter().all(|address| ask(_dl_find_object, *address).is_none()));
        if theirs.is_null() {
            return eprintln!("skipped in part: this glibc has no _dl_find_object");
        }
        // SAFETY: it is glibc's function of this name, which has this type.
        let theirs: Find = unsafe { std::mem::transmute(theirs) };
        for address in [here, away] {
            let tables = |find| ask(find, address).map(|(_, eh_frame)| eh_frame);
            assert_eq!(tables(_dl_find_object), tables(theirs));
        }
        assert!(outside.iter().all(|address| ask(theirs, *address).is_none()));
    }

    #[test]
    fn a_panic_unwinds_through_the_carried_unwinder() {
        struct Sets<'a>(&'a std::cell::Cell<bool>);
        impl Drop for Sets<'_> {
            fn drop(&mut self) {
                self.0.set(true);
            }
        }
        let dropped = std::cell::Cell::new(false);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _sets = Sets(&dropped);
            std::panic::resume_unwind(Box::new(7_u8));
        }));
        assert_eq!(caught.expect_err("it panics").downcast_ref(), Some(&7_u8));
        assert!(dropped.get());
    }
}
