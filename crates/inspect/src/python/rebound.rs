//! Names that some function gives another value.
//!
//! # Role
//! An expression like `self.lock` has the value that it has now. Whether it had the same one when the
//! lock was acquired, only those know who can change it: the methods of the object's classes and
//! the functions of the module, as far as they are there to be read. A method that gives an attribute
//! of its own object another value counts for its class alone. What makes an object, and what a
//! module does when it is loaded, comes before.

use super::code::Code;
use super::objects::Objects;
use super::opcodes::Op;
use super::scope::{self, Path, Root, Scope};
use std::cell::RefCell;
use std::collections::HashMap;

/// The most functions and classes of one module or class that are looked through.
const MOST: usize = 4096;
/// How deep functions are looked for in functions.
const DEEPEST: u32 = 4;
/// Where `staticmethod` and `classmethod` have their function, and `property` its three.
const WRAPPED: [u64; 3] = [16, 24, 32];
/// Methods that make an object.
const MAKING: &[&str] = &["__init__", "__new__", "__post_init__", "__setstate__"];

/// What was found so far.
#[derive(Default)]
pub(super) struct Rebound {
    /// Whether a function in a dictionary stores a name, by the addresses of both.
    known: RefCell<HashMap<(u64, u64, Op), bool>>,
}

impl Rebound {
    /// Tells whether a function gives a part of an expression another value, other than a variable
    /// of the frame itself.
    pub(super) fn may_change(
        &self,
        objects: &Objects<'_>,
        names: &[(u64, String)],
        scope: &Scope,
        path: &Path,
    ) -> bool {
        let stored_in = |dictionary: Option<u64>, name: usize, by: Op| {
            let Some((dictionary, &(name, _))) = dictionary.zip(names.get(name)) else {
                return false;
            };
            let of_module = scope.globals == Some(dictionary);
            self.stores(objects, Names { dictionary, of_module }, name, by)
        };
        if let Root::Global(name) = path.root
            && stored_in(scope.globals, name, Op::StoreName)
        {
            return true;
        }
        (0..path.attributes.len()).any(|count| {
            let (name, before) = (path.attributes[count], path.attributes[..count].to_vec());
            let owner = Path { root: path.root, attributes: before };
            let owner = scope.value(objects, names, &owner);
            let class = owner.and_then(|owner| objects.kind(owner));
            stored_in(scope.globals, name, Op::StoreAttribute)
                || class.is_some_and(|class| {
                    let mut dictionaries = scope::class_names(objects, class).into_iter();
                    dictionaries.any(|names| stored_in(Some(names), name, Op::StoreAttribute))
                })
        })
    }

    fn stores(&self, objects: &Objects<'_>, of: Names, name: u64, by: Op) -> bool {
        let key = (of.dictionary, name, by);
        if let Some(&known) = self.known.borrow().get(&key) {
            return known;
        }
        let values = objects.values(of.dictionary, MOST);
        let stores = values.len() == MOST
            || values.into_iter().any(|value| value_stores(objects, of, value, Store { name, by }));
        self.known.borrow_mut().insert(key, stores);
        stores
    }
}

/// What a module or class has under its names.
#[derive(Clone, Copy)]
struct Names {
    dictionary: u64,
    of_module: bool,
}

/// A name that is looked for, and the instruction that gives it a value.
#[derive(Clone, Copy)]
struct Store {
    name: u64,
    by: Op,
}

/// Tells whether what a module or class has under some name stores another one.
fn value_stores(objects: &Objects<'_>, of: Names, value: u64, store: Store) -> bool {
    function_stores(objects, of, value, store, true)
}

/// Tells the same; `of_self`: whether a value counts that a method gives its own object.
fn function_stores(
    objects: &Objects<'_>,
    of: Names,
    value: u64,
    store: Store,
    of_self: bool,
) -> bool {
    let (reader, layout) = (objects.reader, &objects.layout);
    let function = |function: u64| {
        let globals = || reader.pointer(function, layout.function_globals);
        // What a module has from elsewhere is not about its own variables and objects.
        let is_own = || !of.of_module || globals() == Some(of.dictionary);
        let code = objects.is(function, "function") && is_own();
        let code = code.then(|| reader.pointer(function, layout.function_code)).flatten();
        code.is_some_and(|code| code_stores(objects, code, store, (of_self, 0)))
    };
    match objects.type_name(value).as_deref() {
        Some("function") => function(value),
        Some("staticmethod" | "classmethod" | "property") => {
            let wrapped = WRAPPED.iter().filter_map(|&at| reader.pointer(value, at));
            wrapped.into_iter().any(function)
        }
        Some("type") if of.of_module => {
            let names = scope::own_names(objects, value);
            let values = names.map(|names| objects.values(names, MOST)).unwrap_or_default();
            values.into_iter().any(|value| {
                !objects.is(value, "type") && function_stores(objects, of, value, store, false)
            })
        }
        _ => false,
    }
}

fn code_stores(
    objects: &Objects<'_>,
    at: u64,
    store: Store,
    (of_self, depth): (bool, u32),
) -> bool {
    let (reader, layout) = (objects.reader, objects.layout.code);
    let tuple = |part: u64| reader.pointer(at, part).map(|tuple| objects.items(tuple, MOST as u64));
    let is_named = || {
        let names = tuple(layout.names).unwrap_or_default();
        names.iter().position(|&own| own == store.name)
    };
    let stores = |name: usize| {
        let Some(code) = Code::read(objects, at) else { return true };
        if MAKING.contains(&code.name.as_str()) {
            return false;
        }
        let Some(body) = code.body(objects) else { return true };
        let mut all = body.bytecode.instructions.iter().enumerate();
        all.any(|(at, it)| {
            let own = || {
                let object = body.path_to(objects, &code, at.checked_sub(1)?)?;
                Some(object.root == Root::Local(0) && object.attributes.is_empty())
            };
            it.op == store.by
                && it.argument as usize == name
                && (of_self || depth != 0 || own() != Some(true))
        })
    };
    if is_named().is_some_and(stores) {
        return true;
    }
    let constants = if depth < DEEPEST { tuple(layout.constants) } else { None };
    constants.into_iter().flatten().any(|constant| {
        objects.is(constant, "code") && code_stores(objects, constant, store, (of_self, depth + 1))
    })
}
