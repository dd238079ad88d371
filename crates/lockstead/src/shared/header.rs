//! The first page of a segment's file, and where everything else lies.
//!
//! # Format
//! Little-endian, whatever the machine; the words of the locks are the machine's own.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | `lockseg`, 0 |
//! | 8 | 4 | version: 2 |
//! | 12 | 4 | byte order of the words: `0x0a0b0c0d` as the machine writes it |
//! | 16 | 8 | bytes of the file |
//! | 24 | 8 | where the directory begins: 4096 |
//! | 32 | 8 | its bytes |
//! | 40 | 8 | where the doorbell is |
//! | 48 | 8 | where the slots begin |
//! | 56 | 4 | how many, with number 0 |
//! | 60 | 4 | claims of each |
//! | 64 | 8 | where the claims begin |
//! | 72 | 8 | where the root begins |
//! | 80 | 8 | its bytes |
//! | 88 | 4 | its alignment |
//! | 92 | 4 | bit 0: exclusive |
//! | 96 | 8 | hash of the directory |
//! | 104 | 8 | hash of the bytes before |
//!
//! The rest is zero. Places follow from the numbers ([`SegmentHeader::new`]); they stand in the
//! file for other programs to read, and are refused if they are not what follows.
//!
//! # Trust
//! A header is read once, into this struct, and checked there. What a peer writes over
//! the page afterwards is never looked at.

use super::error::SegmentError;
use super::shape::hash;
use lockstead_core::robust::word::LAST_SLOT;

/// The version that is written, and the only one that is read.
pub(super) const VERSION: u32 = 2;

/// Pages are assumed to have this size, or a multiple of it that the root does not
/// notice.
pub(super) const PAGE: u64 = 4096;

/// The header itself, up to what is hashed.
pub(super) const BYTES: usize = 112;

const MAGIC: [u8; 8] = *b"lockseg\0";
const ORDER: u32 = 0x0a0b_0c0d;
const SLOT_BYTES: u64 = 128;
const CLAIM: u64 = 8;
/// The offset at which ends what a claim can name.
const LARGEST: u64 = 8 << 31;

/// The most claims that a participant may have.
pub(super) const MOST_CLAIMS: u32 = lockstead_linux::shared::MOST_CLAIMS as u32;
/// The largest number of participants of a segment.
pub(super) const MOST_PARTICIPANTS: u32 = LAST_SLOT;

/// The content of a segment's first page, checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SegmentHeader {
    /// The version of the file's format.
    pub version: u32,
    /// The number of bytes of the file.
    pub total: u64,
    /// The offset at which the directory begins.
    pub directory: u64,
    /// The number of bytes of the directory.
    pub directory_bytes: u64,
    /// The offset of the doorbell.
    pub doorbell: u64,
    /// The offset at which the slots begin, of 128 bytes each.
    pub slots_at: u64,
    /// The number of slots, including number 0, which nobody has.
    pub slots: u32,
    /// The offset at which the claims begin, of 8 bytes each.
    pub claims_at: u64,
    /// The number of claims that each slot has.
    pub claims_each: u32,
    /// The offset at which the root begins.
    pub root: u64,
    /// The number of bytes of the root.
    pub root_bytes: u64,
    /// The alignment of the root.
    pub root_align: u32,
    /// Whether participants have lists of their own with the kernel; see
    /// [`SegmentOptions::exclusive`](super::SegmentOptions::exclusive).
    pub exclusive: bool,
    /// The hash of the directory.
    pub hash: u64,
}

/// The parts of which a segment is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeaderParts<'a> {
    pub(super) directory: &'a [u8],
    pub(super) participants: u32,
    pub(super) claims: u32,
    pub(super) root_bytes: u64,
    pub(super) root_align: u64,
    pub(super) exclusive: bool,
}

impl SegmentHeader {
    /// Lays out a segment with these parts.
    pub(super) fn new(parts: &HeaderParts<'_>) -> Result<SegmentHeader, SegmentError> {
        let refuse = |what| Err(SegmentError::Options(what));
        if parts.participants == 0 || parts.participants > MOST_PARTICIPANTS {
            return refuse("participants: between 1 and 16,382");
        }
        if parts.claims > MOST_CLAIMS {
            return refuse("claims: at most 192");
        }
        if parts.root_align > PAGE {
            return refuse("the root type: aligned to at most 4096 bytes");
        }
        let sizes = Sizes {
            directory_bytes: parts.directory.len() as u64,
            slots: parts.participants + 1,
            claims_each: parts.claims,
            root_bytes: parts.root_bytes,
            root_align: parts.root_align as u32,
            exclusive: parts.exclusive,
            hash: hash(parts.directory),
        };
        match sizes.place() {
            Some(header) => Ok(header),
            None => refuse("the root type: at most 16 GiB with all that belongs to it"),
        }
    }

