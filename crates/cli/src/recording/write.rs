//! Writes the file of a recording.

use super::format::{Chunk, LONGEST, MAGIC, RecordedTotals, VERSION};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A chunk as it goes to the file. It is made before the file is locked.
pub(crate) struct EncodedChunk(io::Result<Vec<u8>>);

impl EncodedChunk {
    /// Encodes a chunk, without the length that stands before it in the file.
    pub(crate) fn new(chunk: &Chunk) -> EncodedChunk {
        EncodedChunk(postcard::to_stdvec(chunk).map_err(io::Error::other))
    }
}

/// The file of a recording that is being written. An error is kept until the end; what is to be
/// written after it is left out.
pub(crate) struct RecordingFile {
    to: BufWriter<File>,
    bytes: u64,
    /// The bytes that events may still take; `None` once some had no room.
    room: Option<u64>,
    totals: RecordedTotals,
    failed: Option<io::Error>,
}

/// The bytes in front of each chunk.
const LENGTH: usize = size_of::<u32>();

/// What was written to a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    /// The numbers of events.
    pub(crate) totals: RecordedTotals,
    /// The bytes of the file.
    pub(crate) bytes: u64,
}

impl RecordingFile {
    /// Creates a file in which events have so many bytes.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn create(path: &Path, limit: u64) -> io::Result<RecordingFile> {
        let mut file = RecordingFile {
            to: BufWriter::with_capacity(1 << 18, File::create(path)?),
            bytes: 0,
            room: Some(limit),
            totals: RecordedTotals::default(),
            failed: None,
        };
        file.put(&MAGIC);
        file.put(&VERSION.to_le_bytes());
        Ok(file)
    }

    /// Writes a chunk that is none of events or samples.
    pub(crate) fn write(&mut self, chunk: &EncodedChunk) {
        match &chunk.0 {
            Ok(bytes) => self.put_chunk(bytes),
            Err(error) => self.fail(io::Error::other(error.to_string())),
        }
    }

    /// Writes a chunk with so many events, or of samples, unless the file has no room for it; then
    /// the events are counted as cut off, and so is all that comes later: what is in the file has no
    /// gap. Returns whether it was written.
    pub(crate) fn write_events(&mut self, chunk: &EncodedChunk, events: u64) -> bool {
        let length = chunk.0.as_ref().map_or(0, |bytes| bytes.len() + LENGTH) as u64;
        self.room = self.room.and_then(|room| room.checked_sub(length));
        let fits = self.room.is_some() && self.failed.is_none();
        if fits {
            self.totals.events += events;
            self.write(chunk);
        } else {
            self.totals.cut += events;
        }
        fits
    }

    /// Counts events that the threads could not leave.
    pub(crate) fn lose(&mut self, events: u64) {
        self.totals.lost = self.totals.lost.saturating_add(events);
    }

    /// Writes the totals, behind which nothing comes, and all that was not written yet.
    ///
    /// # Errors
    /// The first thing that went wrong.
    pub(crate) fn finish(mut self) -> io::Result<Written> {
        let totals = self.totals;
        self.write(&EncodedChunk::new(&Chunk::End(totals)));
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.to.flush().map(|()| Written { totals, bytes: self.bytes }),
        }
    }

    fn put_chunk(&mut self, bytes: &[u8]) {
        match u32::try_from(bytes.len()).ok().filter(|&length| length <= LONGEST) {
            Some(length) => {
                self.put(&length.to_le_bytes());
                self.put(bytes);
            }
            None => self.fail(io::Error::other("a chunk is too long")),
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            match self.to.write_all(bytes) {
                Ok(()) => self.bytes += bytes.len() as u64,
                Err(error) => self.fail(error),
            }
        }
    }

    fn fail(&mut self, error: io::Error) {
        self.failed.get_or_insert(error);
    }
}
