//! Finds the bytes that describe the frame of the function at an address.
//!
//! The linkers sort the functions of a module into a binary search table,
//! `.eh_frame_hdr`, all in the same encoding: pairs of 32-bit distances from the
//! table's own start. An entry leads to the function's description (FDE) in
//! `.eh_frame`, which names the description it shares with others (CIE).

use crate::Stop;

/// The loaded bytes of a module.
pub trait ModuleImage {
    /// Returns the `len` bytes at `address`, if the module has all of them.
    fn bytes(&self, address: u64, len: u64) -> Option<&[u8]>;
}

/// `DW_EH_PE_pcrel | DW_EH_PE_sdata4`, `DW_EH_PE_udata4`,
/// `DW_EH_PE_datarel | DW_EH_PE_sdata4`: how every linker writes the table.
const ENCODINGS: [u8; 3] = [0x1b, 0x03, 0x3b];

/// The piece of `.eh_frame` that describes a function.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The bytes from the shared description to the end of the function's own.
    pub bytes: &'a [u8],
    /// The address of the piece.
    pub address: u64,
    /// The place where in the piece the function's own description starts.
    pub own: usize,
}

/// Returns the piece about `pc`, in the module whose search table is at `header`; or
/// about the function before, if the module has nothing about `pc`.
///
/// # Errors
/// [`Stop::Damaged`], or [`Stop::Unsupported`] where the search table is none that linkers
/// write.
pub fn piece<'a>(
    image: &'a impl ModuleImage,
    header: u64,
    pc: u64,
) -> Result<Option<Piece<'a>>, Stop> {
    let Some(entry) = search(image, header, pc)? else { return Ok(None) };
    let length = u64::from(number(image, entry)?);
    let back = entry.checked_add(4).ok_or(Stop::Damaged)?;
    let distance = u64::from(number(image, back)?);
    // 0xffffffff announces the 64-bit format, which no compiler writes here, and
    // a distance of 0 is what a shared description has in its place.
    if length >= 0xffff_fff0 || distance == 0 {
        return Err(Stop::Damaged);
    }
    // The shared description comes first: the distance is unsigned.
    let address = back.checked_sub(distance).ok_or(Stop::Damaged)?;
    let size = back.checked_add(length).ok_or(Stop::Damaged)? - address;
    let bytes = image.bytes(address, size).ok_or(Stop::Damaged)?;
    let own = entry.checked_sub(address).ok_or(Stop::Damaged)? as usize;
    Ok(Some(Piece { bytes, address, own }))
}

/// Returns the address of the last description that starts at or before `pc`.
fn search(image: &impl ModuleImage, header: u64, pc: u64) -> Result<Option<u64>, Stop> {
    let start = image.bytes(header, 12).ok_or(Stop::Damaged)?;
    if start[0] != 1 {
        return Err(Stop::Damaged);
    }
    if start[1..4] != ENCODINGS {
        return Err(Stop::Unsupported);
    }
    let count = u64::from(number(image, header + 8)?);
    let rows = image.bytes(header + 12, count * 8).ok_or(Stop::Damaged)?;
    let (rows, _) = rows.as_chunks::<8>();
    let distance = pc.wrapping_sub(header) as i64;
    let after = rows.partition_point(|row| i64::from(halves(row).0) <= distance);
    let Some(row) = after.checked_sub(1).and_then(|index| rows.get(index)) else {
        return Ok(None);
    };
    Ok(Some(header.wrapping_add_signed(i64::from(halves(row).1))))
}

fn halves(row: &[u8; 8]) -> (i32, i32) {
    let both = i64::from_le_bytes(*row);
    (both as i32, (both >> 32) as i32)
}

fn number(image: &impl ModuleImage, address: u64) -> Result<u32, Stop> {
    let bytes = image.bytes(address, 4).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u32::from_le_bytes).ok_or(Stop::Damaged)
}
