//! A segment's file as this process has it: open, mapped, and known to its threads.
//!
//! # Invariants
//! - **SEGMENT-MAPPED** A segment stays mapped at its address while anybody refers to it: while a
//!   `Segment` lives, and while a thread of the process is a participant or counted in.
//!   [`SegmentAttachment`]'s drop unmaps it only when detaching has succeeded.

use super::Busy;
use super::cut;
use super::error::{SegmentError, io};
use super::file::FileMap;
use super::header::SegmentHeader;
use super::layout::RootLayout;
use super::scrub::Scrubber;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::slice;
use lockstead_core::robust::Domain;
use lockstead_linux::Linux;
use lockstead_linux::shared::{SegmentHandle, SegmentParts, attach, detach};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A mapping that `lockstead_linux` knows. Dropping it detaches and unmaps, or leaves all as it is
/// if threads still use it.
#[derive(Debug)]
pub(super) struct SegmentAttachment {
    map: ManuallyDrop<FileMap>,
    file: ManuallyDrop<File>,
    /// The file's device and inode.
    identity: (u64, u64),
    header: Box<SegmentHeader>,
    /// The description of what the root is made of. Threads that join refer to it while it is
    /// attached.
    scrubber: ManuallyDrop<Box<Scrubber>>,
    /// The handle of the attached segment; `None` once it is detached.
    handle: Option<SegmentHandle>,
}

impl SegmentAttachment {
    /// Maps and attaches a file with this header and layout, which were checked. `path` leads to
    /// it, if it has a name.
    pub(super) fn new(
        file: File,
        header: &SegmentHeader,
        layout: RootLayout,
        path: Option<&Path>,
    ) -> Result<SegmentAttachment, SegmentError> {
        let path = path.and_then(|path| std::path::absolute(path).ok());
        let path = path.and_then(|path| CString::new(path.into_os_string().into_vec()).ok());
        let scrubber = Box::new(Scrubber { layout, root: header.root });
        let identity = identify(&file).map_err(io("asking what file the segment is"))?;
        let map = FileMap::new(&file, header)?;
        let at = |offset: u64| address(&map, offset);
        let records = header.slots as usize;
        let claims = records * header.claims_each as usize;
        let parts = SegmentParts {
            base: map.base(),
            len: map.bytes(),
            doorbell: at(header.doorbell).cast(),
            records: NonNull::slice_from_raw_parts(at(header.slots_at).cast(), records),
            claims: NonNull::slice_from_raw_parts(at(header.claims_at).cast(), claims),
            file: file.as_raw_fd(),
            scrub: Some(scrubber.hook()),
            exclusive: header.exclusive,
        };
        cut::remember(&map);
        // SAFETY: SEGMENT-MAPPED, which `drop` keeps: the parts lie in the mapping (checked by
        // `SegmentHeader`), which is shared and can be read and written.
        let handle =
            unsafe { attach(&parts, path.as_deref()) }.inspect_err(|_| cut::forget(&map))?;
        let (map, file) = (ManuallyDrop::new(map), ManuallyDrop::new(file));
        let scrubber = ManuallyDrop::new(scrubber);
        let header = Box::new(*header);
        Ok(SegmentAttachment { map, file, identity, header, scrubber, handle: Some(handle) })
    }

    /// Returns what its root is made of.
    pub(super) fn layout(&self) -> &RootLayout {
        &self.scrubber.layout
    }

    /// Has the worn-out slots begin anew; how many.
    pub(super) fn scrub(&self) -> usize {
        self.scrubber.scrub(self.handle().attached())
    }

    /// Returns the segment's open file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Returns what `lockstead_linux` knows it by.
    pub(super) fn handle(&self) -> &SegmentHandle {
        self.handle.as_ref().expect("attached until it is dropped")
    }

    /// Returns what its participants see.
    pub(super) fn domain(&self) -> Domain<'_, Linux> {
        let header = &self.header;
        let records = header.slots as usize;
        let claims = records * header.claims_each as usize;
        // SAFETY: SEGMENT-MAPPED, which `drop` keeps: the parts lie in the mapping, aligned
        // (checked by `SegmentHeader`). They consist of atomics, for which any bits are valid.
        unsafe {
            Domain {
                doorbell: self.at(header.doorbell).cast().as_ref(),
                records: slice::from_raw_parts(self.at(header.slots_at).cast().as_ptr(), records),
                claims: slice::from_raw_parts(self.at(header.claims_at).cast().as_ptr(), claims),
                claims_each: header.claims_each as usize,
                segment: self.handle().attached(),
                base: self.map.base().addr().get(),
            }
        }
    }

    /// Returns what the file's first page said.
    pub(super) fn header(&self) -> &SegmentHeader {
        &self.header
    }

    /// Returns the address of an offset that the header gives.
    pub(super) fn at(&self, offset: u64) -> NonNull<u8> {
        address(&self.map, offset)
    }

    /// Detaches and unmaps it.
    pub(super) fn close(mut self) -> Result<(), (SegmentAttachment, Busy)> {
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

fn identify(file: &File) -> std::io::Result<(u64, u64)> {
    file.metadata().map(|about| (about.dev(), about.ino()))
}

fn address(map: &FileMap, offset: u64) -> NonNull<u8> {
    assert!(offset <= map.bytes() as u64, "an offset of the header lies in the segment");
    // SAFETY: the offset is within the mapping or just behind it (checked by `SegmentHeader`).
    unsafe { map.base().add(offset as usize) }
}

impl Drop for SegmentAttachment {
    fn drop(&mut self) {
        if self.detach().is_ok() {
            cut::forget(&self.map);
            // SAFETY: SEGMENT-MAPPED: nobody refers to the memory any more, for it is detached.
            // Each field is dropped once, here, and not used afterwards.
            unsafe {
                ManuallyDrop::drop(&mut self.map);
                // The program may have closed it, and have another file under its number.
                if identify(&self.file).is_ok_and(|now| now == self.identity) {
                    ManuallyDrop::drop(&mut self.file);
                }
                ManuallyDrop::drop(&mut self.scrubber);
            }
        }
    }
}
