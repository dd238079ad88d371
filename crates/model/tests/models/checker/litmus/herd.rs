//! What herd of herdtools7 says of a litmus test.

use super::program::{ATOMICS, PLAIN, Program, Step};
use super::verdict::{MODELS, Outcomes, Verdict};
use lockstead_model::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn word(order: Ordering) -> &'static str {
    match order {
        Ordering::Relaxed => "memory_order_relaxed",
        Ordering::Acquire => "memory_order_acquire",
        Ordering::Release => "memory_order_release",
        Ordering::AcqRel => "memory_order_acq_rel",
        _ => "memory_order_seq_cst",
    }
}

fn atomic(at: usize) -> &'static str {
    &ATOMICS[at..=at]
}

fn plain(at: usize) -> &'static str {
    &PLAIN[at..=at]
}

/// Returns the place where herd finds what a compare-exchange expects, and puts what it found.
fn expected(thread: usize, register: usize) -> String {
    format!("e{thread}{register}")
}

/// Returns the text of a thread, and what its compare-exchanges expect.
fn thread(me: usize, steps: &[Step]) -> (String, Vec<(String, u32)>) {
    let (mut body, mut begun, mut guards) = (String::new(), Vec::new(), 0);
    let mut register = 0;
    for step in steps.iter().filter(|step| step.reads()) {
        assert!(guards == 0 || !matches!(step, Step::Exchange(..)));
        let _ = writeln!(body, "  int r{register} = 0;");
        register += 1;
    }
    register = 0;
    for &step in steps {
        let read = match step {
            Step::Store(at, value, order) => {
                let (at, order) = (atomic(at), word(order));
                let _ = writeln!(body, "  atomic_store_explicit({at}, {value}, {order});");
                continue;
            }
            Step::Fence(order) => {
                let _ = writeln!(body, "  atomic_thread_fence({});", word(order));
                continue;
            }
            Step::Write(at, value) => {
                let _ = writeln!(body, "  *{} = {value};", plain(at));
                continue;
            }
            Step::Guard(value) => {
                let _ = writeln!(body, "  if (r{} == {value}) {{", register - 1);
                guards += 1;
                continue;
            }
            Step::Load(at, order) => {
                format!("atomic_load_explicit({}, {})", atomic(at), word(order))
            }
            Step::Add(at, value, order) => {
                format!("atomic_fetch_add_explicit({}, {value}, {})", atomic(at), word(order))
            }
            Step::Swap(at, value, order) => {
                format!("atomic_exchange_explicit({}, {value}, {})", atomic(at), word(order))
            }
            Step::Exchange(at, [old, new], [success, failure]) => {
                let (at, place) = (atomic(at), expected(me, register));
                let (success, failure) = (word(success), word(failure));
                let call = "atomic_compare_exchange_strong_explicit";
                let _ = writeln!(
                    body,
                    "  int b{register} = {call}({at}, {place}, {new}, {success}, {failure});"
                );
                begun.push((place.clone(), old));
                format!("*{place}")
            }
            Step::Read(at) => format!("*{}", plain(at)),
        };
        let _ = writeln!(body, "  r{register} = {read};");
        register += 1;
    }
    body += &"  }\n".repeat(guards);
    let atomics = steps.iter().filter_map(|step| step.atomic()).map(|at| atomic(at).to_string());
    let atomics =
        atomics.collect::<BTreeSet<_>>().into_iter().map(|at| format!("atomic_int* {at}"));
    let plains = steps.iter().filter_map(|step| match step {
        Step::Write(at, _) | Step::Read(at) => Some(plain(*at).to_string()),
        _ => None,
    });
    let plains = plains.chain(begun.iter().map(|(place, _)| place.clone()));
    let plains = plains.collect::<BTreeSet<_>>().into_iter().map(|at| format!("int* {at}"));
    let arguments: Vec<_> = atomics.chain(plains).collect();
    (format!("P{me}({}) {{\n{body}}}\n", arguments.join(", ")), begun)
}

