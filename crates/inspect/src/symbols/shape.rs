//! What lies where in a type.
//!
//! # Role
//! Members, elements and locks, as far as it is certain which of them lies at an offset; and the way
//! to one, as a programmer writes it. Whoever reads debug information makes these of it.

use std::fmt::Write;
use std::rc::Rc;

/// The longest way that is made: one may be made of names of any length.
const LONGEST_WAY: usize = 1000;

/// What a type has in it.
#[derive(Debug)]
pub(super) enum Shape {
    /// It has nothing that has a name of its own, or more than one thing at an offset.
    Whole,
    /// A lock, with what it protects where that lies inside.
    Lock(Option<ShapePart>),
    /// A word that may be a lock.
    Word,
    Array {
        stride: u64,
        counts: Vec<u64>,
        element: Rc<Shape>,
    },
    /// What lies in it, and how many locks are in that, two for more.
    Parts(Vec<ShapePart>, usize),
}

impl Shape {
    /// Makes one of its parts. What is not known of it may be locks.
    pub(super) fn of_parts(parts: Vec<ShapePart>, is_complete: bool) -> Self {
        let locks = if is_complete { locks(&parts) } else { 2 };
        Shape::Parts(parts, locks)
    }

    /// Returns how many locks are in it, two for more.
    pub(super) fn locks(&self) -> usize {
        match self {
            Shape::Whole | Shape::Word => 0,
            Shape::Lock(_) => 1,
            Shape::Array { element, .. } => element.locks() * 2,
            Shape::Parts(_, locks) => *locks,
        }
        .min(2)
    }
}

/// Returns how many locks are in these, two for more.
pub(super) fn locks(parts: &[ShapePart]) -> usize {
    parts.iter().map(|part| part.shape.locks()).sum::<usize>().min(2)
}

#[derive(Debug)]
pub(super) struct ShapePart {
    /// The name of a member; `None` of a base, and of a structure without a name.
    pub(super) name: Option<String>,
    pub(super) at: u64,
    pub(super) size: u64,
    pub(super) shape: Rc<Shape>,
}

impl ShapePart {
    fn holds(&self, offset: u64) -> bool {
        self.at <= offset && offset - self.at < self.size
    }

    /// Tells whether nothing lies there: what has no members has a byte, which others may have too.
    pub(super) fn is_empty(&self) -> bool {
        self.size <= 1 && matches!(&*self.shape, Shape::Parts(parts, _) if parts.is_empty())
    }
}

/// Returns the way to what lies at an offset in a shape, the offset from what the way names, and
/// whether it is a lock by its type.
pub(super) fn path(mut shape: Rc<Shape>, offset: u64) -> (String, u64, bool) {
    let mut path = String::new();
    // What has no name itself lies somewhere in what the way names so far.
    let (mut inside, mut since_name) = (offset, offset);
    loop {
        if path.len() > LONGEST_WAY {
            return (String::new(), offset, false);
        }
        let part = match &*shape {
            Shape::Whole => return (path, since_name, false),
            Shape::Lock(data) => match data.as_ref().filter(|data| data.holds(inside)) {
                Some(data) => data,
                None => return (path, since_lock(inside, since_name), true),
            },
            Shape::Word => return (path, since_lock(inside, since_name), true),
            Shape::Array { stride, counts, element } => {
                let mut index = inside / stride;
                let mut all: u64 = counts.iter().product();
                // No lock is one of the numbers that make up memory for it.
                if index >= all || matches!(**element, Shape::Whole) {
                    return (path, since_name, false);
                }
                for count in counts {
                    all /= count;
                    let _ = write!(path, "[{}]", index / all);
                    index %= all;
                }
                inside %= stride;
                since_name = inside;
                shape = element.clone();
                continue;
            }
            Shape::Parts(parts, _) => {
                let mut there = parts.iter().filter(|part| part.holds(inside));
                match (there.next(), there.next()) {
                    (Some(part), None) => part,
                    _ => return (path, since_name, false),
                }
            }
        };
        inside -= part.at;
        if let Some(name) = &part.name {
            path.push('.');
            path += name;
            since_name = inside;
        }
        shape = part.shape.clone();
    }
}

/// Returns where a lock lies in what is named, by the place of a part of it. What lies at no word is
/// no part of it, but another lock by lockstead's own doing: who reads upgradably has one.
fn since_lock(inside: u64, since_name: u64) -> u64 {
    if inside.is_multiple_of(4) { since_name - inside } else { since_name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structure(parts: Vec<ShapePart>) -> Shape {
        Shape::of_parts(parts, true)
    }

    fn part(name: &str, at: u64, size: u64, shape: Shape) -> ShapePart {
        let name = (!name.is_empty()).then(|| name.to_owned());
        ShapePart { name, at, size, shape: Rc::new(shape) }
    }

    #[test]
    fn the_way_ends_at_a_lock_and_in_front_of_what_is_not_known() {
        let shard = structure(vec![
            part("entries", 0, 8, Shape::Whole),
            part("mutex", 8, 40, Shape::Lock(None)),
            part("", 48, 16, structure(vec![part("inner", 4, 4, Shape::Lock(None))])),
            part("one", 64, 8, Shape::Whole),
            part("other", 64, 4, Shape::Whole),
        ]);
        let shards =
            Rc::new(Shape::Array { stride: 96, counts: vec![2, 3], element: shard.into() });
        for (offset, found) in [
            (8, ("[0][0].mutex", 0)),
            (96 * 5 + 8, ("[1][2].mutex", 0)),
            (96 * 2 + 20, ("[0][2].mutex", 0)),
            (52, ("[0][0].inner", 0)),
            (49, ("[0][0]", 49)),
            (66, ("[0][0]", 66)),
            (96 + 80, ("[0][1]", 80)),
            (3, ("[0][0].entries", 3)),
            (96 * 6, ("", 96 * 6)),
        ] {
            let (way, offset, _) = path(shards.clone(), offset);
            assert_eq!((way.as_str(), offset), found);
        }
    }

    #[test]
    fn what_a_lock_protects_is_not_the_lock() {
        let inner = structure(vec![part("lock", 8, 8, Shape::Lock(None))]);
        let lock = Rc::new(Shape::Lock(Some(part("data", 8, 24, inner))));
        assert_eq!(path(lock.clone(), 4), (String::new(), 0, true));
        assert_eq!(path(lock.clone(), 16), (".data.lock".to_owned(), 0, true));
        assert_eq!(path(lock, 8), (".data".to_owned(), 0, false));
        let memory = Shape::Array { stride: 8, counts: vec![8], element: Shape::Whole.into() };
        let memory = Rc::new(structure(vec![part("value", 0, 64, memory)]));
        assert_eq!(path(memory, 16), (".value".to_owned(), 16, false), "no element of it");
    }

    #[test]
    fn what_has_no_name_keeps_its_place_in_what_has() {
        let lock = || Shape::Lock(None);
        let bases = structure(vec![part("", 0, 40, lock()), part("", 40, 40, lock())]);
        let holder = Rc::new(structure(vec![
            part("both", 8, 80, bases),
            part("", 88, 32, Shape::Whole),
            part("upgradable", 120, 8, lock()),
        ]));
        for (offset, found) in [
            (8, (".both", 0, true)),
            (48, (".both", 40, true)),
            (52, (".both", 40, true)),
            (96, ("", 96, false)),
            (120, (".upgradable", 0, true)),
            (127, (".upgradable", 7, true)),
        ] {
            let (way, offset, is_lock) = path(holder.clone(), offset);
            assert_eq!((way.as_str(), offset, is_lock), found);
        }
    }
}
