//! The readers on memory that was laid out as 3.12 does, whole and damaged.

use super::*;
use crate::memory::SavedMemory;
use layout::Layout;
use std::collections::HashMap as Types;

const BASE: u64 = 0x10_0000;
const LEFT: u32 = 11;
const RIGHT: u32 = 12;

/// Memory with the objects of an interpreter.
#[derive(Default)]
struct Image {
    bytes: Vec<u8>,
    types: Types<&'static str, u64>,
}

impl Image {
    fn room(&mut self, length: u64) -> u64 {
        let at = self.bytes.len().next_multiple_of(16);
        self.bytes.resize(at + length as usize, 0);
        BASE + at as u64
    }

    fn raw(&mut self, at: u64, value: &[u8]) {
        let at = (at - BASE) as usize;
        self.bytes[at..at + value.len()].copy_from_slice(value);
    }

    fn word(&mut self, at: u64, value: u64) {
        self.raw(at, &value.to_ne_bytes());
    }

    fn c_string(&mut self, text: &str) -> u64 {
        let at = self.room(text.len() as u64 + 1);
        self.raw(at, text.as_bytes());
        at
    }

    fn object(&mut self, kind: &'static str, size: u64) -> u64 {
        let kind = match self.types.get(kind) {
            Some(&kind) => kind,
            None => {
                let (found, name) = (self.room(416), self.c_string(kind));
                self.word(found + 24, name);
                self.word(found + 32, size);
                self.types.insert(kind, found);
                found
            }
        };
        let object = self.room(size);
        self.word(object + 8, kind);
        object
    }

    fn text(&mut self, text: &str) -> u64 {
        let object = self.object("str", 40 + text.len() as u64);
        self.word(object + 16, text.len() as u64);
        self.word(object + 32, 1 << 2 | 1 << 5 | 1 << 6);
        self.raw(object + 40, text.as_bytes());
        object
    }

    fn content(&mut self, content: &[u8]) -> u64 {
        let object = self.object("bytes", 33 + content.len() as u64);
        self.word(object + 16, content.len() as u64);
        self.raw(object + 32, content);
        object
    }

    /// Adds a function with one block at depth 1, from its third instruction on.
    fn code(&mut self, name: &str) -> u64 {
        let code = self.object("code", 300);
        let (file, name) = (self.text("/srv/app.py"), self.text(name));
        let lines = self.content(&[0x80 | 11 << 3 | 7, 1, 2, 0x80 | 11 << 3 | 7, 1, 2]);
        let blocks = self.content(&[0x82, 12, 14, 1 << 1]);
        for (at, value) in [(112, file), (120, name), (128, name), (136, lines), (40, blocks)] {
            self.word(code + at, value);
        }
        self.raw(code + 68, &40_u32.to_ne_bytes());
        self.raw(code + 64, &6_u32.to_ne_bytes());
        code
    }

    fn frame(&mut self, code: u64, back: u64, unit: u64, stack: &[u64]) -> u64 {
        let frame = self.room(72 + 8 * 6);
        self.word(frame, code);
        self.word(frame + 8, back);
        self.word(frame + 56, code + 192 + 2 * unit);
        for (at, &value) in stack.iter().enumerate() {
            self.word(frame + 72 + 8 * at as u64, value);
        }
        frame
    }

    fn lock(&mut self, semaphore: u64) -> u64 {
        let lock = self.object("_thread.lock", 40);
        self.word(lock + 16, semaphore);
        self.word(lock + 32, 1);
        lock
    }

    fn exit_of(&mut self, lock: u64) -> u64 {
        let name = self.c_string("__exit__");
        let method = self.room(32);
        self.word(method, name);
        let bound = self.object("builtin_function_or_method", 56);
        self.word(bound + 16, method);
        self.word(bound + 24, lock);
        bound
    }

    fn thread(&mut self, tid: u32, next: u64, frame: u64) -> u64 {
        let (state, record) = (self.room(300), self.room(16));
        self.word(record, frame);
        for (at, value) in [(8, next), (56, record), (136, 0x7000 + u64::from(tid))] {
            self.word(state + at, value);
        }
        self.word(state + 144, tid.into());
        state
    }
}