/// Returns the names by which herd tells an outcome: registers, and locations.
fn named(program: Program) -> [Vec<String>; 2] {
    let registers = program.threads.iter().enumerate().flat_map(|(me, steps)| {
        let read = steps.iter().filter(|step| step.reads()).count();
        (0..read).map(move |register| format!("{me}:r{register}"))
    });
    [registers.collect(), program.atomics().into_iter().map(|at| atomic(at).to_string()).collect()]
}

/// Returns the program in C, as herd reads it.
fn source(name: &str, program: Program) -> String {
    let mut threads = String::new();
    let mut begin = String::new();
    for (me, steps) in program.threads.iter().enumerate() {
        let (text, begun) = thread(me, steps);
        threads += &text;
        for (place, old) in begun {
            let _ = write!(begin, "{place}={old}; ");
        }
    }
    let [registers, locations] = named(program);
    let all: String = registers.iter().chain(&locations).map(|name| format!("{name}; ")).collect();
    format!("C {name}\n{{ {begin}}}\n{threads}locations [{all}]\nexists (true)\n")
}

/// Returns the outcomes in what herd printed of one test.
fn outcomes(program: Program, printed: &str) -> Outcomes {
    if printed.contains("Flag *undef*") {
        return None;
    }
    let [registers, locations] = named(program);
    let states = printed.lines().skip_while(|line| !line.starts_with("States ")).skip(1);
    let states = states.take_while(|line| line.contains('='));
    let outcome = |line: &str| {
        let values: BTreeMap<&str, &str> = line
            .split(';')
            .filter_map(|pair| pair.trim().split_once('='))
            .map(|(name, value)| (name.trim_matches(['[', ']']), value))
            .collect();
        let all = |names: &[String]| names.iter().map(|name| values[&**name]).collect::<String>();
        format!("{}:{}", all(&registers), all(&locations))
    };
    Some(states.map(outcome).collect())
}

/// Returns where the models of this folder are.
fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models/checker/litmus")
}

/// Returns the version of herd, if there is one.
pub(super) fn version() -> Option<String> {
    let output = Command::new("herd7").arg("-version").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).split(',').next()?.trim().to_string())
}

/// Returns what herd says of these programs.
///
/// # Panics
/// If herd cannot be run, or does not understand a program.
pub(super) fn verdicts(programs: &[Program]) -> Vec<Verdict> {
    let folder = std::env::temp_dir().join(format!("lockstead-litmus-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut list = String::new();
    for (number, &program) in programs.iter().enumerate() {
        let file = folder.join(format!("t{number}.litmus"));
        std::fs::write(&file, source(&format!("t{number}"), program)).expect("written");
        let _ = writeln!(list, "{}", file.display());
    }
    let listed = folder.join("@all");
    std::fs::write(&listed, list).expect("written");
    let by_model = MODELS.map(|model| {
        let mut herd = Command::new("herd7");
        herd.arg("-I").arg(models()).args(["-model", model]).arg(&listed);
        let output = herd.output().expect("herd7 runs");
        let printed = String::from_utf8_lossy(&output.stdout);
        let tests = printed.split("Test t").skip(1);
        let said: BTreeMap<usize, &str> = tests
            .map(|text| {
                (text.split(' ').next().and_then(|n| n.parse().ok()).expect("a number"), text)
            })
            .collect();
        let complaint = String::from_utf8_lossy(&output.stderr);
        let all = programs.iter().enumerate().map(|(number, &program)| {
            let text = said.get(&number);
            outcomes(program, text.unwrap_or_else(|| panic!("{number}: {complaint}")))
        });
        all.collect::<Vec<_>>()
    });
    std::fs::remove_dir_all(&folder).expect("removed");
    let [checker, cxx20, rc11] = by_model;
    let three = checker.into_iter().zip(cxx20).zip(rc11);
    three.map(|((checker, cxx20), rc11)| Verdict([checker, cxx20, rc11])).collect()
}
