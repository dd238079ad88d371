//! Classes of tasks from the kinds of threads of a report: who gives what others wait for.
//!
//! # Role
//! Threads that began with one function are a class. A condition or a semaphore that one class
//! waits for and another gives is a queue between the two: each job of the one needs one of the
//! other's, so that consumers never make more than producers offer. A barrier is one. What does not
//! fit is named, and there is no prediction.
//!
//! # The way it is done
//! All the work of a class is divided by the number of its jobs, which is that of the signals or
//! posts that it waited for or gave: 1000 items by 1000 signals make jobs of one item. Who waits for
//! fewer signals than it gives, by half and more, gives a batch and waits until all of it is done.

use super::profile::{MOST, TokensOf, is_lock};
use super::recorded::{ProfileKind, ProfileProcess, ProfileRole, RecordedLock};
use lockstead_sim::{ClassUse, UseKind, WorkClass, WorkStep, WorkTokens, WorkUse};
use std::collections::HashMap;

/// A kind of threads has a part in something if it has this share of it.
const PART: f64 = 0.05;
/// Threads that ran for less than this share of all, and are waited for by nobody, are left out.
const IDLE: f64 = 0.01;
/// Kinds that the command has seen run for less than this share of the processor time ended too
/// soon.
const SEEN: f64 = 0.6;
/// A condition is signalled for a batch, and another one for each item, if it is signalled less often
/// than this share.
const BATCH: f64 = 0.5;
/// A class that waits for so large a share of all signals waits with each item.
const EACH: f64 = 0.8;
/// The room of a queue at least, where nothing says that it is one; chosen.
const ROOM: u32 = 8;
/// The room of a queue whose producers never wait; chosen.
const UNBOUNDED: u32 = 64;
/// Time away of less than this share of a class's life is the inexactness of its parts.
const AWAY: f64 = 0.05;

/// The classes of a program.
pub(super) struct Classes {
    pub(super) locks: Vec<WorkUse>,
    pub(super) tokens: Vec<WorkTokens>,
    pub(super) classes: Vec<WorkClass>,
    /// The jobs of the class that counts, in the whole run.
    pub(super) jobs: f64,
    /// How long that class ran, in seconds.
    pub(super) seconds: f64,
    /// What a job is.
    pub(super) job: String,
    /// The objects that are represented as queues, semaphores and barriers, with who gives and who
    /// takes.
    pub(super) represented: Vec<TokensOf>,
    /// Why the program cannot be predicted, if so.
    pub(super) not_predictable: Option<String>,
}

/// Something that one class gives and another waits for.
struct Edge {
    name: String,
    giver: usize,
    taker: usize,
    given: f64,
    waits: f64,
    waited: f64,
}

/// One kind of threads, while it is put together.
struct Kind<'a> {
    of: &'a ProfileKind,
    ran: f64,
    queued: f64,
    /// Waits that the simulation has itself.
    coupled: f64,
    uses: Vec<ClassUse>,
    held: f64,
    acquisitions: f64,
    jobs: f64,
}

