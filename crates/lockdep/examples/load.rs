//! What the order graph costs: time for each new edge and memory, for graphs of
//! the size that it must bear.
//!
//! `cargo run --release -p lockstead-lockdep --example load [millions of edges] [shape]`

use lockstead_lockdep::{
    ClassId, GateLock, Graph, Inversion, Limits, LockId, Mode, OrderEdge, SiteId, ThreadId,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts what is allocated.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the type passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Relaxed);
        // SAFETY: the system's allocator demands what this function's caller has promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the system's allocator demands what this function's caller has promised.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LIVE.fetch_add(size, Relaxed);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the system's allocator demands what this function's caller has promised.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the time that this thread ran.
fn now() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("/proc");
    stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("a number") / 1e9
}

/// So many edges are timed together.
const BATCH: u32 = 1000;

/// Numbers that look like chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (((self.0 >> 32) * u64::from(bound)) >> 32) as u32
    }
}

/// The next edge, given its number and how many locks there are: its ends, its
/// thread and a gate.
type Next = fn(&mut Chance, u32, u32) -> (u32, u32, u32, Option<u32>);

/// A way to make edges.
struct Shape {
    name: &'static str,
    what: &'static str,
    locks: u32,
    /// Locks of a class stand side by side.
    classes: u32,
    next: Next,
}

const SHAPES: [Shape; 7] = [
    Shape {
        name: "hub",
        what: "1 lock before a million others, in turns with 1 lock after them",
        locks: 1 << 20,
        classes: 1 << 8,
        next: |_, n, locks| {
            let inner = 2 + n / 2 % (locks - 2);
            if n % 2 == 0 { (0, inner, n % 8, None) } else { (inner, 1, n % 8, None) }
        },
    },
    Shape {
        name: "layers",
        what: "8 layers, each lock before random ones of the next layer",
        locks: 1 << 20,
        classes: 1 << 10,
        next: |chance, n, locks| {
            let layer = chance.below(7);
            let width = locks / 8;
            let from = layer * width + chance.below(width);
            (from, (layer + 1) * width + chance.below(width), n % 8, None)
        },
    },
    Shape {
        name: "own",
        what: "the same, each lock a class of its own",
        locks: 1 << 16,
        classes: 1 << 16,
        next: |chance, n, locks| {
            let layer = chance.below(7);
            let width = locks / 8;
            let from = layer * width + chance.below(width);
            (from, (layer + 1) * width + chance.below(width), n % 8, None)
        },
    },
    Shape {
        name: "address",
        what: "random pairs, always the lower number first",
        locks: 1 << 20,
        classes: 1,
        next: |chance, n, locks| {
            let (a, b) = (chance.below(locks), chance.below(locks));
            (a.min(b), a.max(b), n % 8, None)
        },
    },
    Shape {
        name: "chain",
        what: "a list, hand over hand, with random locks put in",
        locks: 1 << 20,
        classes: 1,
        next: |chance, n, locks| {
            let from = chance.below(locks - 8);
            (from, from + 1 + chance.below(7), n % 8, None)
        },
    },
    Shape {
        name: "gated",
        what: "random pairs in any order, all under one gate",
        locks: 1 << 18,
        classes: 4,
        next: |chance, n, locks| {
            (1 + chance.below(locks - 1), 1 + chance.below(locks - 1), n % 8, Some(0))
        },
    },
    Shape {
        name: "wild",
        what: "random pairs in any order, by 8 threads",
        locks: 1 << 18,
        classes: 4,
        next: |chance, n, locks| (chance.below(locks), chance.below(locks), n % 8, None),
    },
];

/// Adds all edges. Gives the time of all, and of the slowest [`BATCH`].
fn pass(shape: &Shape, graph: &mut Graph, edges: u32, findings: &mut Vec<Inversion>) -> (f64, f64) {
    let mut chance = Chance(1);
    let mut slowest = 0_f64;
    let begun = now();
    let (mut mark, mut told) = (begun, (begun, 0));
    for n in 0..edges {
        let (from, to, thread, gate) = (shape.next)(&mut chance, n, shape.locks);
        let gates = gate.map(|lock| [GateLock { lock: LockId(lock), shared: false }]);
        let edge = OrderEdge {
            from: LockId(from),
            to: LockId(to),
            from_mode: Mode::Write,
            to_mode: Mode::Write,
            from_site: SiteId(n),
            to_site: SiteId(n),
            thread: ThreadId(thread),
            gates: gates.as_ref().map_or(&[], |gates| gates),
            alone: false,
            tried_from: false,
            timed_to: false,
        };
        graph.add(&edge, findings);
        if n % BATCH == BATCH - 1 {
            let time = now();
            slowest = slowest.max(time - mark);
            mark = time;
            if time - told.0 > 10.0 {
                let each = (time - told.0) * 1e6 / f64::from(n - told.1);
                println!("  {each:.2} us an edge up to {n}");
                told = (time, n);
            }
        }
    }
    (now() - begun, slowest)
}

fn measure(shape: &Shape, edges: u32) {
    let before = LIVE.load(Relaxed);
    let mut graph = Graph::new(Limits::default());
    for lock in 0..shape.locks {
        let class = u64::from(lock) * u64::from(shape.classes) / u64::from(shape.locks);
        graph.declare(LockId(lock), ClassId(class as u32), 0);
    }
    let declared = LIVE.load(Relaxed) - before;
    let mut findings = Vec::new();
    let (took, slowest) = pass(shape, &mut graph, edges, &mut findings);
    let (again, _) = pass(shape, &mut graph, edges, &mut findings);
    let kept = graph.edges().count();
    let memory = LIVE.load(Relaxed) - before;
    println!(
        "{:8} {:.2} us an edge, {:.1} in the slowest {BATCH}, {:.2} when known; {kept} edges, {:.0} MiB: {:.0} bytes \
         an edge and {:.0} a lock; {} findings, {:?}",
        shape.name,
        took * 1e6 / f64::from(edges),
        slowest * 1e6 / f64::from(BATCH),
        again * 1e6 / f64::from(edges),
        memory as f64 / f64::from(1 << 20),
        (memory - declared) as f64 / kept as f64,
        declared as f64 / f64::from(shape.locks),
        findings.len(),
        graph.losses(),
    );
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let millions = arguments.next().map_or(4.0, |n| n.parse().expect("millions of edges"));
    let wanted: Vec<String> = arguments.collect();
    for shape in &SHAPES {
        if wanted.is_empty() || wanted.iter().any(|name| name == shape.name) {
            println!("{}: {}", shape.name, shape.what);
            measure(shape, (millions * 1e6) as u32);
        }
    }
}
