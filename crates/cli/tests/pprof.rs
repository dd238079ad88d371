//! `lockstead export --format pprof`: decoded here, by the wire format alone, and read by pprof.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::common::{lockstead, text};
use crate::programs::line;
use crate::record::Recorded;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

/// A field of a message as it lies in the file.
#[derive(Clone, Debug, PartialEq)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Field {
    fn number(&self) -> u64 {
        match self {
            Field::Number(number) => *number,
            Field::Bytes(_) => panic!("no number: {self:?}"),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Field::Bytes(bytes) => bytes,
            Field::Number(_) => panic!("no bytes: {self:?}"),
        }
    }
}

/// A message: its fields by their numbers.
struct Fields(BTreeMap<u64, Vec<Field>>);

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().expect("the number goes on");
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return number;
        }
    }
    panic!("a number of more than 64 bits");
}

impl Fields {
    /// Reads a message in which only these fields may be.
    fn read(mut bytes: &[u8], allowed: std::ops::RangeInclusive<u64>) -> Fields {
        let mut fields: BTreeMap<u64, Vec<Field>> = BTreeMap::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            assert!(allowed.contains(&(key >> 3)), "field {}", key >> 3);
            let field = match key & 7 {
                0 => Field::Number(varint(&mut bytes)),
                2 => {
                    let length = usize::try_from(varint(&mut bytes)).expect("a length");
                    let (field, rest) = bytes.split_at(length);
                    bytes = rest;
                    Field::Bytes(field.to_vec())
                }
                other => panic!("a field of wire type {other}"),
            };
            fields.entry(key >> 3).or_default().push(field);
        }
        Fields(fields)
    }

    fn all(&self, field: u64) -> &[Field] {
        self.0.get(&field).map_or(&[], Vec::as_slice)
    }

    /// Returns the number of a field of which there is one at most.
    fn number(&self, field: u64) -> u64 {
        match self.all(field) {
            [] => 0,
            [one] => one.number(),
            more => panic!("field {field}: {more:?}"),
        }
    }

    /// Returns the numbers of a field, which may lie in one block.
    fn numbers(&self, field: u64) -> Vec<u64> {
        let mut numbers = Vec::new();
        for field in self.all(field) {
            match field {
                Field::Number(number) => numbers.push(*number),
                Field::Bytes(block) => {
                    let mut block = block.as_slice();
                    while !block.is_empty() {
                        numbers.push(varint(&mut block));
                    }
                }
            }
        }
        numbers
    }

    fn messages(&self, field: u64, allowed: std::ops::RangeInclusive<u64>) -> Vec<Fields> {
        self.all(field).iter().map(|field| Fields::read(field.bytes(), allowed.clone())).collect()
    }
}

/// A sample with its names.
#[derive(Debug)]
struct Sample {
    /// Function, file and line of each frame, innermost first.
    frames: Vec<(String, String, u64)>,
    modules: Vec<String>,
    count: u64,
    ns: u64,
    labels: BTreeMap<String, String>,
}

/// A profile that keeps what `profile.proto` demands.
struct Profile {
    samples: Vec<Sample>,
    comments: Vec<String>,
    began: u64,
    lasted: u64,
}

