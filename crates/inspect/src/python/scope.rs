//! What an expression of a few names means in a frame, without running anything.
//!
//! # Role
//! `self._lock`, `lock`, `module.lock`: a variable and attributes, looked up where the interpreter
//! would find them. Whatever would call a function (a property, `__getattr__`) has no value here.

use super::layout::FrameShape;
use super::objects::{Name, Objects};

/// Where a class has the classes that it inherits from, itself first, and its own attributes.
const TYPE_ORDER: u64 = 344;
const TYPE_NAMES: u64 = 264;
/// Where a module has its variables.
const MODULE_NAMES: u64 = 16;
/// The value of a cell, which functions share.
const CELL: u64 = 16;
/// Where the description of a slot lies, and what it says of its offset.
const MEMBER: u64 = 40;
const MEMBER_OFFSET: u64 = 16;
/// The most classes that one inherits from.
const CLASSES: u64 = 64;

/// The variable that an expression begins with. Names are those of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    Local(u32),
    /// A variable that functions share.
    Shared(u32),
    Global(usize),
    /// A name of a module or class that is being run.
    Named(usize),
}

/// An expression: a variable and attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) root: Root,
    pub(super) attributes: Vec<usize>,
}

impl Path {
    /// Returns the variable that the expression begins with, if it is the function's own.
    pub(super) fn local(&self) -> Option<u32> {
        match self.root {
            Root::Local(number) => Some(number),
            _ => None,
        }
    }
}

/// The variables of a frame.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub(super) variables: Variables,
    /// The number of variables in front of those that functions share, to 3.10.
    pub(super) own: u32,
    pub(super) globals: Option<u64>,
    pub(super) names: Option<u64>,
}

/// Where the variables are.
#[derive(Clone, Debug)]
pub(super) enum Variables {
    /// The variables lie in memory, so many from an address on.
    At(u64, u32),
    /// There are these alone.
    Given(Vec<u64>),
}

impl Scope {
    /// Returns a variable by its number.
    pub(super) fn local(&self, objects: &Objects<'_>, number: u32) -> Option<u64> {
        let word = match &self.variables {
            Variables::At(_, count) if number >= *count => return None,
            Variables::At(address, _) => objects.reader.pointer(*address, 8 * u64::from(number))?,
            Variables::Given(values) => *values.get(number as usize)?,
        };
        Some(objects.plain(word)).filter(|&object| object != 0)
    }

    /// Returns what an expression means now; `names`: those of the code.
    pub(super) fn value(
        &self,
        objects: &Objects<'_>,
        names: &[(u64, String)],
        path: &Path,
    ) -> Option<u64> {
        let name = |at: usize| {
            let (address, text) = names.get(at)?;
            Some(Name { text, address: Some(*address) })
        };
        let mut object = match path.root {
            Root::Local(number) => self.local(objects, number)?,
            Root::Shared(number) => {
                let before = match objects.layout.frame {
                    FrameShape::Object { .. } => self.own,
                    FrameShape::Record { .. } => 0,
                };
                let cell = self.local(objects, number.checked_add(before)?)?;
                objects.is(cell, "cell").then(|| objects.reader.pointer(cell, CELL))??
            }
            Root::Global(at) => objects.entry(self.globals?, name(at)?)?,
            Root::Named(at) => {
                let own = self.names.and_then(|names| objects.entry(names, name(at)?));
                own.or_else(|| objects.entry(self.globals?, name(at)?))?
            }
        };
        for &at in &path.attributes {
            object = member(objects, object, name(at)?)?;
        }
        Some(object)
    }
}

/// Returns an attribute of an object: of an instance, a class or a module.
pub(super) fn member(objects: &Objects<'_>, object: u64, name: Name<'_>) -> Option<u64> {
    let reader = objects.reader;
    let kind = objects.kind(object)?;
    match objects.type_name(object)?.as_ref() {
        "module" => return objects.entry(reader.pointer(object, MODULE_NAMES)?, name),
        "type" => return in_classes(objects, object, name),
        _ => {}
    }
    let Some(of_class) = in_classes(objects, kind, name) else {
        return objects.kept_attribute(object, name);
    };
    match objects.type_name(of_class)?.as_ref() {
        "member_descriptor" => {
            let description = reader.pointer(of_class, MEMBER)?;
            let offset = reader.u64(description.checked_add(MEMBER_OFFSET)?)?;
            (offset < 1 << 20).then(|| reader.pointer(object, offset))?
        }
        // What a class defines so goes before what the instance has, and is run.
        "property" | "getset_descriptor" => None,
        "_thread.lock" | "_thread.RLock" => {
            Some(objects.kept_attribute(object, name).unwrap_or(of_class))
        }
        // So does any other object of a class that has `__set__`.
        _ if defines(objects, of_class, "__set__") => None,
        _ => objects.kept_attribute(object, name),
    }
}

fn defines(objects: &Objects<'_>, object: u64, text: &str) -> bool {
    let name = Name { text, address: None };
    objects.kind(object).is_some_and(|kind| in_classes(objects, kind, name).is_some())
}

/// Returns what a class, or one that it inherits from, has under a name.
pub(super) fn in_classes(objects: &Objects<'_>, class: u64, name: Name<'_>) -> Option<u64> {
    class_names(objects, class).into_iter().find_map(|names| objects.entry(names, name))
}

/// Returns the dictionaries of a class and of those that it inherits from.
pub(super) fn class_names(objects: &Objects<'_>, class: u64) -> Vec<u64> {
    let order = objects.reader.pointer(class, TYPE_ORDER);
    let classes = order.map(|order| objects.items(order, CLASSES)).unwrap_or_default();
    classes.into_iter().filter_map(|class| own_names(objects, class)).collect()
}

/// Returns the dictionary of a class.
pub(super) fn own_names(objects: &Objects<'_>, class: u64) -> Option<u64> {
    objects.reader.pointer(class, TYPE_NAMES)
}
