//! The shape of a root as it is read from a file, which may hold anything.
//!
//! # Invariants
//! - **LAYOUT-WITHIN** What a decoded node contains lies within it; elements of arrays do not
//!   overlap; locks lie at multiples of 8. So every lock of a layout lies within the
//!   root, and there are no more of them than the layout has nodes times an eighth of
//!   the root's bytes.

use super::form;
use super::shape::{self, LockKind};
use core::fmt;

/// A part of a segment's root, as the file's directory describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RootLayout {
    /// The size in bytes.
    pub size: u64,
    /// The number of locks inside.
    pub locks: u64,
    /// The description of what lies there.
    pub node: LayoutNode,
}

/// The kinds of things that a [`RootLayout`] describes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LayoutNode {
    /// Data of a type of this name.
    Plain(String),
    /// An array of one thing.
    Array {
        /// The number of elements.
        count: u64,
        /// The distance from one element to the next, in bytes.
        stride: u64,
        /// The layout of each element.
        element: Box<RootLayout>,
    },
    /// Several things, each under a name.
    Struct {
        /// The name of the type.
        name: String,
        /// The name, offset and type of each.
        fields: Vec<(String, u64, RootLayout)>,
    },
    /// A lock, with the data that it protects.
    Lock {
        /// The kind of the lock.
        kind: LockKind,
        /// The offset of the data in it.
        offset: u64,
        /// The layout of the data.
        data: Box<RootLayout>,
    },
}

/// A lock that [`RootLayout::visit`] has come to.
#[derive(Clone, Copy, Debug)]
pub struct FoundLock<'a> {
    /// The name that a program would use, from the root on: `accounts[3].lock`.
    pub path: &'a str,
    /// The kind of the lock.
    pub kind: LockKind,
    /// The offset in the root.
    pub offset: u64,
}

/// The bytes that are left to decode.
struct LayoutBytes<'a>(&'a [u8]);

impl LayoutBytes<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// Decodes a name. What a terminal might take for more than text is not one.
    fn name(&mut self) -> Option<String> {
        let length = usize::from(self.short()?);
        let name = core::str::from_utf8(self.take(length)?).ok()?;
        let fits = |c: char| c.is_alphanumeric() || "_#()[]<>:;, ".contains(c) || is_mark(c);
        name.chars().all(fits).then(|| name.to_owned())
    }
}

/// Tells whether it may be a sign of a script that identifiers are written in: of the characters
/// beyond the Latin ones what does not change how others are shown, and is no space.
fn is_mark(c: char) -> bool {
    let formats = matches!(
        c,
        '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{8e2}' | '\u{180e}'
            | '\u{2000}'..='\u{206f}' | '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{fff0}'..='\u{ffff}' | '\u{e0000}'..
    );
    c > '\u{2ff}' && !formats && !c.is_whitespace() && !c.is_control()
}

impl RootLayout {
    /// Decodes the bytes of a directory. Returns `None` if they are not one.
    pub(super) fn decode(bytes: &[u8]) -> Option<RootLayout> {
        if bytes.len() > shape::LONGEST {
            return None;
        }
        let mut rest = LayoutBytes(bytes);
        let layout = RootLayout::read(&mut rest, shape::DEEPEST)?;
        rest.0.is_empty().then_some(layout)
    }

    fn read(bytes: &mut LayoutBytes<'_>, deep: usize) -> Option<RootLayout> {
        let deep = deep.checked_sub(1)?;
        match bytes.byte()? {
            shape::PLAIN => {
                let name = bytes.name()?;
                Some(RootLayout { size: bytes.number()?, locks: 0, node: LayoutNode::Plain(name) })
            }
            shape::ARRAY => {
                let (count, stride) = (bytes.number()?, bytes.number()?);
                RootLayout::array(count, stride, RootLayout::read(bytes, deep)?)
            }
            shape::STRUCT => {
                let (name, size) = (bytes.name()?, bytes.number()?);
                let mut fields = Vec::new();
                for _ in 0..bytes.short()? {
                    fields.push((bytes.name()?, bytes.number()?, RootLayout::read(bytes, deep)?));
                }
                RootLayout::structure(name, size, fields)
            }
            shape::LOCK => {
                let kind = LockKind::of(bytes.byte()?)?;
                let (size, offset) = (bytes.number()?, bytes.number()?);
                RootLayout::lock(kind, size, offset, RootLayout::read(bytes, deep)?)
            }
            _ => None,
        }
    }