impl Profile {
    fn read(file: &Path) -> Profile {
        let mut bytes = Vec::new();
        let mut file = flate2::read::GzDecoder::new(File::open(file).expect("a file"));
        file.read_to_end(&mut bytes).expect("compressed");
        let profile = Fields::read(&bytes, 1..=15);
        let texts = profile.all(6).iter();
        let texts: Vec<String> =
            texts.map(|text| String::from_utf8(text.bytes().to_vec()).expect("UTF-8")).collect();
        assert_eq!(texts.first().map(String::as_str), Some(""), "the first text is empty");
        let text = |place: u64| texts[usize::try_from(place).expect("a place")].clone();
        let value = |fields: &Fields| (text(fields.number(1)), text(fields.number(2)));
        let types: Vec<_> = profile.messages(1, 1..=2).iter().map(value).collect();
        let [contentions, delay] =
            [("contentions", "count"), ("delay", "nanoseconds")].map(|(a, b)| (a.into(), b.into()));
        assert_eq!(types, [contentions.clone(), delay]);
        let periods: Vec<_> = profile.messages(11, 1..=2).iter().map(value).collect();
        assert_eq!((periods, profile.number(12)), (vec![contentions], 1));
        assert_eq!(text(profile.number(14)), "delay");
        // Numbers of things are 1, 2, 3, …
        let by_id = |field: u64, allowed| -> BTreeMap<u64, Fields> {
            let list = profile.messages(field, allowed);
            let map: BTreeMap<u64, Fields> =
                list.into_iter().map(|fields| (fields.number(1), fields)).collect();
            assert_eq!(map.len(), profile.all(field).len(), "each has a number of its own");
            assert!(!map.contains_key(&0));
            map
        };
        let (mappings, locations, functions) = (by_id(3, 1..=10), by_id(4, 1..=5), by_id(5, 1..=5));
        for mapping in mappings.values() {
            assert_eq!([7, 8, 9, 10].map(|has| mapping.number(has)), [1; 4]);
        }
        let samples = profile.messages(2, 1..=3).into_iter().map(|sample| {
            let ids = sample.numbers(1);
            assert!(!ids.is_empty(), "pprof leaves out what has no frame");
            let frame = |id: &u64| {
                let lines = locations[id].messages(4, 1..=3);
                assert_eq!(lines.len(), 1);
                let function = &functions[&lines[0].number(1)];
                (text(function.number(2)), text(function.number(4)), lines[0].number(2))
            };
            let module =
                |id: &u64| mappings.get(&locations[id].number(2)).map(|m| text(m.number(5)));
            let labels = sample
                .messages(3, 1..=4)
                .into_iter()
                .map(|label| (text(label.number(1)), text(label.number(2))));
            let values = sample.numbers(2);
            assert_eq!(values.len(), types.len());
            Sample {
                frames: ids.iter().map(frame).collect(),
                modules: ids.iter().filter_map(module).collect(),
                count: values[0],
                ns: values[1],
                labels: labels.collect(),
            }
        });
        Profile {
            samples: samples.collect(),
            comments: profile.numbers(13).into_iter().map(text).collect(),
            began: profile.number(9),
            lasted: profile.number(10),
        }
    }

    fn of<'p>(&'p self, lock: &'p str) -> impl Iterator<Item = &'p Sample> {
        self.samples.iter().filter(move |sample| sample.labels["lock"] == lock)
    }

    fn sums(&self, lock: &str) -> (u64, u64) {
        self.of(lock).fold((0, 0), |sum, sample| (sum.0 + sample.count, sum.1 + sample.ns))
    }
}

fn exported(recorded: &Recorded, flags: &[&str]) -> PathBuf {
    let file = recorded.folder.path().join("waits.pb.gz");
    let said = recorded.export(&[&["--format", "pprof", "-o", text(&file)], flags].concat());
    assert_eq!(said.stdout, "");
    file
}

#[test]
fn a_profile_has_the_waits_of_the_report() {
    let Some(recorded) = Recorded::new(&[], &[]) else { return };
    assert_eq!(recorded.said()[1..], [0, 0]);
    let reported = |name: &str| {
        let wait = &recorded.lock(name)["wait"];
        ["count", "total_ns"].map(|field| wait[field].as_u64().expect("a number")).into()
    };
    let waiter = Profile::read(&exported(&recorded, &[]));
    assert_eq!(waiter.sums("wanted"), reported("wanted"));
    assert_eq!(waiter.sums("ready"), (0, 0), "no lock is waited for there");
    let place = ("enter".to_owned(), line("recorded.c", "waits"));
    for sample in waiter.of("wanted") {
        let (function, file, line) = &sample.frames[0];
        let name = Path::new(file).file_name().expect("a file").to_string_lossy();
        assert_eq!((function.clone(), format!("{name}:{line}")), place);
        assert_eq!(sample.modules.first().map(|m| m.ends_with("recorded")), Some(true));
        let known = ["lock_kind", "process", "thread"].map(|key| sample.labels[key].as_str());
        assert_eq!(known, ["mutex", "recorded", "waiter"]);
        let pid = recorded.report["processes"][0]["pid"].to_string();
        assert_eq!(sample.labels["pid"], pid);
        assert!(sample.labels["tid"].parse::<u32>().is_ok_and(|tid| tid != 0));
    }
    let threads = waiter.of("wanted").map(|sample| &sample.labels["tid"]);
    let threads: std::collections::BTreeSet<_> = threads.collect();
    assert_eq!(threads.len(), 3, "each thread has a sample of its own");
    let holder = Profile::read(&exported(&recorded, &["--by", "holder"]));
    assert_eq!(holder.sums("wanted"), reported("wanted"));
    let most = &holder.samples[0];
    assert_eq!((&*most.frames[0].0, &*most.labels["thread"]), ("hold", "recorded"), "{most:?}");
    let idle = Profile::read(&exported(&recorded, &["--idle"]));
    for name in ["wanted", "ready", "units", "meeting"] {
        assert_eq!(idle.sums(name), reported(name), "{name}");
    }
    // And what there is to say of the whole.
    let longest = waiter.samples.iter().map(|sample| sample.ns).max().expect("a sample");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let ended = Duration::from_nanos(waiter.began + waiter.lasted);
    assert!(longest <= waiter.lasted && ended <= now, "{longest} {} {now:?}", waiter.lasted);
    assert!(waiter.began > 1_600_000_000_000_000_000, "{}", waiter.began);
    let said = waiter.comments.join("\n");
    assert!(said.contains("those of threads that waited; waits for locks count"), "{said}");
    assert!(said.contains("no event was lost"), "{said}");
    let said = holder.comments.join("\n");
    assert!(said.contains("those of threads that held the lock meanwhile"), "{said}");
}