    /// Encodes the header as it stands in the file.
    pub(super) fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let mut at = 0;
        let mut put = |part: &[u8]| {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(&MAGIC);
        put(&self.version.to_le_bytes());
        put(&ORDER.to_ne_bytes());
        put(&self.total.to_le_bytes());
        put(&self.directory.to_le_bytes());
        put(&self.directory_bytes.to_le_bytes());
        put(&self.doorbell.to_le_bytes());
        put(&self.slots_at.to_le_bytes());
        put(&self.slots.to_le_bytes());
        put(&self.claims_each.to_le_bytes());
        put(&self.claims_at.to_le_bytes());
        put(&self.root.to_le_bytes());
        put(&self.root_bytes.to_le_bytes());
        put(&self.root_align.to_le_bytes());
        put(&u32::from(self.exclusive).to_le_bytes());
        put(&self.hash.to_le_bytes());
        let sum = hash(&bytes[..BYTES - 8]);
        bytes[BYTES - 8..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Decodes these bytes, the first ones of a file of `length` bytes.
    pub(super) fn decode(bytes: &[u8; BYTES], length: u64) -> Result<SegmentHeader, SegmentError> {
        let short = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]));
        let long = |at: usize| u64::from(short(at)) | u64::from(short(at + 4)) << 32;
        if bytes[..8] != MAGIC {
            return Err(SegmentError::NotASegment);
        }
        let version = short(8);
        if version != VERSION {
            return Err(SegmentError::Version { found: version });
        }
        if bytes[12..16] != ORDER.to_ne_bytes() {
            return Err(SegmentError::ByteOrder);
        }
        let damaged = SegmentError::Damaged("the header does not have the sum it was given");
        if long(BYTES - 8) != hash(&bytes[..BYTES - 8]) {
            return Err(damaged);
        }
        let sizes = Sizes {
            directory_bytes: long(32),
            slots: short(56),
            claims_each: short(60),
            root_bytes: long(80),
            root_align: short(88),
            exclusive: short(92) & 1 != 0,
            hash: long(96),
        };
        let header = sizes.place().filter(|header| header.encode() == *bytes);
        let Some(header) = header else {
            return Err(SegmentError::Damaged("the header contradicts itself"));
        };
        if header.total != length {
            return Err(SegmentError::Truncated { should: header.total, is: length });
        }
        Ok(header)
    }
}

/// The numbers that the rest follows from.
struct Sizes {
    directory_bytes: u64,
    slots: u32,
    claims_each: u32,
    root_bytes: u64,
    root_align: u32,
    exclusive: bool,
    hash: u64,
}

impl Sizes {
    /// Computes where everything lies. Returns `None` if there is no such segment.
    fn place(&self) -> Option<SegmentHeader> {
        let counts = (2..=MOST_PARTICIPANTS + 1).contains(&self.slots)
            && self.claims_each <= MOST_CLAIMS
            && self.root_align.is_power_of_two()
            && u64::from(self.root_align) <= PAGE
            && self.root_bytes <= LARGEST
            && self.directory_bytes <= super::shape::LONGEST as u64;
        if !counts {
            return None;
        }
        let doorbell = (PAGE + self.directory_bytes).next_multiple_of(SLOT_BYTES);
        let slots_at = doorbell + SLOT_BYTES;
        let claims_at = slots_at + u64::from(self.slots) * SLOT_BYTES;
        let claims = u64::from(self.slots) * u64::from(self.claims_each);
        let root = (claims_at + claims * CLAIM).next_multiple_of(PAGE);
        let total = (root + self.root_bytes).next_multiple_of(PAGE);
        (total <= LARGEST).then_some(SegmentHeader {
            version: VERSION,
            total,
            directory: PAGE,
            directory_bytes: self.directory_bytes,
            doorbell,
            slots_at,
            slots: self.slots,
            claims_at,
            claims_each: self.claims_each,
            root,
            root_bytes: self.root_bytes,
            root_align: self.root_align,
            exclusive: self.exclusive,
            hash: self.hash,
        })
    }
}
