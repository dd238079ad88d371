//! What a segment is to hold, or is expected to hold: the layout of its root, from a type
//! of the program or described by it, and as it is written to a file.

use super::Shareable;
use super::error::SegmentError;
use super::layout::{LayoutNode, RootLayout};
use super::shape::{self, Shape};

/// The name of data of which nobody says what is in it.
///
/// Locks may be in it, which the segment's directory does not lead to: `lockstead shm` does
/// not list them, and no worn-out slot is used again, since their words may name it.
pub const UNKNOWN: &str = "bytes";

/// The form of a segment's root: its layout and its alignment.
///
/// [`Segment`](super::Segment) has it from its type. This is for
/// [`RawSegment`](super::raw::RawSegment), and so for programs in other languages, and for
/// those that know at run time only what they share. Two forms of which the layouts say the
/// same are the same, whoever described them.
///
/// ```
/// use lockstead::shared::raw::Form;
/// use lockstead::shared::inspect::RootLayout;
/// use lockstead::shared::{LockKind, Shareable, SharedMutex};
///
/// #[derive(Shareable)]
/// #[repr(C)]
/// struct Account {
///     lock: SharedMutex<()>,
///     balance: i64,
/// }
///
/// let lock = RootLayout::lock(LockKind::Mutex, 8, 8, RootLayout::plain("()", 0)).unwrap();
/// let balance = RootLayout::plain("i64", 8);
/// let fields = vec![("lock".into(), 0, lock), ("balance".into(), 8, balance)];
/// let described = Form::new(RootLayout::structure("Account", 16, fields).unwrap(), 8).unwrap();
/// assert_eq!(described, Form::of::<Account>());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Form {
    layout: RootLayout,
    align: u64,
    directory: Vec<u8>,
}

impl Form {
    /// Builds the form of a root with this layout, aligned to so many bytes.
    ///
    /// # Errors
    /// [`SegmentError::Options`]: what it may be.
    pub fn new(layout: RootLayout, align: u64) -> Result<Form, SegmentError> {
        if !align.is_power_of_two() || !layout.size.is_multiple_of(align) {
            return Err(SegmentError::Options(
                "the root's alignment: a power of two of which its size is a multiple",
            ));
        }
        let directory = encode(&layout).filter(|bytes| RootLayout::decode(bytes).is_some());
        match directory {
            Some(directory) => Ok(Form { layout, align, directory }),
            None => Err(SegmentError::Options(
                "the root's description: at most 1 MiB and 48 levels, locks at multiples of 8, \
                 and names that consist of letters, digits and _#()[]<>:;,",
            )),
        }
    }

    /// Builds the form of a root of so many bytes, of which nothing is said. It begins with a page,
    /// and locks may lie in it, at multiples of 8; `lockstead shm` does not see them.
    #[must_use]
    pub fn unknown(size: u64) -> Form {
        let layout = RootLayout::plain(UNKNOWN, size);
        let directory = encode(&layout).unwrap_or_default();
        Form { layout, align: 1, directory }
    }

    /// Builds the form of a root that is a `T`.
    ///
    /// # Panics
    /// If `T` describes itself with more than 1 MiB, or 48 levels, of types.
    #[must_use]
    pub fn of<T: Shareable>() -> Form {
        const {
            assert!(T::SHAPE.size() == size_of::<T>(), "the shape of a type has its size");
        }
        let layout = layout_of(&T::SHAPE, shape::DEEPEST);
        let form = layout.and_then(|layout| Form::new(layout, align_of::<T>() as u64).ok());
        form.expect("the root type describes itself with at most 1 MiB, and in order")
    }

    /// Returns what it consists of.
    #[must_use]
    pub fn layout(&self) -> &RootLayout {
        &self.layout
    }

    /// Returns the root's alignment in bytes.
    #[must_use]
    pub fn align(&self) -> u64 {
        self.align
    }

    /// Returns the form as it stands in a file.
    pub(super) fn directory(&self) -> &[u8] {
        &self.directory
    }

    /// Returns where what a file says differs from this first.
    pub(super) fn difference(&self, layout: &RootLayout, align: u32) -> Option<String> {
        let (there, here) = (u64::from(align), self.align);
        let aligned = || format!("aligned to {there} there, to {here} here");
        layout.difference(&self.layout).or_else(|| (there != here).then(aligned))
    }
}

fn layout_of(shape: &Shape, deep: usize) -> Option<RootLayout> {
    let deep = deep.checked_sub(1)?;
    match *shape {
        Shape::Plain { name, size } => Some(RootLayout::plain(name, size as u64)),
        Shape::Array { count, stride, element } => {
            RootLayout::array(count as u64, stride as u64, layout_of(element, deep)?)
        }
        Shape::Struct { name, size, fields } => {
            let fields = fields.iter().map(|field| {
                Some((field.name.into(), field.offset as u64, layout_of(field.shape, deep)?))
            });
            RootLayout::structure(name, size as u64, fields.collect::<Option<_>>()?)
        }
        Shape::Lock { kind, size, offset, data } => {
            RootLayout::lock(kind, size as u64, offset as u64, layout_of(data, deep)?)
        }
    }
}

/// Encodes a layout as it stands in a file. Returns `None` if that would be longer or deeper than a
/// reader accepts.
fn encode(layout: &RootLayout) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    write(layout, &mut bytes, shape::DEEPEST)?;
    Some(bytes)
}

fn write(layout: &RootLayout, bytes: &mut Vec<u8>, deep: usize) -> Option<()> {
    let deep = deep.checked_sub(1)?;
    match &layout.node {
        LayoutNode::Plain(name) => {
            bytes.push(shape::PLAIN);
            text(bytes, name)?;
            number(bytes, layout.size);
        }
        LayoutNode::Array { count, stride, element } => {
            bytes.push(shape::ARRAY);
            number(bytes, *count);
            number(bytes, *stride);
            write(element, bytes, deep)?;
        }
        LayoutNode::Struct { name, fields } => {
            bytes.push(shape::STRUCT);
            text(bytes, name)?;
            number(bytes, layout.size);
            bytes.extend(u16::try_from(fields.len()).ok()?.to_le_bytes());
            for (name, offset, field) in fields {
                text(bytes, name)?;
                number(bytes, *offset);
                write(field, bytes, deep)?;
            }
        }
        LayoutNode::Lock { kind, offset, data } => {
            bytes.push(shape::LOCK);
            bytes.push(kind.code());
            number(bytes, layout.size);
            number(bytes, *offset);
            write(data, bytes, deep)?;
        }
    }
    (bytes.len() <= shape::LONGEST).then_some(())
}

fn number(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend(number.to_le_bytes());
}

fn text(bytes: &mut Vec<u8>, text: &str) -> Option<()> {
    bytes.extend(u16::try_from(text.len()).ok()?.to_le_bytes());
    bytes.extend(text.as_bytes());
    Some(())
}
