//! From an address to the bytes that describe its function's frame.
//!
//! The linkers sort the functions of a module into a binary search table,
//! `.eh_frame_hdr`, all in the same encoding: pairs of 32-bit distances from the
//! table's own start. An entry leads to the function's description (FDE) in
//! `.eh_frame`, which names the description it shares with others (CIE).

use super::End;
use super::module::Image;
use gimli::{
    BaseAddresses, EhFrame, EndianSlice, FrameDescriptionEntry, LittleEndian, UnwindSection,
};

/// Bytes of a module.
pub(super) type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// `DW_EH_PE_pcrel | DW_EH_PE_sdata4`, `DW_EH_PE_udata4`,
/// `DW_EH_PE_datarel | DW_EH_PE_sdata4`: how every linker writes the table.
const ENCODINGS: [u8; 3] = [0x1b, 0x03, 0x3b];

/// A function's description, and the piece of `.eh_frame` that it stands in.
pub(super) struct Function<'a> {
    pub(super) section: EhFrame<Bytes<'a>>,
    pub(super) bases: BaseAddresses,
    pub(super) fde: FrameDescriptionEntry<Bytes<'a>>,
}

/// The description of the function that holds `pc`, in the module whose search
/// table is at `header`. `None` if the module has nothing about it.
pub(super) fn function<'a>(
    image: &'a impl Image,
    header: u64,
    pc: u64,
) -> Result<Option<Function<'a>>, End> {
    let Some(entry) = search(image, header, pc)? else { return Ok(None) };
    // Just the piece from the shared description to the end of the own one: it
    // comes first, since the distance between them is unsigned.
    let length = u64::from(number(image, entry)?);
    let distance = u64::from(number(image, entry + 4)?);
    // 0xffffffff announces the 64-bit format, which no compiler writes here, and
    // a distance of 0 is what a shared description has in its place.
    if length >= 0xffff_fff0 || distance == 0 {
        return Err(End::Damaged);
    }
    let shared = (entry + 4).checked_sub(distance).ok_or(End::Damaged)?;
    let size = (entry + 4 + length).checked_sub(shared).ok_or(End::Damaged)?;
    let piece = image.bytes(shared, size).ok_or(End::Damaged)?;

    let section = EhFrame::new(piece, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(shared);
    let offset = (entry - shared) as usize;
    let fde = section
        .fde_from_offset(&bases, offset.into(), EhFrame::cie_from_offset)
        .map_err(|_| End::Damaged)?;
    Ok(fde.contains(pc).then_some(Function { section, bases, fde }))
}

/// The address of the last description that starts at or before `pc`.
fn search(image: &impl Image, header: u64, pc: u64) -> Result<Option<u64>, End> {
    let start = image.bytes(header, 12).ok_or(End::Damaged)?;
    if start[0] != 1 {
        return Err(End::Damaged);
    }
    if start[1..4] != ENCODINGS {
        return Err(End::Unknown);
    }
    let count = u64::from(number(image, header + 8)?);
    let rows = image.bytes(header + 12, count * 8).ok_or(End::Damaged)?;
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

fn number(image: &impl Image, address: u64) -> Result<u32, End> {
    let bytes = image.bytes(address, 4).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u32::from_le_bytes).ok_or(End::Damaged)
}