/// Returns the classes; `None` if the report does not tell of them, as those of before did not.
pub(super) fn of(process: &ProfileProcess) -> Option<Classes> {
    let locks = locks_of(process);
    if process.threads.kinds.is_empty()
        || process.locks.iter().chain(&process.idle).all(|object| object.roles.is_empty())
    {
        return None;
    }
    let mut why = None;
    let mut kinds = times(process, &mut why);
    let names = apart(locks.iter().map(|lock| lock.name.as_str()));
    for (lock, name) in locks.iter().zip(&names) {
        add_uses(&mut kinds, lock, name);
    }
    let (edges, barriers) = couple(process, &mut kinds, &mut why);
    let items = edges.iter().map(|edge| edge.given).fold(0.0, f64::max);
    for (at, kind) in kinds.iter_mut().enumerate() {
        kind.jobs = jobs_of(at, kind, &edges, &barriers, items);
    }
    let all: f64 = kinds.iter().map(|kind| kind.ran).sum();
    let is_coupled = |at: usize| {
        edges.iter().any(|edge| edge.giver == at || edge.taker == at)
            || barriers.iter().any(|(_, members)| members.iter().any(|&(of, _)| of == at))
    };
    let used = |at: usize| kinds[at].ran >= IDLE * all || is_coupled(at);
    let counted = (0..kinds.len()).filter(|&at| used(at)).max_by(|&a, &b| {
        let rank = |at: usize| {
            let full = if items > 0.0 { kinds[at].jobs / items } else { kinds[at].acquisitions };
            (is_coupled(at), full.min(1e18), kinds[at].ran)
        };
        let (a, b) = (rank(a), rank(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2))
    })?;
    let (tokens, takes, gives) = queues(&edges, &kinds, items);
    let mut tokens: Vec<WorkTokens> = tokens;
    tokens.extend(barriers.iter().map(|(name, _)| WorkTokens {
        name: name.clone(),
        start: 0,
        barrier: true,
    }));
    let classes = (0..kinds.len()).filter(|&at| used(at)).map(|at| {
        let kind = &kinds[at];
        let per_job = |ns: f64| ns / kind.jobs / 1e3;
        let busy = kind.ran + kind.queued + kind.of.waited_ns as f64 + kind.coupled;
        let away = kind.of.lived_ns as f64 - busy;
        let away = if away < AWAY * kind.of.lived_ns as f64 { 0.0 } else { away };
        let steps = |all: &[(usize, WorkStep)]| {
            all.iter().filter(|(of, _)| *of == at).map(|(_, step)| step.clone()).collect()
        };
        let meets = barriers.iter().filter(|(_, m)| m.iter().any(|&(of, _)| of == at));
        WorkClass {
            name: name(kind.of.start.as_deref()),
            tasks: kind.of.peak.max(1) as usize,
            counts: at == counted,
            compute: per_job((kind.ran - kind.held).max(0.0)).max(0.001),
            away: per_job(away),
            takes: steps(&takes),
            gives: steps(&gives),
            meets: meets.map(|(name, _)| name.clone()).collect(),
            uses: kind
                .uses
                .iter()
                .map(|used| ClassUse { burst: used.burst / kind.jobs, ..used.clone() })
                .collect(),
        }
    });
    let counting = &kinds[counted];
    let represented = edges
        .iter()
        .map(|edge| TokensOf {
            name: edge.name.clone(),
            gives: name(kinds[edge.giver].of.start.as_deref()),
            takes: name(kinds[edge.taker].of.start.as_deref()),
        })
        .collect();
    Some(Classes {
        locks: locks.iter().zip(&names).map(|(lock, name)| work_use(lock, name)).collect(),
        tokens,
        classes: classes.collect(),
        jobs: counting.jobs,
        seconds: counting.of.lived_ns as f64 / counting.of.peak.max(1) as f64 / 1e9,
        job: job_words(counting, is_coupled(counted)),
        represented,
        not_predictable: why,
    })
}

fn job_words(kind: &Kind<'_>, is_coupled: bool) -> String {
    let name = name(kind.of.start.as_deref());
    if is_coupled {
        return format!("one turn of `{name}`: what it gives or waits for, once");
    }
    let busiest = kind.uses.iter().max_by(|a, b| a.burst.total_cmp(&b.burst));
    match busiest {
        Some(used) => format!("one acquisition of `{}` by `{name}`", used.lock),
        None => format!("a millisecond of `{name}`"),
    }
}

/// Returns the names, those that are not the first of their kind with a number: classes find what
/// they use by name.
fn apart<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen: HashMap<&str, u32> = HashMap::new();
    let number = |name: &'a str| {
        let before = seen.entry(name).or_insert(0);
        *before += 1;
        if *before == 1 { name.to_owned() } else { format!("{name} ({before})") }
    };
    names.map(number).collect()
}

fn name(start: Option<&str>) -> String {
    start.unwrap_or("other threads").to_owned()
}

/// Returns the locks to simulate: rows, as a report lists them.
fn locks_of(process: &ProfileProcess) -> Vec<&RecordedLock> {
    let alone = process.locks.iter().filter(|lock| lock.group.is_none());
    let as_lock = process.idle.iter().filter(|object| serves_as_lock(object));
    let mut all: Vec<&RecordedLock> = process
        .groups
        .iter()
        .chain(alone)
        .filter(|lock| is_lock(&lock.kind) || lock.kind == "condition")
        .chain(as_lock)
        .filter(|lock| lock.acquisitions > 0 && lock.hold.count > 0)
        .collect();
    all.sort_by_key(|lock| std::cmp::Reverse((lock.wait.total_ns, lock.hold.total_ns)));
    all.truncate(MOST);
    all
}

/// Tells whether a semaphore is held: then who takes it gives it back.
fn serves_as_lock(object: &RecordedLock) -> bool {
    object.kind == "semaphore" && object.hold.count > object.acquisitions / 2
}

fn work_use(lock: &RecordedLock, name: &str) -> WorkUse {
    WorkUse {
        name: name.to_owned(),
        kind: if lock.kind == "rwlock" { UseKind::Shared } else { UseKind::Mutex },
        many: lock.locks.clamp(1, 64) as usize,
        burst: 1.0,
        section: lock.hold.mean() / 1e3,
        gap: 0.0,
        lines: 1,
        writes: 0.0,
        write_section: None,
    }
}

