//! A segment's file as this process has it: open, mapped, and known to its threads.

use super::Busy;
use super::cut;
use super::error::SegmentError;
use super::file::Map;
use super::header::Header;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::slice;
use lockstead_core::shared::Domain;
use lockstead_linux::Linux;
use lockstead_linux::shared::{Handle, Parts, attach, detach};
use std::fs::File;
use std::os::fd::AsRawFd;

/// See the module. Dropping it detaches and unmaps, or leaves all as it is if threads
/// still use it.
#[derive(Debug)]
pub(super) struct Attachment {
    map: ManuallyDrop<Map>,
    file: ManuallyDrop<File>,
    header: Box<Header>,
    /// `None` once it is detached.
    handle: Option<Handle>,
}

impl Attachment {
    /// Of a file with this header, which was checked.
    pub(super) fn new(file: File, header: &Header) -> Result<Attachment, SegmentError> {
        let map = Map::new(&file, header)?;
        let at = |offset: u64| address(&map, offset);
        let seats = header.seats as usize;
        let claims = seats * header.claims_each as usize;
        let parts = Parts {
            base: map.base(),
            len: map.bytes(),
            doorbell: at(header.doorbell).cast(),
            seats: NonNull::slice_from_raw_parts(at(header.seats_at).cast(), seats),
            claims: NonNull::slice_from_raw_parts(at(header.claims_at).cast(), claims),
            file: file.as_raw_fd(),
            exclusive: header.exclusive,
        };
        cut::remember(&map);
        // SAFETY: the parts lie in the mapping (`Header`), which is shared and can be
        // read and written, and is not unmapped before they are detached (`drop`).
        let handle = unsafe { attach(&parts) }.inspect_err(|_| cut::forget(&map))?;
        let (map, file) = (ManuallyDrop::new(map), ManuallyDrop::new(file));
        Ok(Attachment { map, file, header: Box::new(*header), handle: Some(handle) })
    }

    /// The file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// What `lockstead_linux` knows it by.
    pub(super) fn handle(&self) -> &Handle {
        self.handle.as_ref().expect("attached until it is dropped")
    }

    /// What its participants see.
    pub(super) fn domain(&self) -> Domain<'_, Linux> {
        let header = &self.header;
        let seats = header.seats as usize;
        let claims = seats * header.claims_each as usize;
        // SAFETY: in the mapping (`Header`), which lives as long as this, aligned as the
        // header's places are; made of atomics only, for which any bits are valid.
        unsafe {
            Domain {
                doorbell: self.at(header.doorbell).cast().as_ref(),
                seats: slice::from_raw_parts(self.at(header.seats_at).cast().as_ptr(), seats),
                claims: slice::from_raw_parts(self.at(header.claims_at).cast().as_ptr(), claims),
                claims_each: header.claims_each as usize,
                segment: self.handle().attached(),
                base: self.map.base().addr().get(),
            }
        }
    }

    /// What the file's first page said.
    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    /// The address of an offset that the header gives.
    pub(super) fn at(&self, offset: u64) -> NonNull<u8> {
        address(&self.map, offset)
    }

    /// Detaches and unmaps it.
    pub(super) fn close(mut self) -> Result<(), (Attachment, Busy)> {
        match self.detach() {
            Ok(()) => Ok(()),
            Err(busy) => Err((self, busy)),
        }
    }

    fn detach(&mut self) -> Result<(), Busy> {
        let Some(handle) = self.handle.take() else { return Ok(()) };
        match detach(handle) {
            Ok(()) => Ok(()),
            Err((handle, busy)) => {
                self.handle = Some(handle);
                Err(busy)
            }
        }
    }
}

fn address(map: &Map, offset: u64) -> NonNull<u8> {
    assert!(offset <= map.bytes() as u64, "an offset of the header lies in the segment");
    // SAFETY: within the mapping, or just behind it.
    unsafe { map.base().add(offset as usize) }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        if self.detach().is_ok() {
            cut::forget(&self.map);
            // SAFETY: dropped once, here, and not used afterwards. Nobody has the memory
            // any more: it is detached.
            unsafe {
                ManuallyDrop::drop(&mut self.map);
                ManuallyDrop::drop(&mut self.file);
            }
        }
    }
}