/// Where the semaphores of the two locks lie.
const FRONT: u64 = 0x9000;
const BACK: u64 = 0xa000;

/// Returns an interpreter in which a thread is inside `with front` and waits for `back`, and
/// another the other way round; the first has the GIL. Also where its frame and its state are.
fn crossed() -> (Interpreter, Image, [u64; 2]) {
    let mut image = Image::default();
    let (front, back) = (image.lock(FRONT), image.lock(BACK));
    let (exit_front, exit_back) = (image.exit_of(front), image.exit_of(back));
    let (left, right) = (image.code("left"), image.code("right"));
    let main = image.frame(left, 0, 0, &[]);
    let frame = image.frame(left, main, 9, &[exit_front, back]);
    let other = image.frame(right, 0, 9, &[exit_back, front]);
    let second = image.thread(RIGHT, 0, other);
    let first = image.thread(LEFT, second, frame);
    let (gil, interpreter, runtime) = (image.room(208), image.room(400), image.room(64));
    image.word(gil, 5000);
    image.word(gil + 8, first);
    image.word(gil + 16, 1);
    image.word(interpreter + 72, first);
    image.word(interpreter + 384, gil);
    image.word(runtime + 40, interpreter);
    let layout = Layout::of((3, 12)).expect("read");
    (Interpreter { runtime, layout }, image, [frame, first])
}

fn look(interpreter: &Interpreter, image: &Image) -> PythonLook {
    let memory = SavedMemory::new(BASE, image.bytes.clone());
    let place = |address| WaitPlace { address, stack: 0x7fff_0000_0000 };
    let waits = [(LEFT, place(BACK)), (RIGHT, place(FRONT))].into();
    interpreter.look(&memory, &waits, &|tid| [LEFT, RIGHT].contains(&tid))
}

#[test]
fn frames_locks_and_holders_of_two_threads() {
    let (interpreter, image, _) = crossed();
    let found = look(&interpreter, &image);
    let sites = |tid: u32| -> Vec<String> {
        found.threads[&tid].stack.frames.iter().map(PythonFrame::site).collect()
    };
    assert_eq!(sites(LEFT), ["left() at app.py:42", "left() at app.py:41"]);
    assert_eq!(sites(RIGHT), ["right() at app.py:42"]);
    let holder = |tid: u32| match &found.threads[&tid].wait {
        Some(PythonWait::Lock(lock)) => (lock.key, found.holder(lock)),
        other => panic!("{other:?}"),
    };
    let (key, held) = holder(LEFT);
    assert_eq!(key, BACK);
    let rests_on = "right() at app.py:42 is inside `with`".to_owned();
    assert_eq!(held, PythonHolder::By(RIGHT, PythonEvidence::Guard, rests_on));
    let (key, held) = holder(RIGHT);
    assert!(key == FRONT && matches!(held, PythonHolder::By(LEFT, PythonEvidence::Guard, _)));
    assert_eq!(found.gils.iter().map(|gil| gil.holder).collect::<Vec<_>>(), [Some(LEFT)]);
}

/// Memory in which a word counts how often it is read.
struct Running {
    memory: SavedMemory,
    word: u64,
    reads: std::cell::Cell<u64>,
}

impl ReadableMemory for Running {
    fn read(&self, address: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let length = self.memory.read(address, into)?;
        if address == self.word {
            self.reads.set(self.reads.get() + 1);
            into[0] = into[0].wrapping_add(2 * self.reads.get() as u8);
        }
        Ok(length)
    }
}

