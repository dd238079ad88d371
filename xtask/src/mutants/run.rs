//! Runs mutants, the quickest killer first, and notes what becomes of them.

use crate::mutants::plan::{Plan, Verdict};
use crate::mutants::programs::{Outcome, Test, measure};
use crate::mutants::results::{Found, Results, State};
use crate::mutants::tree::{Tree, groups_of_singles};
use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// So many tests that take too long tell that a mutant makes searches endless.
const TIME_OUTS: u32 = 2;

/// What tests of how many seconds each mutant meets before the others have their turn: kills are
/// quick, and survivors slow.
const BUDGETS: [Duration; 3] = [Duration::from_secs(3), Duration::from_secs(30), Duration::MAX];

/// How long to go on, with how many tests at once, and with which.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// Parts of the names of the tests that may kill; all may, if there is none.
    pub tests: &'a [String],
    /// When no further mutant is begun.
    pub until: Option<Instant>,
    /// So many tests run at once.
    pub at_once: usize,
}

impl Limits<'_> {
    /// Returns whether what was found holds for all tests: others may kill what some do not.
    fn decides(&self, found: &Found) -> bool {
        self.tests.is_empty() || matches!(found.state, State::Killed | State::DoesNotCompile)
    }

    /// Says that a mutant was not killed.
    fn tell(&self, plan: &Plan, index: usize, found: &Found) {
        let at = plan.describe(&plan.mutants[index]);
        match found.state {
            State::Killed => {}
            state if self.decides(found) => eprintln!("{state:?}: {at}"),
            state => eprintln!("{state:?}, of these tests: {at}"),
        }
    }

    fn over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// What has killed so far, by test: in a function, and in a file.
#[derive(Default)]
struct Kills {
    of: HashMap<(String, String), u32>,
}

impl Kills {
    fn note(&mut self, test: &str, file: &str, function: &str) {
        for place in [file.to_owned(), format!("{file} {function}")] {
            *self.of.entry((test.into(), place)).or_default() += 1;
        }
    }

    /// Returns how many seconds a kill by this test costs, as far as the past tells.
    fn cost(&self, test: &Test, file: &str, function: &str) -> f64 {
        let kills = |place: String| {
            self.of.get(&(test.name.clone(), place)).copied().map_or(0.0, f64::from)
        };
        let here = kills(format!("{file} {function}"));
        let chance = 0.02 + here / (here + 2.0) + 0.2 * kills(file.into()) / 20.0;
        (test.usual.as_secs_f64() + 0.01) / chance
    }

    /// Puts the test called `first` before the others, and these in the order of what a kill costs.
    fn sort(&self, tests: &mut [&Test], (file, function): (&str, &str), first: Option<&str>) {
        let late = |test: &Test| first.is_none_or(|first| first != test.name);
        tests.sort_by(|a, b| {
            let cost = |test| self.cost(test, file, function);
            late(a).cmp(&late(b)).then(cost(a).total_cmp(&cost(b)))
        });
    }
}

/// The tests that take milliseconds, by what their names begin with. Most mutants meet no others.
const QUICK: &[&str] = &["core/", "ledger/"];

/// Builds the plan's mutants and runs those of `todo`, which are indices into it: with the quick tests
/// first, and then what these do not kill with all, whose programs are built only then.
///
/// # Errors
/// A build that fails for no mutant's sake, or a test that fails with none.
pub fn run(
    plan: &mut Plan,
    todo: &[usize],
    results: &mut Results,
    limits: Limits<'_>,
) -> Result<(), String> {
    if !limits.tests.is_empty() {
        return run_with(plan, todo, results, limits);
    }
    let quick: Vec<String> = QUICK.iter().map(ToString::to_string).collect();
    run_with(plan, todo, results, Limits { tests: &quick, ..limits })?;
    let passes = |index: &usize| {
        let found = results.get(&plan.mutants[*index]);
        !found.is_some_and(|it| matches!(it.state, State::Killed | State::DoesNotCompile))
    };
    let left: Vec<usize> = todo.iter().copied().filter(passes).collect();
    if left.is_empty() || limits.over() {
        return Ok(());
    }
    eprintln!("mutants: {} pass the quick tests", left.len());
    run_with(plan, &left, results, limits)
}