    /// Describes data of a type of this name and so many bytes.
    #[must_use]
    pub fn plain(name: impl Into<String>, size: u64) -> RootLayout {
        RootLayout { size, locks: 0, node: LayoutNode::Plain(name.into()) }
    }

    /// Describes `count` times the same thing, from one to the next `stride` bytes. Returns `None`
    /// if they overlap, or locks are not aligned.
    #[must_use]
    pub fn array(count: u64, stride: u64, element: RootLayout) -> Option<RootLayout> {
        let fits = element.size <= stride && (element.locks == 0 || stride.is_multiple_of(8));
        let size = count.checked_mul(stride)?;
        let locks = count.checked_mul(element.locks)?;
        let node = LayoutNode::Array { count, stride, element: Box::new(element) };
        fits.then_some(RootLayout { size, locks, node })
    }

    /// Describes a struct of this name and size, of fields with a name and an offset each. Returns
    /// `None` if one does not lie in it, or a lock is not aligned.
    #[must_use]
    pub fn structure(
        name: impl Into<String>,
        size: u64,
        fields: Vec<(String, u64, RootLayout)>,
    ) -> Option<RootLayout> {
        let mut locks = 0u64;
        for (_, offset, field) in &fields {
            field.lies_at(*offset, size)?;
            locks = locks.checked_add(field.locks)?;
        }
        Some(RootLayout { size, locks, node: LayoutNode::Struct { name: name.into(), fields } })
    }

    /// Describes a lock that takes so many bytes with its data, which begins at `offset`. Returns
    /// `None` if that does not fit.
    #[must_use]
    pub fn lock(kind: LockKind, size: u64, offset: u64, data: RootLayout) -> Option<RootLayout> {
        data.lies_at(offset, size)?;
        let locks = data.locks.checked_add(1)?;
        let node = LayoutNode::Lock { kind, offset, data: Box::new(data) };
        (offset >= kind.size()).then_some(RootLayout { size, locks, node })
    }

    /// Tells whether it fits at this place of what has `size` bytes.
    fn lies_at(&self, offset: u64, size: u64) -> Option<()> {
        let fits = offset.checked_add(self.size)? <= size;
        (fits && (self.locks == 0 || offset.is_multiple_of(8))).then_some(())
    }

    /// Tells whether nothing is said of some part of it, where locks may be: see
    /// [`UNKNOWN`](super::raw::UNKNOWN).
    #[must_use]
    pub fn has_unknown(&self) -> bool {
        match &self.node {
            LayoutNode::Plain(name) => name == form::UNKNOWN,
            LayoutNode::Array { element, .. } => element.has_unknown(),
            LayoutNode::Struct { fields, .. } => {
                fields.iter().any(|(_, _, field)| field.has_unknown())
            }
            LayoutNode::Lock { data, .. } => data.has_unknown(),
        }
    }