#[test]
fn a_thread_that_waits_is_read_alone_and_none_that_goes_on_meanwhile() {
    let (interpreter, image, [frame, _]) = crossed();
    let memory = SavedMemory::new(BASE, image.bytes.clone());
    let waiter = |ident: u64, address: u64, stack| PythonWaiter { ident, address, stack };
    let left = waiter(0x7000 + u64::from(LEFT), BACK, Some(0));
    let asked = [left, waiter(0x7000 + u64::from(RIGHT), FRONT, None), waiter(7, FRONT, Some(0))];
    let found = interpreter.waiters(&memory, &asked, &|| true);
    let [Some(first), Some(second), None] = &found[..] else { panic!("{found:?}") };
    let sites = |seen: &SeenWaiter| -> Vec<String> {
        seen.stack.frames.iter().map(PythonFrame::site).collect()
    };
    assert_eq!(sites(first), ["left() at app.py:42", "left() at app.py:41"]);
    assert_eq!(first.wait.as_ref().map(PythonWait::kind), Some("threading.Lock"));
    assert_eq!((sites(second), &second.wait), (vec!["right() at app.py:42".to_owned()], &None));
    assert_eq!(interpreter.waiters(&memory, &asked, &|| false), [], "there is no time");
    // It executes an instruction each time that it is looked at.
    let running = Running { memory, word: frame + 56, reads: std::cell::Cell::new(0) };
    assert_eq!(interpreter.waiters(&running, &[left], &|| true), [None]);
}

#[test]
fn a_wait_for_a_part_of_the_gil_is_known_by_its_address() {
    let (interpreter, mut image, [_, state]) = crossed();
    let gil = look(&interpreter, &image).gils[0].address;
    let memory = SavedMemory::new(BASE, image.bytes.clone());
    let ident = 0x7000 + u64::from(RIGHT);
    let asked = [PythonWaiter { ident, address: gil + 80, stack: None }];
    let wait = |found: &[Option<SeenWaiter>]| found[0].as_ref().and_then(|seen| seen.wait.clone());
    let found = interpreter.waiters(&memory, &asked, &|| true);
    assert_eq!(wait(&found), Some(PythonWait::Gil(gil)));
    // One that two states say to be theirs may be in either.
    image.word(state + 136, ident);
    let memory = SavedMemory::new(BASE, image.bytes.clone());
    assert_eq!(interpreter.waiters(&memory, &asked, &|| true), [None]);
}

#[test]
fn a_statement_that_still_waits_for_its_lock_holds_nothing() {
    let (interpreter, mut image, [frame, _]) = crossed();
    // Its block is not entered: the instruction stands before it.
    let code = image.bytes[(frame - BASE) as usize..][..8].try_into().expect("8 bytes");
    image.word(frame + 56, u64::from_ne_bytes(code) + 192 + 2);
    let found = look(&interpreter, &image);
    let Some(PythonWait::Lock(front)) = &found.threads[&RIGHT].wait else { panic!("{found:?}") };
    assert_eq!(found.holder(front), PythonHolder::Unknown);
}

#[test]
fn chains_that_go_round_end() {
    let (interpreter, mut image, [frame, _]) = crossed();
    image.word(frame + 8, frame);
    let found = look(&interpreter, &image);
    let stack = &found.threads[&LEFT].stack;
    assert!(stack.cut && stack.frames.len() == frames::MOST, "{}", stack.frames.len());
    // So may the list of threads.
    let (interpreter, mut image, [_, state]) = crossed();
    image.word(state + 8, state);
    assert!(look(&interpreter, &image).cut);
}

#[test]
fn damaged_memory_is_read_to_an_end() {
    let (interpreter, image, _) = crossed();
    let mut seed = 1_u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (seed >> 33) as usize % below
    };
    for _ in 0..400 {
        let mut damaged = Image { bytes: image.bytes.clone(), ..Image::default() };
        for _ in 0..8 {
            let at = next(damaged.bytes.len() / 8) * 8;
            let value = match next(4) {
                0 => u64::MAX - next(64) as u64,
                1 => next(300) as u64,
                // A pointer to something else.
                _ => BASE + next(image.bytes.len()) as u64 / 8 * 8,
            };
            damaged.word(BASE + at as u64, value);
        }
        let found = look(&interpreter, &damaged);
        assert!(found.threads.len() <= 2);
    }
}
