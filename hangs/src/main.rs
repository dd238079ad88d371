//! `cargo run -p lockstead-hangs`: builds all programs in all ways, lets them hang, and tells how
//! well `lockstead` explains them.

use lockstead_hangs::asking::{Mode, ask};
use lockstead_hangs::builds::{Builds, Program, WAYS, Way};
use lockstead_hangs::judgement::{Judgement, Verdict};
use lockstead_hangs::table::{Sums, table};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const USAGE: &str = "\
usage: hangs [OPTION...] [CASE...]

Builds programs that hang and know why, asks lockstead about each, and compares: all their cases,
or those that are named. Exits with status 1 if lockstead named an owner or a deadlock that is none, or did not answer.

  --lockstead PATH  the command that is asked: the one beside this program
  --folder DIR      where the programs are built: hangs-programs beside this program
  --family NAME     only these languages or locks (`Rust`, `Rust std`, `Python`); may be repeated
  --way NAME        only what is built so (`O3 stripped`, `3.12`); may be repeated
  --mode NAME       dump, of programs started plainly; run, under `lockstead run`; both (the default)
  --jobs N          how many hang at once: 2
  --verbose         says of each case what is missing
";

struct Options {
    lockstead: PathBuf,
    folder: PathBuf,
    modes: Vec<Mode>,
    jobs: usize,
    verbose: bool,
    families: Vec<String>,
    ways: Vec<String>,
    cases: Vec<String>,
}

impl Options {
    fn wants(&self, family: &str) -> bool {
        self.families.is_empty() || self.families.iter().any(|wanted| family.starts_with(wanted))
    }

    fn wants_program(&self, program: &Program) -> bool {
        self.wants(&program.family) && (self.ways.is_empty() || self.ways.contains(&program.way))
    }

    fn wants_case(&self, case: &str) -> bool {
        self.cases.is_empty() || self.cases.iter().any(|wanted| wanted == case)
    }
}

/// A function that builds some families in one way.
type Builder = fn(&mut Builds, Way) -> Result<(), String>;

/// The functions that build, each with its families.
const BUILDERS: [(&[&str], Builder); 6] = [
    (&["Rust std"], Builds::std),
    (&["Rust and pthread"], Builds::pthread),
    (&["Rust parking_lot", "Rust lockstead", "Rust, three crates"], Builds::crates),
    (&["C"], Builds::c),
    (&["C++ std", "C++ abseil", "C++20 atomic wait", "C++20 semaphore"], Builds::cpp),
    (&["Rust and C++"], Builds::mixed),
];

fn main() -> ExitCode {
    match options(std::env::args().skip(1))
        .and_then(|options| options.map_or(Ok(false), |o| all(&o)))
    {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("hangs: {error}");
            ExitCode::from(2)
        }
    }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut options = Options {
        lockstead: here.with_file_name("lockstead"),
        folder: here.with_file_name("hangs-programs"),
        modes: vec![Mode::Dump, Mode::Run],
        jobs: 2,
        verbose: false,
        families: Vec::new(),
        ways: Vec::new(),
        cases: Vec::new(),
    };
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{name} wants a value\n\n{USAGE}"));
        match name.as_str() {
            "--help" | "-h" => {
                print!("{USAGE}");
                return Ok(None);
            }
            "--lockstead" => options.lockstead = value()?.into(),
            "--folder" => options.folder = value()?.into(),
            "--jobs" => options.jobs = value()?.parse().map_err(|_| "--jobs wants a number")?,
            "--family" => options.families.push(value()?),
            "--way" => options.ways.push(value()?),
            "--verbose" => options.verbose = true,
            "--mode" => {
                options.modes = match value()?.as_str() {
                    "dump" => vec![Mode::Dump],
                    "run" => vec![Mode::Run],
                    "both" => vec![Mode::Dump, Mode::Run],
                    other => return Err(format!("{other} is no mode\n\n{USAGE}")),
                };
            }
            option if option.starts_with('-') => {
                return Err(format!("{option} means nothing\n\n{USAGE}"));
            }
            case => options.cases.push(case.into()),
        }
    }
    Ok(Some(options))
}

/// Builds, asks and prints; returns whether something is wrong.
fn all(options: &Options) -> Result<bool, String> {
    std::fs::create_dir_all(&options.folder).map_err(|error| error.to_string())?;
    let mut builds = Builds::new(options.folder.clone());
    for way in WAYS
        .into_iter()
        .filter(|way| options.ways.is_empty() || options.ways.iter().any(|w| w == way.name))
    {
        for (families, build) in BUILDERS {
            if families.iter().any(|family| options.wants(family)) {
                build(&mut builds, way)?;
            }
        }
    }
    if ["Python", "Python and C"].iter().any(|family| options.wants(family)) {
        builds.python()?;
    }
    builds.skipped.iter().for_each(|reason| println!("skipped: {reason}"));
    let mut tasks = Vec::new();
    for program in builds.programs.iter().filter(|program| options.wants_program(program)) {
        for case in program.cases()?.into_iter().filter(|case| options.wants_case(case)) {
            let one = |mode| Task { mode, program, case: case.clone() };
            tasks.extend(options.modes.iter().map(|mode| one(*mode)));
        }
    }
    Ok(run(options, &tasks))
}

/// A program, a case of it, and how it is asked about.
struct Task<'a> {
    mode: Mode,
    program: &'a Program,
    case: String,
}

/// Asks about all, several at once, and prints the tables.
fn run(options: &Options, tasks: &[Task]) -> bool {
    let next = AtomicUsize::new(0);
    let failed = AtomicUsize::new(0);
    let rows: Mutex<BTreeMap<Vec<String>, Sums>> = Mutex::default();
    let work = || {
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Task { mode, program, case } = task;
            let name = format!("{mode:?}: {}, {}: {case}", program.family, program.way);
            match ask(&options.lockstead, *mode, program, case) {
                Ok(judgement) => {
                    judgement.wrong.iter().for_each(|wrong| println!("WRONG: {name}: {wrong}"));
                    if options.verbose {
                        tell(&name, &judgement);
                    }
                    let key =
                        vec![format!("{mode:?}"), program.family.clone(), program.way.clone()];
                    let mut rows = rows.lock().expect("nobody panics with it");
                    rows.entry(key).or_default().add(&judgement);
                }
                Err(error) => {
                    failed.fetch_add(1, Ordering::Relaxed);
                    println!("FAILED: {name}: {error}");
                }
            }
        }
    };
    thread::scope(|scope| (0..options.jobs).for_each(|_| drop(scope.spawn(work))));
    let rows = rows.into_inner().expect("nobody panics with it");
    print!("\n{}", table(&["asked by", "family", "built"], &rows));
    let mut families: BTreeMap<Vec<String>, Sums> = BTreeMap::new();
    for (key, row) in &rows {
        families.entry(key[..2].to_vec()).or_default().merge(row);
    }
    print!("\n{}", table(&["asked by", "family"], &families));
    let failed = failed.into_inner();
    if failed > 0 {
        println!("\n{failed} of {} did not hang, or were not answered", tasks.len());
    }
    failed > 0 || rows.values().any(Sums::has_wrong)
}

fn tell(name: &str, judgement: &Judgement) {
    if !judgement.not_known.is_empty() {
        println!("not known: {name}: {}", judgement.not_known.join(", "));
    }
    if judgement.may_hold > 0 {
        println!("may hold: {name}: {} of {}", judgement.may_hold, judgement.owners());
    }
    if judgement.verdict == Verdict::Missed {
        println!("missed: {name}");
    }
}
