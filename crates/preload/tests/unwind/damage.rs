//! Tables and stacks that are damaged: a walk ends, reads nothing outside what
//! it was given, and invents no address that was not there.

use crate::live::{self, DEPTH};
use crate::program;
use crate::random::Random;
use lockstead_preload::unwind::{
    Loaded, LoadedModules, ModuleImage, OwnStack, Rules, StackMemory, Unwinder, WalkEnd, WalkStart,
};
use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::c_void;

/// A copy of this program's unwind tables, at the addresses of the original.
#[derive(Clone)]
struct Tables {
    header: u64,
    bytes: Vec<u8>,
    /// What is called the text of the module.
    text: std::ops::Range<u64>,
}

impl ModuleImage for &Tables {
    fn bytes(&self, address: u64, len: u64) -> Option<&[u8]> {
        let from = usize::try_from(address.checked_sub(self.header)?).ok()?;
        self.bytes.get(from..from.checked_add(usize::try_from(len).ok()?)?)
    }
}

impl LoadedModules for &Tables {
    type Image<'a>
        = &'a Tables
    where
        Self: 'a;

    fn find(&self, pc: u64) -> Option<(&Tables, u64)> {
        self.text.contains(&pc).then_some((*self, self.header))
    }

    fn code(&self, _: u64) -> Option<[u8; 8]> {
        None
    }
}

/// Returns the tables of this program, from the segment that holds them.
fn tables() -> Tables {
    unsafe extern "C" fn first(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        found: *mut c_void,
    ) -> i32 {
        // SAFETY: dl_iterate_phdr passes a valid description, and `found` is the
        // place below.
        let (info, found) = unsafe { (&*info, &mut *found.cast::<Option<Tables>>()) };
        // SAFETY: the loader's description says how many headers there are.
        let headers =
            unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let of = |kind| headers.iter().filter(move |header| header.p_type == kind);
        let table = of(libc::PT_GNU_EH_FRAME).next().expect("the program has unwind tables");
        let holds = |header: &&libc::Elf64_Phdr| {
            (header.p_vaddr..header.p_vaddr + header.p_filesz).contains(&table.p_vaddr)
        };
        let segment = of(libc::PT_LOAD).find(holds).expect("in a segment");
        let code = of(libc::PT_LOAD).find(|header| header.p_flags & libc::PF_X != 0).expect("code");
        let header = info.dlpi_addr + table.p_vaddr;
        let len = segment.p_vaddr + segment.p_filesz - table.p_vaddr;
        // SAFETY: this part of the segment is mapped and never written.
        let bytes = unsafe { std::slice::from_raw_parts(header as *const u8, len as usize) };
        let text = info.dlpi_addr + code.p_vaddr;
        *found = Some(Tables { header, bytes: bytes.to_vec(), text: text..text + code.p_memsz });
        1
    }
    let mut found = None;
    // SAFETY: `first` is called during the call alone, with `found`.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut found).cast()) };
    found.expect("the program itself is the first module")
}

impl Tables {
    fn number(&self, address: u64) -> u32 {
        let bytes = ModuleImage::bytes(&self, address, 4).expect("in the tables");
        u32::from_le_bytes(bytes.try_into().expect("four"))
    }

    /// Returns the rows of the search table: a function, and where its description is.
    fn rows(&self) -> Vec<(u64, u64)> {
        let at = |address| self.header.wrapping_add_signed(i64::from(self.number(address) as i32));
        (0..u64::from(self.number(self.header + 8)))
            .map(|row| self.header + 12 + row * 8)
            .map(|row| (at(row), at(row + 4)))
            .collect()
    }
}

/// A stack of words at an address where nothing is, that counts what is read.
struct Words<'a> {
    low: u64,
    words: &'a [u64],
    reads: &'a Cell<usize>,
}

impl StackMemory for Words<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        self.reads.set(self.reads.get() + 1);
        let from = address.checked_sub(self.low)?;
        if from % 8 != 0 { None } else { self.words.get((from / 8) as usize).copied() }
    }

    fn enter(&mut self, _sp: u64) -> bool {
        false
    }
}

const LOW: u64 = 0x7ffc_0000_0000;

/// Returns a stack of noise: return addresses, places on the stack, and neither.
fn noise(random: &mut Random, text: &std::ops::Range<u64>) -> Vec<u64> {
    (0..512)
        .map(|_| match random.below(4) {
            0 => random.next(),
            1 => LOW + random.below(512) * 8,
            _ => text.start + random.below(text.end - text.start),
        })
        .collect()
}

/// Walks from random places; returns how many addresses all walks gave.
fn walks(tables: &Tables, random: &mut Random, starts: usize, near: Option<u64>) -> usize {
    let rules = Box::new(Rules::new());
    let mut addresses = 0;
    for _ in 0..starts {
        let words = noise(random, &tables.text);
        let reads = Cell::new(0);
        let memory = Words { low: LOW, words: &words, reads: &reads };
        let text = tables.text.end - tables.text.start;
        let start = WalkStart {
            pc: match near {
                Some(pc) => pc + 1 + random.below(64),
                None => tables.text.start + random.below(text),
            },
            sp: LOW + random.below(512) * 8,
            bp: if random.below(2) == 0 { random.next() } else { LOW + random.below(4096) },
        };
        let mut chain = vec![0; DEPTH];
        let walk = Unwinder::new(tables, &rules).walk(start, memory, &mut chain);
        assert!(walk.len >= 1);
        // A frame reads the words its rules name: three, or an expression's.
        assert!(reads.get() <= walk.len * 64, "{} reads for {walk:?}", reads.get());
        addresses += walk.len;
    }
    addresses
}