#[test]
fn a_profile_says_what_is_missing() {
    let Some(recorded) = Recorded::new(&["--record-limit", "64K"], &["storm", "20000"]) else {
        return;
    };
    let [_, lost, cut] = recorded.said();
    let said = Profile::read(&exported(&recorded, &[])).comments.join("\n");
    let words = match lost + cut {
        0 => "no event was lost".into(),
        sum => format!("{sum} events are missing: {lost} were lost, {cut} had no room in the file"),
    };
    assert!(said.contains(&words), "{said}");
}

/// Returns what pprof says of a profile; `None`, with a message, without Go.
fn shown(flags: &[&str], file: &Path) -> Option<String> {
    let mut command = Command::new("go");
    command.args(["tool", "pprof"]).args(flags).arg(file);
    // It fetches nothing, and looks for no binaries.
    command.env("GOPROXY", "off").env("GOTOOLCHAIN", "local").env("PPROF_BINARY_PATH", "/nowhere");
    let Ok(output) = command.output() else {
        eprintln!("skipped: there is no go");
        return None;
    };
    let [said, wrong] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    if !output.status.success() && wrong.contains("no such tool") {
        eprintln!("skipped: this go has no pprof: {wrong}");
        return None;
    }
    assert!(output.status.success(), "{wrong}");
    Some(said)
}

#[test]
fn pprof_reads_it() {
    let Some(recorded) = Recorded::new(&[], &[]) else { return };
    let file = exported(&recorded, &[]);
    let Some(top) = shown(&["-top", "-sample_index=delay", "-unit=ns"], &file) else { return };
    let total = recorded.lock("wanted")["wait"]["total_ns"].as_u64().expect("a time");
    let other = recorded.report["processes"][0]["locks"].as_array().expect("locks").iter();
    let all: u64 = other.map(|lock| lock["wait"]["total_ns"].as_u64().expect("a time")).sum();
    assert!(top.contains("Type: delay"), "{top}");
    assert!(top.contains(&format!("{all}ns total")), "{all}: {top}");
    let enter = top.lines().find(|line| line.ends_with(" enter")).unwrap_or_default();
    assert!(enter.trim_start().starts_with(&format!("{total}ns ")), "{total}: {top}");
    let Some(tags) = shown(&["-tags", "-sample_index=contentions"], &file) else { return };
    for words in ["lock: Total", "lock_kind: Total", "process: Total", "thread: Total"] {
        assert!(tags.contains(words), "{words}: {tags}");
    }
    assert!(tags.lines().any(|line| line.trim_end().ends_with(": wanted")), "{tags}");
    let Some(raw) = shown(&["-comments"], &file) else { return };
    assert!(raw.contains("no event was lost"), "{raw}");
    // By default the delay is shown, of which the least shares are left out.
    let Some(top) = shown(&["-top"], &file) else { return };
    assert!(top.contains("Type: delay"), "{top}");
}

#[test]
fn a_terminal_gets_no_profile() {
    let Some(recorded) = Recorded::new(&[], &[]) else { return };
    let file = recorded.file();
    let arguments = ["export", text(&file), "--format", "pprof"];
    let (mut master, mut slave) = (0, 0);
    let none = std::ptr::null_mut();
    // SAFETY: both numbers are written to places of this frame; of the rest none is given.
    let opened = unsafe { libc::openpty(&mut master, &mut slave, none, none.cast(), none.cast()) };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: both were just opened and belong to nobody else.
    let [_master, slave] = unsafe { [master, slave].map(|end| OwnedFd::from_raw_fd(end)) };
    let refused = lockstead(&arguments).stdout(Stdio::from(slave)).output().expect("it starts");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("-o FILE"), "{said}");
    // A pipe gets what a file gets.
    let piped = lockstead(&arguments).output().expect("it starts");
    let exported = std::fs::read(exported(&recorded, &[])).expect("a file");
    assert!(piped.status.success() && piped.stdout == exported);
}