/// Returns the kinds of threads with their processor time, which is that of the process as far as
/// they were seen to have it.
fn times<'a>(process: &'a ProfileProcess, why: &mut Option<String>) -> Vec<Kind<'a>> {
    let kinds = &process.threads.kinds;
    let seen: f64 = kinds.iter().filter_map(|kind| kind.ran_ns).sum::<u64>() as f64;
    let busy = |kind: &ProfileKind| {
        kind.lived_ns.saturating_sub(kind.waited_ns.saturating_add(kind.idled_ns)) as f64
    };
    let all = process.waiting.ran_ns.map_or(seen, |ran| ran as f64);
    if seen < SEEN * all {
        *why = Some(format!(
            "its threads were seen to run for {:.0} % of its processor time only: they end too soon, \
             or it does; let it run for two seconds and more",
            100.0 * seen / all.max(1.0)
        ));
    }
    let factor = if seen > 0.0 { all / seen } else { 1.0 };
    let kind = |of: &'a ProfileKind| Kind {
        of,
        ran: of.ran_ns.map_or_else(|| busy(of), |ran| ran as f64 * factor).min(busy(of)),
        queued: of.queued_ns.map_or(0.0, |queued| queued as f64 * factor),
        coupled: 0.0,
        uses: Vec::new(),
        held: 0.0,
        acquisitions: 0.0,
        jobs: 1.0,
    };
    kinds.iter().map(kind).collect()
}

