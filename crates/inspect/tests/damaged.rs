//! Files and stacks that are not what they should be: whatever is in them, the
//! answer is a poorer report, never a panic or an endless loop.

use crate::support::build;
use lockstead_inspect::maps::Maps;
use lockstead_inspect::memory::SavedMemory;
use lockstead_inspect::modules::Modules;
use lockstead_inspect::stack::{CodeAddress, StackEnd};
use lockstead_inspect::symbols::{FrameValues, Symbolizer};
use lockstead_inspect::unwind::{MAX_FRAMES, Registers, Unwinder};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const CODE: u64 = 0x5555_0000_0000;
const STACK: u64 = 0x7fff_0000_0000;

/// Repeats by its seed (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Returns an offset in the file, in its code for the most part.
fn place(random: &mut Random, length: u64) -> u64 {
    match random.below(4) {
        0 => random.below(length),
        _ => 0x800 + random.below(0x380),
    }
}

/// Maps in which the whole of `file` is code.
fn mapped(file: &Path) -> Maps {
    let meta = fs::metadata(file).expect("just written");
    let end = CODE + meta.len().next_multiple_of(4096);
    let line = format!("{CODE:x}-{end:x} r-xp 0 0:0 {} {}", meta.ino(), file.display());
    Maps::parse(line.as_bytes())
}

/// Returns a stack full of addresses of code and of itself.
fn stack(random: &mut Random, code: u64) -> SavedMemory {
    let bytes = (0..2048).flat_map(|_| {
        let word = match random.below(6) {
            0..3 => CODE + place(random, code),
            3 => STACK + random.below(2048) * 8,
            4 => random.next(),
            _ => random.below(16),
        };
        word.to_ne_bytes()
    });
    SavedMemory::new(STACK, bytes.collect())
}

/// Reads one of two halves of the damaged files; they are two tests, which run beside each other.
fn damage(half: usize) {
    let flags = ["-O2", "-g", "-fno-pie", "-no-pie", "-Wl,-z,noseparate-code"];
    let Some(program) = build(&format!("damaged-whole-{half}"), "sleepers.c", &flags) else {
        return;
    };
    let whole = fs::read(program).expect("just built");
    let mut random = Random(0x9e37_79b9_7f4a_7c15 + half as u64);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("damaged-{half}"));
    let (mut named, mut walked) = (0, 0);
    // Of ten rounds that follow each other all are in the same half.
    for round in (0..1500).filter(|round| round / 10 % 2 == half) {
        let mut bytes = whole.clone();
        // The first rounds are of the file as it is, on stacks of nonsense.
        for _ in 0..[0, 1, 10, 100, 1000][round / 300] {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next() as u8;
        }
        if round % 10 == 9 {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        // A new file each time: the old one may still be mapped.
        let _ = fs::remove_file(&file);
        fs::write(&file, &bytes).expect("written");
        let maps = mapped(&file);
        let memory = stack(&mut random, whole.len() as u64);
        let mut unwinder = Unwinder::new(Modules::saved(maps.clone()));
        let mut symbols = Symbolizer::new(Modules::saved(maps));
        for _ in 0..40 {
            let pc = CODE + place(&mut random, whole.len() as u64);
            let sp = STACK + random.below(2048) * 8;
            let mut start = Registers::new(pc, sp);
            if random.below(2) == 0 {
                start = start.with_frame_pointer(sp + 8 * random.below(64));
            }
            let walk = unwinder.unwind(&memory, start);
            assert!((1..=MAX_FRAMES).contains(&walk.frames.len()));
            walked += walk.frames.len();
            let found = symbols.stack(&walk.frames, walk.end);
            named += found.frames.iter().filter(|f| f.function.is_some()).count();
            let address = CODE + random.below(whole.len() as u64);
            if let Some(variable) = symbols.variable(address) {
                let _ = symbols.member(address, variable);
            }
            let frame = FrameValues { registers: start, caller: Some(sp), memory: &memory };
            let _ = symbols.guard_variable(walk.frames[0], &frame, STACK, &mut 1000);
        }
    }
    // Each walk has a frame. How many have more, the processor decides: on aarch64 a return address may be in a
    // register, and fewer words of nonsense are followed.
    assert!(walked > 33_000 && named > 10_000, "the test looked at nothing: {walked} {named}");
}

#[test]
fn damage_makes_poorer_reports_and_no_worse() {
    damage(0);
}

#[test]
fn other_damage_makes_poorer_reports_and_no_worse() {
    damage(1);
}

#[test]
fn registers_of_any_value_end_the_walk() {
    let Some(program) = build("damaged-not", "sleepers.c", &["-O0"]) else { return };
    let mut unwinder = Unwinder::new(Modules::saved(mapped(&program)));
    let memory = SavedMemory::new(STACK, vec![0; 64]);
    for value in [0, 1, 7, STACK, STACK + 63, u64::MAX - 8, u64::MAX] {
        for pc in [0, CODE, CODE + 0x1180, u64::MAX] {
            let start = Registers::new(pc, value).with_frame_pointer(value);
            let walk = unwinder.unwind(&memory, start);
            assert!(walk.frames.len() < 8, "{walk:?}");
            assert_eq!(walk.frames[0], CodeAddress::exact(pc));
            assert_ne!(walk.end, StackEnd::Limit { frames: MAX_FRAMES });
        }
    }
}