/// Does the same with the tests that `limits` says.
fn run_with(
    plan: &mut Plan,
    todo: &[usize],
    results: &mut Results,
    limits: Limits<'_>,
) -> Result<(), String> {
    let mut tree = Tree::new();
    let programs = tree.build(plan, limits.tests)?;
    note_uncompiled(plan, results);
    eprintln!("mutants: {} programs built; measuring their tests", programs.len());
    let tests = measure(&programs, limits.tests)?;
    let usual: Duration = tests.iter().map(|test| test.usual).sum();
    let built = |index: &usize| plan.mutants[*index].number.is_some();
    let switched: Vec<usize> = todo.iter().copied().filter(built).collect();
    let (count, seconds) = (tests.len(), usual.as_secs_f64());
    eprintln!("mutants: {count} tests, {seconds:.0} s; {} mutants to run", switched.len());
    let mut left: Vec<_> = switched.into_iter().map(|index| (index, Progress::default())).collect();
    for budget in BUDGETS {
        left = run_switched(plan, left, &tests, results, limits, budget)?;
        if !left.is_empty() && !limits.over() {
            eprintln!("mutants: {} pass {} s of tests", left.len(), budget.as_secs());
            results.save()?;
        }
    }
    run_singles(plan, todo, &tests, results, limits)?;
    results.save()
}

fn note_uncompiled(plan: &Plan, results: &mut Results) {
    for mutant in plan.mutants.iter().filter(|it| it.verdict == Some(Verdict::DoesNotCompile)) {
        let found = Found { state: State::DoesNotCompile, by: None, reaching: Vec::new() };
        results.put(mutant, &found, &BTreeSet::new());
    }
}

/// What a mutant has gone through so far.
#[derive(Default)]
struct Progress {
    /// The tests that did not fail.
    met: BTreeSet<String>,
    /// How many of these took too long, and the first of them.
    slow: u32,
    first_slow: Option<String>,
}

/// Mutants that are not decided, by their index in the plan.
type Undecided = Vec<(usize, Progress)>;

/// Runs mutants with as many more tests as the budget allows. Returns those that are not decided then.
fn run_switched(
    plan: &Plan,
    todo: Undecided,
    tests: &[Test],
    results: &mut Results,
    limits: Limits<'_>,
    budget: Duration,
) -> Result<Undecided, String> {
    let count = todo.len();
    let next = Mutex::new(todo.into_iter());
    let kills = Mutex::new(Kills::default());
    let shared = Mutex::new((results, Instant::now(), 0_usize));
    let failed = Mutex::new(None);
    let left = Mutex::new(Vec::new());
    let firsts = first_numbers(plan);
    std::thread::scope(|scope| {
        for _ in 0..limits.at_once.max(1) {
            scope.spawn(|| {
                while !limits.over() {
                    let Some((index, progress)) = next.lock().expect("no thread panics").next()
                    else {
                        return;
                    };
                    let killer = {
                        let shared = shared.lock().expect("no thread panics");
                        shared.0.killer(&plan.mutants[index])
                    };
                    let from = (index, progress, killer);
                    match decide(plan, from, tests, &kills, &firsts, budget) {
                        Ok(Err(progress)) => {
                            left.lock().expect("no thread panics").push((index, progress));
                            let at = plan.describe(&plan.mutants[index]);
                            eprintln!("passes {} s of tests: {at}", budget.as_secs());
                        }
                        Ok(Ok((found, reached))) => {
                            let mut shared = shared.lock().expect("no thread panics");
                            if limits.decides(&found) {
                                shared.0.put(&plan.mutants[index], &found, &reached);
                            }
                            shared.2 += 1;
                            limits.tell(plan, index, &found);
                            if shared.1.elapsed() > Duration::from_secs(10) {
                                eprintln!("mutants: {} of {} done", shared.2, count);
                                shared.1 = Instant::now();
                                let _ = shared.0.save();
                            }
                        }
                        Err(error) => {
                            *failed.lock().expect("no thread panics") = Some(error);
                            return;
                        }
                    }
                }
            });
        }
    });
    match failed.into_inner().expect("no thread panics") {
        Some(error) => Err(error),
        None => Ok(left.into_inner().expect("no thread panics")),
    }
}

