//! The memory of an execution: atomics and fields that the main thread made before the others began,
//! and the handles by which the words of locks name them.

use crate::needs::begin_anew;
use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicU32;
use std::cell::Cell;
use std::rc::Rc;

/// A place in an execution's memory, as a word of a lock names it.
#[derive(Clone, Copy)]
pub(crate) struct Handle {
    execution: u64,
    index: usize,
}

impl Handle {
    /// The handle of a word that no execution has touched.
    pub(crate) const NEW: Self = Handle { execution: 0, index: 0 };
}

/// An atomic on the shelf.
pub(crate) struct Item<A> {
    pub(crate) atomic: A,
    /// What every access reads, and whoever frees the memory writes: loom then reports an access
    /// that has no order to it.
    pub(crate) life: UnsafeCell<()>,
    /// The value that was written last, in the order of execution.
    pub(crate) newest: Cell<u64>,
    pub(crate) freed: Cell<bool>,
    /// Which writes are sequentially consistent, where orderings are replaced.
    pub(crate) agreed: Option<Agreed>,
    /// Where the word is that has this handle.
    address: Cell<usize>,
}

/// What sequentially consistent accesses to one atomic have agreed on.
pub(crate) struct Agreed {
    /// The word by which such a write publishes itself to such loads that come later.
    pub(crate) writes: AtomicU32,
    /// The number of such writes that have not published themselves yet.
    pub(crate) about_to: Cell<u32>,
    /// Whether a weaker write has come after them.
    pub(crate) overwritten: Cell<bool>,
}

/// The atomics or fields of one kind.
pub(crate) struct Shelf<A> {
    items: Vec<Rc<Item<A>>>,
    used: Cell<usize>,
}

impl<A> Shelf<A> {
    /// Makes so many. `agrees` says whether they know which writes are sequentially consistent.
    pub(crate) fn new(size: usize, agrees: bool, make: impl Fn() -> A) -> Self {
        let agreed = || Agreed {
            writes: AtomicU32::new(0),
            about_to: Cell::new(0),
            overwritten: Cell::new(false),
        };
        let item = || Item {
            atomic: make(),
            life: UnsafeCell::new(()),
            newest: Cell::new(0),
            freed: Cell::new(false),
            agreed: agrees.then(agreed),
            address: Cell::new(0),
        };
        Shelf { items: (0..size).map(|_| Rc::new(item())).collect(), used: Cell::new(0) }
    }

    /// Returns the item behind a handle; takes one from the shelf if there is none in this
    /// execution.
    pub(crate) fn item(&self, execution: u64, handle: &Cell<Handle>) -> (usize, Rc<Item<A>>) {
        let address = std::ptr::from_ref(handle).addr();
        if handle.get().execution != execution {
            let index = self.used.get();
            if index == self.items.len() {
                if std::thread::panicking() {
                    return (0, Rc::clone(&self.items[0]));
                }
                begin_anew(|needs| needs.shelf *= 2);
            }
            self.used.set(index + 1);
            handle.set(Handle { execution, index });
        }
        let index = handle.get().index;
        // Each time: a value that was set up may have moved since.
        self.items[index].address.set(address);
        (index, Rc::clone(&self.items[index]))
    }

    pub(crate) fn at(&self, index: usize) -> Rc<Item<A>> {
        Rc::clone(&self.items[index])
    }

    /// Calls `f` for each item whose word lies in this memory.
    pub(crate) fn within(&self, memory: &std::ops::Range<usize>, f: impl Fn(&Item<A>)) {
        let used = &self.items[..self.used.get()];
        used.iter().filter(|item| memory.contains(&item.address.get())).for_each(|item| f(item));
    }
}
