//! Objects of an interpreter: types, strings, tuples, attributes.
//!
//! # Role
//! Whatever is taken for an object may be anything, for memory changes while it is read: an
//! object is known by the name of its type, and every length has a bound.

use super::layout::{Attributes, Layout};
use super::read::PageReader;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Every object begins with a count and its type.
const TYPE: u64 = 8;
/// The size of objects of variable size stands behind these.
const SIZE: u64 = 16;
/// The first byte of a `bytes` object.
const BYTES: u64 = 32;
const TYPE_NAME: u64 = 24;
const TYPE_BASIC_SIZE: u64 = 32;
const TYPE_FLAGS: u64 = 168;
const TYPE_DICTIONARY: u64 = 288;
/// The lowest bits of pointers that are marked.
const MARKS: u64 = 7;
const INLINE_VALUES: u64 = 1 << 2;
const MANAGED_DICTIONARY: u64 = 1 << 4;
/// The longest name that is read, in characters.
const LONGEST: u64 = 1024;
/// The most attributes of an instance that are looked through.
const MOST_ATTRIBUTES: u64 = 256;

/// The most entries of a dictionary among which a name is looked for by its address.
const MOST_NAMES: u64 = 64 * 1024;

/// A name to look up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name<'n> {
    pub(super) text: &'n str,
    /// The address of the string that the code has for it.
    pub(super) address: Option<u64>,
}

/// The objects of one interpreter.
pub(super) struct Objects<'a> {
    pub(super) reader: &'a PageReader<'a>,
    pub(super) layout: Layout,
    types: RefCell<HashMap<u64, Option<Rc<str>>>>,
}

impl<'a> Objects<'a> {
    pub(super) fn new(reader: &'a PageReader<'a>, layout: Layout) -> Self {
        Objects { reader, layout, types: RefCell::default() }
    }

    /// Returns the name of an object's type, as C code wrote it: `_thread.lock`, `code`.
    pub(super) fn type_name(&self, object: u64) -> Option<Rc<str>> {
        // Objects lie at multiples of 8, and so do types.
        let kind = self.kind(object)?;
        let mut types = self.types.borrow_mut();
        let name = types.entry(kind).or_insert_with(|| {
            let name = self.reader.pointer(kind, TYPE_NAME)?;
            Some(self.reader.c_string(name, 128)?.into())
        });
        name.clone()
    }

    /// Returns a pointer of a frame without the marks that it may have in its lowest bits.
    pub(super) fn plain(&self, pointer: u64) -> u64 {
        if self.layout.marked { pointer & !MARKS } else { pointer }
    }

    /// Returns the type of an object.
    pub(super) fn kind(&self, object: u64) -> Option<u64> {
        if !object.is_multiple_of(8) {
            return None;
        }
        self.reader.pointer(object, TYPE).filter(|kind| kind.is_multiple_of(8))
    }

    /// Returns the size that an object's type states, in bytes.
    pub(super) fn size(&self, object: u64) -> Option<u64> {
        let kind = self.reader.pointer(object, TYPE)?;
        self.reader.u64(kind.checked_add(TYPE_BASIC_SIZE)?)
    }

    /// Tells whether an object is of the type with this name.
    pub(super) fn is(&self, object: u64, kind: &str) -> bool {
        self.type_name(object).as_deref() == Some(kind)
    }