/// Returns the first number of each site that has one: that is what tests note.
fn first_numbers(plan: &Plan) -> HashMap<(usize, usize), u32> {
    let mut firsts: HashMap<(usize, usize), u32> = HashMap::new();
    for mutant in &plan.mutants {
        if let Some(number) = mutant.number {
            firsts.entry((mutant.file, mutant.site)).or_insert(number);
        }
    }
    firsts
}

/// What has become of a mutant, and the files that the killing test comes to; or how far it is.
type Decided = Result<(Found, BTreeSet<String>), Progress>;

fn decide(
    plan: &Plan,
    (index, progress, before): (usize, Progress, Option<String>),
    tests: &[Test],
    kills: &Mutex<Kills>,
    firsts: &HashMap<(usize, usize), u32>,
    budget: Duration,
) -> Result<Decided, String> {
    let mutant = &plan.mutants[index];
    let first = firsts[&(mutant.file, mutant.site)];
    let file = plan.files[mutant.file].short();
    let function = &plan.files[mutant.file].sites[mutant.site].function;
    let mut reaching: Vec<&Test> = tests.iter().filter(|test| test.reaches(first)).collect();
    let number = mutant.number.unwrap_or_default();
    let place = (file, function.as_str());
    // What killed it before something changed most likely does so again.
    kills.lock().expect("no thread panics").sort(&mut reaching, place, before.as_deref());
    let found = match try_tests(&reaching, number, place, kills, (budget, progress))? {
        Ok(found) => found,
        Err(progress) => return Ok(Err(progress)),
    };
    let killer = found.by.as_ref().and_then(|by| tests.iter().find(|test| test.name == *by));
    let reached = firsts
        .iter()
        .filter(|(_, first)| killer.is_some_and(|test| test.reaches(**first)))
        .map(|((file, _), _)| plan.files[*file].path.clone())
        .collect();
    Ok(Ok((found, reached)))
}

/// Runs tests that the mutant has not met, until one kills. Returns how far it is if tests are left
/// when the budget is spent.
fn try_tests(
    reaching: &[&Test],
    number: u32,
    (file, function): (&str, &str),
    kills: &Mutex<Kills>,
    (budget, mut progress): (Duration, Progress),
) -> Result<Result<Found, Progress>, String> {
    let mut spent = Duration::ZERO;
    for test in reaching {
        if progress.slow == TIME_OUTS {
            break;
        }
        if progress.met.contains(&test.name) {
            continue;
        }
        if spent > budget {
            return Ok(Err(progress));
        }
        spent += test.usual;
        match test.run(number)? {
            Outcome::Passed => {}
            Outcome::Failed => {
                kills.lock().expect("no thread panics").note(&test.name, file, function);
                let by = Some(test.name.clone());
                return Ok(Ok(Found { state: State::Killed, by, reaching: Vec::new() }));
            }
            Outcome::TimedOut => {
                progress.first_slow.get_or_insert_with(|| test.name.clone());
                progress.slow += 1;
            }
        }
        progress.met.insert(test.name.clone());
    }
    let state = match &progress.first_slow {
        _ if reaching.is_empty() => State::Unreached,
        Some(_) => State::TimedOut,
        None => State::Survived,
    };
    let reaching = reaching.iter().map(|test| test.name.clone()).collect();
    Ok(Ok(Found { state, by: progress.first_slow, reaching }))
}