/// Returns what a word is as a return address: noise may look like one that is signed.
fn as_return_address(word: u64) -> u64 {
    #[cfg(target_arch = "aarch64")]
    let word = lockstead_preload::arch::without_signature(word);
    word
}

#[test]
fn random_starts_on_a_stack_of_noise_end_and_give_words_of_it() {
    let tables = tables();
    let rules = Box::new(Rules::new());
    let mut random = Random::new(1);
    let mut longest = 0;
    for _ in 0..10_000 {
        let words = noise(&mut random, &tables.text);
        let held: HashSet<u64> = words.iter().copied().map(as_return_address).collect();
        let reads = Cell::new(0);
        let memory = Words { low: LOW, words: &words, reads: &reads };
        let start = WalkStart {
            pc: tables.text.start + random.below(tables.text.end - tables.text.start),
            // Seldom not aligned.
            sp: LOW + random.below(128) * 8 + random.below(40) / 39,
            bp: LOW + random.below(512) * 8,
        };
        let mut chain = vec![0; DEPTH];
        let walk = Unwinder::new(&tables, &rules).walk(start, memory, &mut chain);
        assert_ne!(walk.end, WalkEnd::Damaged, "the tables are whole");
        assert!(chain[1..walk.len].iter().all(|pc| held.contains(pc)), "{walk:?}");
        longest = longest.max(walk.len);
    }
    assert!(longest > 3, "no walk got anywhere: {longest}");
}

#[test]
fn flipped_bytes_in_a_function_s_description_do_no_harm() {
    let whole = tables();
    let rows = whole.rows();
    assert!(rows.len() > 100);
    let mut random = Random::new(2);
    let mut tables = whole.clone();
    let mut addresses = 0;
    for _ in 0..4_000 {
        let &(function, own) = random.pick(&rows);
        let shared = own + 4 - u64::from(whole.number(own + 4));
        for _ in 0..1 + random.below(6) {
            let start = if random.below(2) == 0 { own } else { shared };
            let len = u64::from(whole.number(start)) + 4;
            let at = (start - whole.header + random.below(len)) as usize;
            tables.bytes[at] = random.next() as u8;
        }
        addresses += walks(&tables, &mut random, 4, Some(function));
        let damaged = [own, shared].map(|start| {
            let from = (start - whole.header) as usize;
            from..from + whole.number(start) as usize + 4
        });
        for range in damaged {
            tables.bytes[range.clone()].copy_from_slice(&whole.bytes[range]);
        }
    }
    assert!(tables.bytes == whole.bytes, "damage was left behind");
    assert!(addresses > 16_000 + 50, "no walk got anywhere: {addresses}");
}

#[test]
fn damaged_search_tables_cut_tables_and_noise_for_tables_do_no_harm() {
    let whole = tables();
    let mut random = Random::new(3);
    for _ in 0..300 {
        // The search table and its head.
        let mut tables = whole.clone();
        for _ in 0..1 + random.below(64) {
            let part = *random.pick(&[12, 8192]);
            let at = random.below(part) as usize;
            tables.bytes[at] = random.next() as u8;
        }
        walks(&tables, &mut random, 10, None);
        // Cut off somewhere.
        let mut tables = whole.clone();
        tables.bytes.truncate(random.below(whole.bytes.len() as u64) as usize);
        walks(&tables, &mut random, 10, None);
        // Nothing but noise behind a good search table.
        let mut tables = whole.clone();
        let behind = 12 + whole.rows().len() * 8;
        for bytes in tables.bytes[behind..].chunks_mut(8) {
            let noise = random.next().to_le_bytes();
            bytes.copy_from_slice(&noise[..bytes.len()]);
        }
        walks(&tables, &mut random, 10, None);
    }
    let mut none = whole.clone();
    none.bytes.clear();
    walks(&none, &mut random, 10, None);
}

#[test]
fn random_starts_on_the_live_stack_do_not_fault() {
    let Some(loaded) = live::loaded() else { return };
    // Old words of the stack may name a module that another test unloads.
    let _none_goes = program::UNLOADING.lock();
    let rules = Box::new(Rules::new());
    let mut random = Random::new(4);
    live::here(&mut |start| {
        let end = live::stack_end();
        let size = end - start.sp;
        let unwinder: Unwinder<'_, Loaded> = Unwinder::new(loaded, &rules);
        let mut frames = 0;
        for _ in 0..10_000 {
            let start = WalkStart {
                pc: start.pc,
                sp: start.sp + random.below(size),
                bp: start.sp.wrapping_add(random.below(2 * size)),
            };
            // SAFETY: the range is the part of the stack above a live caller's frame.
            let stack = unsafe { OwnStack::new(end - size, end) };
            let mut chain = vec![0; DEPTH];
            let walk = unwinder.walk(start, stack, &mut chain);
            assert!(walk.len >= 1 && walk.len < DEPTH);
            frames += walk.len;
        }
        assert!(frames >= 10_000);
    });
}