    /// Shows every lock to `show`, in the order of the source, until that says false.
    /// Returns whether it never did.
    ///
    /// ```no_run
    /// # let view = lockstead::shared::inspect::SegmentView::open("/dev/shm/orders")?;
    /// view.layout().visit(&mut |lock| {
    ///     println!("{:#x} {} {}", lock.offset, lock.kind.name(), lock.path);
    ///     true
    /// });
    /// # Ok::<(), lockstead::shared::SegmentError>(())
    /// ```
    pub fn visit(&self, show: &mut dyn FnMut(FoundLock<'_>) -> bool) -> bool {
        self.visit_at(0, &mut String::new(), show)
    }

    fn visit_at(
        &self,
        at: u64,
        path: &mut String,
        show: &mut dyn FnMut(FoundLock<'_>) -> bool,
    ) -> bool {
        if self.locks == 0 {
            return true;
        }
        let length = path.len();
        match &self.node {
            LayoutNode::Plain(_) => true,
            LayoutNode::Array { count, stride, element } => (0..*count).all(|index| {
                path.truncate(length);
                path.push_str(&format!("[{index}]"));
                let more = element.visit_at(at + index * stride, path, show);
                path.truncate(length);
                more
            }),
            LayoutNode::Struct { fields, .. } => fields.iter().all(|(name, offset, field)| {
                if length != 0 {
                    path.push('.');
                }
                path.push_str(name);
                let more = field.visit_at(at + offset, path, show);
                path.truncate(length);
                more
            }),
            LayoutNode::Lock { kind, offset, data } => {
                let named = if length == 0 { "root" } else { path.as_str() };
                show(FoundLock { path: named, kind: *kind, offset: at })
                    && data.visit_at(at + offset, path, show)
            }
        }
    }

    /// Writes the name of the lock at this offset, as [`visit`](Self::visit) shows it, without
    /// allocating; returns what kind of lock it is. Fails, with a part of it written, if there is none.
    pub(super) fn write_path(
        &self,
        offset: u64,
        to: &mut dyn fmt::Write,
    ) -> Result<LockKind, fmt::Error> {
        if let (LayoutNode::Lock { kind, .. }, 0) = (&self.node, offset) {
            return to.write_str("root").map(|()| *kind);
        }
        self.write_path_from(offset, true, to)
    }

    fn write_path_from(
        &self,
        at: u64,
        is_first: bool,
        to: &mut dyn fmt::Write,
    ) -> Result<LockKind, fmt::Error> {
        match &self.node {
            LayoutNode::Plain(_) => Err(fmt::Error),
            LayoutNode::Array { count, stride, element } => {
                let index = at.checked_div(*stride).filter(|index| index < count);
                let index = index.ok_or(fmt::Error)?;
                write!(to, "[{index}]")?;
                element.write_path_from(at - index * stride, false, to)
            }
            LayoutNode::Struct { fields, .. } => {
                let mut fields = fields.iter().filter_map(|(name, offset, field)| {
                    let inside = at.checked_sub(*offset).filter(|&inside| inside < field.size)?;
                    Some((name, inside, field))
                });
                let (name, inside, field) = fields.next().ok_or(fmt::Error)?;
                write!(to, "{}{name}", if is_first { "" } else { "." })?;
                field.write_path_from(inside, false, to)
            }
            LayoutNode::Lock { kind, .. } if at == 0 => Ok(*kind),
            LayoutNode::Lock { offset, data, .. } => {
                let inside = at.checked_sub(*offset).ok_or(fmt::Error)?;
                data.write_path_from(inside, is_first, to)
            }
        }
    }

    /// Returns where the two differ first; `None` if they are the same.
    pub(super) fn difference(&self, other: &RootLayout) -> Option<String> {
        self.differs(other, &mut String::from("root"))
    }

    fn differs(&self, other: &RootLayout, path: &mut String) -> Option<String> {
        let length = path.len();
        match (&self.node, &other.node) {
            (
                LayoutNode::Array { count, element, .. },
                LayoutNode::Array { count: others, element: of_other, .. },
            ) if count == others => {
                path.push_str("[]");
                let found = element.differs(of_other, path);
                path.truncate(length);
                found
            }
            (
                LayoutNode::Struct { name, fields },
                LayoutNode::Struct { name: other_name, fields: of_other },
            ) if name == other_name && fields.len() == of_other.len() => {
                for ((name, offset, field), (other_name, other_offset, of_other)) in
                    fields.iter().zip(of_other)
                {
                    if (name, offset) != (other_name, other_offset) {
                        return Some(format!(
                            "`{path}`: field `{name}` at {offset} there, `{other_name}` at \
                             {other_offset} here"
                        ));
                    }
                    path.push('.');
                    path.push_str(name);
                    let found = field.differs(of_other, path);
                    path.truncate(length);
                    if found.is_some() {
                        return found;
                    }
                }
                self.differs_itself(other, path)
            }
            (
                LayoutNode::Lock { kind, data, .. },
                LayoutNode::Lock { kind: others, data: of_other, .. },
            ) if kind == others => {
                path.push_str(".data");
                let found = data.differs(of_other, path);
                path.truncate(length);
                found.or_else(|| self.differs_itself(other, path))
            }
            _ => self.differs_itself(other, path),
        }
    }

    fn differs_itself(&self, other: &RootLayout, path: &str) -> Option<String> {
        (self != other)
            .then(|| format!("`{path}` is {} there, {} here", self.summary(), other.summary()))
    }

    fn summary(&self) -> String {
        let size = self.size;
        match &self.node {
            LayoutNode::Plain(name) => format!("{name} ({size} bytes)"),
            LayoutNode::Array { count, element, .. } => {
                format!("an array of {count} times {}", element.summary())
            }
            LayoutNode::Struct { name, fields } => {
                format!("struct {name} of {} field(s) ({size} bytes)", fields.len())
            }
            LayoutNode::Lock { kind, .. } => format!("a {} ({size} bytes)", kind.name()),
        }
    }
}