/// Builds each mutant that cannot stand behind a switch by itself, and runs the tests that come to
/// its file, those of one package after those of the other.
fn run_singles(
    plan: &Plan,
    todo: &[usize],
    tests: &[Test],
    results: &mut Results,
    limits: Limits<'_>,
) -> Result<(), String> {
    let single = |index: &usize| plan.mutants[*index].verdict == Some(Verdict::Single);
    let singles: Vec<usize> = todo.iter().copied().filter(single).collect();
    let mut tree = Tree::of_singles();
    let mut groups = groups_of_singles();
    let kills = Mutex::new(Kills::default());
    let firsts = first_numbers(plan);
    // It is not known which files a killing test comes to: all, then.
    let everywhere = plan.files.iter().map(|file| file.path.clone()).collect();
    for (count, &index) in singles.iter().enumerate() {
        if limits.over() {
            return Ok(());
        }
        let mutant = &plan.mutants[index];
        let at = plan.describe(mutant);
        eprintln!("mutants: build {} of {} of its own: {at}", count + 1, singles.len());
        let of_file: Vec<u32> = firsts
            .iter()
            .filter(|((file, _), _)| *file == mutant.file)
            .map(|(_, first)| *first)
            .collect();
        let near = |test: &&Test| of_file.is_empty() || of_file.iter().any(|&at| test.reaches(at));
        let near: Vec<&Test> = tests.iter().filter(near).collect();
        tree.write(plan, Some(index))?;
        let found = decide_single(plan, index, &near, &mut groups, (&tree, &kills))?;
        limits.tell(plan, index, &found);
        if limits.decides(&found) {
            results.put(mutant, &found, &everywhere);
            results.save()?;
        }
    }
    Ok(())
}

/// Runs the tests `near` a mutant that the tree has been written with. The group that kills it comes
/// first the next time.
fn decide_single(
    plan: &Plan,
    index: usize,
    near: &[&Test],
    groups: &mut [(String, Vec<String>)],
    (tree, kills): (&Tree, &Mutex<Kills>),
) -> Result<Found, String> {
    let mutant = &plan.mutants[index];
    let file = &plan.files[mutant.file];
    let place = (file.short(), file.sites[mutant.site].function.as_str());
    let mut progress = Progress::default();
    let mut reaching = Vec::new();
    let unbuildable = Found { state: State::DoesNotCompile, by: None, reaching: Vec::new() };
    // What no test comes to is built all the same, since it may be no mutant.
    if near.is_empty() {
        let of_ledger = |name: &str| name.starts_with("ledger/");
        let own = groups.iter().find(|(name, _)| of_ledger(name) == of_ledger(place.0));
        if let Some((_, group)) = own
            && tree.build_single(group)?.is_none()
        {
            return Ok(unbuildable);
        }
    }
    for at in 0..groups.len() {
        let (name, group) = &groups[at];
        if !near.iter().any(|test| test.name.starts_with(name.as_str())) {
            continue;
        }
        let Some(programs) = tree.build_single(group)? else {
            return Ok(unbuildable);
        };
        let own: Vec<Test> = near.iter().filter_map(|test| test.moved(&programs)).collect();
        let mut own: Vec<&Test> = own.iter().collect();
        kills.lock().expect("no thread panics").sort(&mut own, place, None);
        reaching.extend(own.iter().map(|test| test.name.clone()));
        match try_tests(&own, 0, place, kills, (Duration::MAX, progress))? {
            Ok(found) if found.state == State::Killed => {
                groups[..=at].rotate_right(1);
                return Ok(found);
            }
            Ok(found) => {
                let slow = u32::from(found.by.is_some());
                progress = Progress { met: BTreeSet::new(), slow, first_slow: found.by };
            }
            Err(_) => unreachable!("all tests fit into a budget without an end"),
        }
    }
    let state = match &progress.first_slow {
        _ if reaching.is_empty() => State::Unreached,
        Some(_) => State::TimedOut,
        None => State::Survived,
    };
    Ok(Found { state, by: progress.first_slow, reaching })
}