fn place(kinds: &[Kind<'_>], start: Option<&String>) -> Option<usize> {
    kinds.iter().position(|kind| kind.of.start.as_ref() == start)
}

fn add_uses(kinds: &mut [Kind<'_>], lock: &RecordedLock, name: &str) {
    let holds = |role: &ProfileRole| (role.holds + role.shared_holds) as f64;
    let all: f64 = lock.roles.iter().map(holds).sum();
    if all == 0.0 {
        return;
    }
    // Without those that lost their processor.
    let mean = lock.hold.total_ns as f64 / lock.hold.count.max(1) as f64;
    let usual = if mean > 0.0 { lock.hold.mean() / mean } else { 1.0 };
    for role in lock.roles.iter().filter(|role| holds(role) > 0.0) {
        let Some(at) = place(kinds, role.start.as_ref()) else { continue };
        let taken = lock.acquisitions as f64 * holds(role) / all;
        let section = |ns: u64, many: u64| ns as f64 / many.max(1) as f64 * usual / 1e3;
        let (own, shared) =
            (section(role.held_ns, role.holds), section(role.shared_ns, role.shared_holds));
        let writes = role.holds as f64 / holds(role);
        let is_shared = lock.kind == "rwlock";
        let kind = &mut kinds[at];
        kind.held += taken * (writes * own + (1.0 - writes) * shared) * 1e3;
        kind.acquisitions = kind.acquisitions.max(taken);
        kind.uses.push(ClassUse {
            lock: name.to_owned(),
            burst: taken,
            section: if is_shared && role.shared_holds > 0 { shared } else { own },
            write_section: is_shared.then_some(own),
            writes: if is_shared { writes } else { 0.0 },
        });
    }
}

/// The members of a barrier, each with how often it came.
type Barrier = (String, Vec<(usize, f64)>);

/// Finds who gives what others wait for.
fn couple(
    process: &ProfileProcess,
    kinds: &mut [Kind<'_>],
    why: &mut Option<String>,
) -> (Vec<Edge>, Vec<Barrier>) {
    let (mut edges, mut barriers) = (Vec::new(), Vec::new());
    let objects: Vec<&RecordedLock> =
        process.idle.iter().filter(|object| !serves_as_lock(object)).collect();
    let names = apart(objects.iter().map(|object| object.name.as_str()));
    for (object, name) in objects.into_iter().zip(names) {
        let part = |of: fn(&ProfileRole) -> u64| -> Vec<usize> {
            let all: u64 = object.roles.iter().map(of).sum();
            let has = |role: &&ProfileRole| of(role) as f64 > PART * all as f64;
            let found = object.roles.iter().filter(has);
            found.filter_map(|role| place(kinds, role.start.as_ref())).collect()
        };
        let (takers, givers) = (part(|role| role.waits), part(|role| role.gives));
        let places: Vec<Option<usize>> =
            object.roles.iter().map(|role| place(kinds, role.start.as_ref())).collect();
        let waits = |at: usize, of: fn(&ProfileRole) -> u64| -> f64 {
            let all = places.iter().zip(&object.roles);
            all.filter(|(found, _)| **found == Some(at)).map(|(_, role)| of(role)).sum::<u64>()
                as f64
        };
        let given: u64 = object.roles.iter().map(|role| role.gives).sum();
        if object.kind == "barrier" {
            let members = takers.iter().map(|&at| (at, waits(at, |role| role.waits)));
            let members: Vec<(usize, f64)> = members.collect();
            for &(at, _) in &members {
                kinds[at].coupled += waits(at, |role| role.waited_ns);
            }
            barriers.push((name, members));
            continue;
        }
        // Nobody gives it, or deadlines end more waits than anybody does: time away.
        if given == 0 || object.timed_out > given || takers.is_empty() {
            continue;
        }
        let share = object.wait.total_ns as f64 / process.waiting.thread_ns.max(1) as f64 * 100.0;
        let (&[giver], &[taker]) = (&givers[..], &takers[..]) else {
            refuse(why, object, share, "several kinds of threads give it, or wait for it");
            continue;
        };
        if giver == taker {
            refuse(why, object, share, "threads that began with one function wait for each other");
            continue;
        }
        kinds[taker].coupled += waits(taker, |role| role.waited_ns);
        edges.push(Edge {
            name,
            giver,
            taker,
            given: given as f64,
            waits: waits(taker, |role| role.waits),
            waited: waits(taker, |role| role.waited_ns),
        });
    }
    (edges, barriers)
}

/// A wait for others that has a larger share of the threads' time than this, in per cent, has to be
/// represented.
const MATTERS: f64 = 5.0;

fn refuse(why: &mut Option<String>, object: &RecordedLock, share: f64, words: &str) {
    if share > MATTERS && why.is_none() {
        let RecordedLock { kind, name, .. } = object;
        *why = Some(format!("{words}: {kind} `{name}` ({share:.1} % of the threads' time)"));
    }
}

/// Returns how many jobs a kind did; `items`: how many the busiest queue passed on.
fn jobs_of(at: usize, kind: &Kind<'_>, edges: &[Edge], barriers: &[Barrier], items: f64) -> f64 {
    let mine = |edge: &&Edge| edge.giver == at || edge.taker == at;
    if edges.iter().any(|edge| mine(&edge)) {
        let taken = edges.iter().filter(|edge| edge.taker == at).map(|edge| edge.given);
        let fewest = taken.fold(items, f64::min);
        return if fewest < BATCH * items { fewest.max(1.0) } else { items };
    }
    let met = barriers.iter().flat_map(|(_, members)| members).filter(|&&(of, _)| of == at);
    let met = met.map(|&(_, waits)| waits).fold(0.0, f64::max);
    if met > 0.0 {
        return met;
    }
    if kind.acquisitions > 0.0 { kind.acquisitions } else { (kind.ran / 1e6).max(1.0) }
}

type Steps = Vec<(usize, WorkStep)>;

/// Makes tokens of the queues, and says who takes and gives how many with each job.
fn queues(edges: &[Edge], kinds: &[Kind<'_>], items: f64) -> (Vec<WorkTokens>, Steps, Steps) {
    let (mut tokens, mut takes, mut gives) = (Vec::new(), Vec::new(), Vec::new());
    let many = |at: usize| (items / kinds[at].jobs).round().max(1.0) as u32;
    let step = |of: &str, many: u32| WorkStep { of: of.to_owned(), many };
    for (number, edge) in edges.iter().enumerate() {
        let (giving, taking) = (many(edge.giver), many(edge.taker));
        let back = |other: &&Edge| other.giver == edge.taker && other.taker == edge.giver;
        let returned = edges.iter().find(back);
        // Of two that go round the tokens are with the one that has to wait less.
        let holds = returned.is_some_and(|other| {
            let batch = (many(edge.taker), many(other.taker));
            let less = edge.waited < other.waited
                || edge.waited == other.waited && number > place_of(edges, other);
            if batch.0 == batch.1 { less } else { batch.0 > batch.1 }
        });
        let lockstep = returned.is_some_and(|other| {
            edge.waits > EACH * edge.given && other.waits > EACH * other.given
        });
        let tasks = kinds[edge.taker].of.peak.max(1) as u32;
        let room = match (taking, lockstep) {
            (2.., _) => taking * tasks,
            (_, true) => tasks,
            _ => ((edge.given / edge.waits.max(1.0)).round() as u32).clamp(ROOM, UNBOUNDED),
        };
        tokens.push(WorkTokens {
            name: edge.name.clone(),
            start: if holds { room } else { 0 },
            barrier: false,
        });
        takes.push((edge.taker, step(&edge.name, taking)));
        gives.push((edge.giver, step(&edge.name, giving)));
        if returned.is_none() {
            let room = format!("room of {}", edge.name);
            let start = UNBOUNDED.max(2 * giving.max(taking));
            tokens.push(WorkTokens { name: room.clone(), start, barrier: false });
            takes.push((edge.giver, step(&room, giving)));
            gives.push((edge.taker, step(&room, taking)));
        }
    }
    (tokens, takes, gives)
}

fn place_of(edges: &[Edge], edge: &Edge) -> usize {
    edges.iter().position(|other| std::ptr::eq(other, edge)).unwrap_or(0)
}