    /// Returns a string.
    pub(super) fn text(&self, object: u64) -> Option<String> {
        if !self.is(object, "str") {
            return None;
        }
        let length = self.reader.u64(object.checked_add(16)?)?.min(LONGEST);
        let state = self.reader.u32(object.checked_add(32)?)?;
        let (width, compact, ascii) = (state >> 2 & 7, state >> 5 & 1, state >> 6 & 1);
        if compact == 0 || ![1, 2, 4].contains(&width) {
            return None;
        }
        let start = if ascii == 1 { self.layout.ascii } else { self.layout.compact };
        let bytes = length * u64::from(width);
        let bytes = self.reader.block(object.checked_add(start)?, bytes, 4 * LONGEST as usize)?;
        let character = |bytes: &[u8]| {
            let number = bytes.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte));
            char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        Some(bytes.chunks_exact(width as usize).map(character).collect())
    }

    /// Returns the content of a `bytes` object of at most `most` bytes.
    pub(super) fn content(&self, object: u64, most: usize) -> Option<Vec<u8>> {
        if !self.is(object, "bytes") {
            return None;
        }
        let length = self.reader.u64(object.checked_add(SIZE)?)?;
        self.reader.block(object.checked_add(BYTES)?, length, most)
    }

    /// Returns the items of a tuple, the first `most` of them.
    pub(super) fn items(&self, tuple: u64, most: u64) -> Vec<u64> {
        let length = self.length(tuple).unwrap_or(0).min(most);
        (0..length).map_while(|at| self.item(tuple, at)).collect()
    }

    /// Returns one item of a tuple.
    pub(super) fn item(&self, tuple: u64, at: u64) -> Option<u64> {
        let offset = self.layout.tuple_items.checked_add(at.checked_mul(8)?)?;
        self.length(tuple).filter(|&length| at < length)?;
        self.reader.pointer(tuple, offset)
    }

    fn length(&self, tuple: u64) -> Option<u64> {
        if self.is(tuple, "tuple") { self.reader.u64(tuple.checked_add(SIZE)?) } else { None }
    }

    /// Returns what `True` and `False` are.
    pub(super) fn truth(&self, object: u64) -> Option<bool> {
        match self.type_name(object)?.as_ref() {
            "bool" => self.reader.u32(object.checked_add(24)?).map(|digit| digit & 1 == 1),
            "NoneType" => Some(false),
            _ => None,
        }
    }

    /// Tells whether an object is `None`.
    pub(super) fn is_none(&self, object: u64) -> Option<bool> {
        Some(self.type_name(object)?.as_ref() == "NoneType")
    }

    /// Returns a number that is not negative.
    pub(super) fn number(&self, object: u64) -> Option<u64> {
        /// Bits of a digit.
        const DIGIT: u32 = 30;
        if !self.is(object, "int") {
            return None;
        }
        let word = self.reader.u64(object.checked_add(SIZE)?)?;
        // The lowest bits have the sign, from 3.12 on.
        let digits = match self.layout.version {
            (3, ..=11) => word,
            _ if word & 3 == 2 => return None,
            _ => word >> 3,
        };
        if digits > 3 {
            return None;
        }
        let mut number = 0_u128;
        for at in (0..digits).rev() {
            let digit = self.reader.u32(object.checked_add(24 + 4 * at)?)?;
            number = number << DIGIT | u128::from(digit);
        }
        u64::try_from(number).ok()
    }

    /// Returns an attribute of an instance of a class that Python code defined.
    pub(super) fn attribute(&self, object: u64, name: &str) -> Option<u64> {
        self.kept_attribute(object, Name { text: name, address: None })
    }

    /// Returns what an instance itself keeps under a name.
    pub(super) fn kept_attribute(&self, object: u64, name: Name<'_>) -> Option<u64> {
        let reader = self.reader;
        let kind = reader.pointer(object, TYPE)?;
        let flags = reader.u64(kind.checked_add(TYPE_FLAGS)?)?;
        let managed = flags & MANAGED_DICTIONARY != 0;
        let keys = || reader.pointer(kind, self.layout.cached_keys);
        let before = |words: u64| object.checked_sub(8 * words).and_then(|at| reader.u64(at));
        let dictionary = match self.layout.attributes {
            Attributes::Before if managed => {
                if let Some(values) = before(4).filter(|&values| values != 0) {
                    return self.value(keys()?, Some(values), name);
                }
                before(3)?
            }
            Attributes::Either if managed => match before(3)? {
                word if word & 1 == 1 => {
                    return self.value(keys()?, Some(word.checked_add(1)?), name);
                }
                word => word,
            },
            Attributes::Inline if managed => match before(3)? {
                0 if flags & INLINE_VALUES != 0 => {
                    let size = reader.u64(kind.checked_add(TYPE_BASIC_SIZE)?)?;
                    let values = object.checked_add(size)?.checked_add(8)?;
                    return self.value(keys()?, Some(values), name);
                }
                word => word,
            },
            _ => {
                let offset = reader.u64(kind.checked_add(TYPE_DICTIONARY)?)?;
                // A negative offset is from the end: of objects of variable size.
                reader.pointer(object, offset.checked_sub(1)? + 1).filter(|_| offset < 1 << 20)?
            }
        };
        self.entry(dictionary, name)
    }

    /// Returns the value of a name in a dictionary.
    pub(super) fn entry(&self, dictionary: u64, name: Name<'_>) -> Option<u64> {
        if !self.is(dictionary, "dict") {
            return None;
        }
        let values = self.kept_values(dictionary)?;
        self.value(self.reader.pointer(dictionary, 32)?, values, name)
    }

    /// Returns the values of a dictionary, at most `most`.
    pub(super) fn values(&self, dictionary: u64, most: usize) -> Vec<u64> {
        let (Some(kept), true) = (self.kept_values(dictionary), self.is(dictionary, "dict")) else {
            return Vec::new();
        };
        let keys = self.reader.pointer(dictionary, 32);
        let Some(keys) = keys.and_then(|keys| self.keys(keys)) else { return Vec::new() };
        let used = (0..keys.used.min(MOST_NAMES)).filter_map(|at| keys.value(self, kept, at));
        used.filter(|&value| value != 0).take(most).collect()
    }

    /// Returns where a dictionary has its values, if that is not beside the keys.
    fn kept_values(&self, dictionary: u64) -> Option<Option<u64>> {
        let values = self.reader.u64(dictionary.checked_add(40)?)?;
        // The values begin with their numbers, from 3.13 on.
        let header = if self.layout.version >= (3, 13) { 8 } else { 0 };
        Some((values != 0).then(|| values.checked_add(header)).flatten())
    }

    fn keys(&self, keys: u64) -> Option<Keys> {
        let reader = self.reader;
        let old = self.layout.version < (3, 11);
        let (used, indices, table, general) = if old {
            let size = reader.u64(keys.checked_add(8)?)?;
            let width = match size {
                0..=0xff => 1,
                0x100..=0xffff => 2,
                0x1_0000..=0xffff_ffff => 4,
                _ => 8,
            };
            (reader.u64(keys.checked_add(32)?)?, 40, size.checked_mul(width)?, true)
        } else {
            let log = reader.u8(keys.checked_add(9)?)?;
            let general = reader.u8(keys.checked_add(10)?)? == 0;
            (reader.u64(keys.checked_add(24)?)?, 32, 1_u64.checked_shl(log.into())?, general)
        };
        let first = keys.checked_add(indices)?.checked_add(table)?;
        let (entry, key, value) = if general { (24, 8, 16) } else { (16, 0, 8) };
        Some(Keys { used, first, entry, key, value })
    }

    /// Returns the value of a name by the keys of a dictionary; `values`: where they are, unless
    /// they stand beside the keys.
    fn value(&self, keys: u64, values: Option<u64>, name: Name<'_>) -> Option<u64> {
        let keys = self.keys(keys)?;
        // Names of attributes and variables are mostly the same objects as those in the code.
        if let Some(address) = name.address {
            let mut all = 0..keys.used.min(MOST_NAMES);
            if let Some(at) = all.find(|&at| keys.key(self, at) == Some(address)) {
                return keys.value(self, values, at);
            }
        }
        (0..keys.used.min(MOST_ATTRIBUTES)).find_map(|at| {
            let found = keys.key(self, at)?;
            (self.text(found)? == name.text).then(|| keys.value(self, values, at))?
        })
    }
}

/// The keys of a dictionary: how many entries are used, where the first one lies, how long each is,
/// and where in it key and value are.
struct Keys {
    used: u64,
    first: u64,
    entry: u64,
    key: u64,
    value: u64,
}

impl Keys {
    fn key(&self, objects: &Objects<'_>, at: u64) -> Option<u64> {
        objects.reader.pointer(self.first.checked_add(self.entry * at)?, self.key)
    }

    fn value(&self, objects: &Objects<'_>, values: Option<u64>, at: u64) -> Option<u64> {
        match values {
            Some(values) => objects.reader.pointer(values, 8 * at),
            None => objects.reader.pointer(self.first.checked_add(self.entry * at)?, self.value),
        }
    }
}
