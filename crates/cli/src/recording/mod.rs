//! The file of a recording: what `lockstead run --record` writes and `lockstead export` reads.

mod format;
mod read;
mod write;

#[cfg(test)]
pub(crate) use format::RecordedTotals;
pub(crate) use format::{
    Chunk, FrameNames, HolderDoing, HolderSample, LockNames, PackedEvent, ProcessFacts,
    ProcessNames, ProcessSamples, RecordedRun, StackFrames, ThreadEvents, ThreadFacts, UNFINISHED,
};
pub(crate) use read::{RecordedProcess, Recording, read};
pub(crate) use write::{EncodedChunk, RecordingFile, Written};

#[cfg(test)]
mod tests {
    use super::format::RecordedTotals;
    use super::*;
    use lockstead_ledger::events::{Event, EventKind};
    use std::io::Write;
    use std::path::Path;

    fn event(began: u64, lasted: u64) -> Event {
        Event {
            kind: EventKind::Wait,
            began,
            lasted,
            how: 1,
            ending: 0,
            lock: 7,
            generation: 1,
            stack: 300,
            thread: 4,
            tid: 0,
        }
    }

    fn run() -> RecordedRun {
        RecordedRun { lockstead: "0".into(), command: vec!["a".into()], began: 5, date: 9 }
    }

    fn facts() -> ProcessFacts {
        ProcessFacts { process: 0, pid: 70, program: "/bin/a".into(), began: 6 }
    }

    /// Writes a recording with three events, of which the file has room for as many as fit.
    fn recorded(file: &Path, limit: u64) -> Written {
        let mut writer = RecordingFile::create(file, limit).expect("a file");
        writer.write(&EncodedChunk::new(&Chunk::Begin(run())));
        writer.write(&EncodedChunk::new(&Chunk::Process(facts())));
        let events = [event(100, 50), event(90, 80), event(400, 1)];
        let mut last = 100;
        let packed = events.iter().map(|event| {
            let (packed, end) = PackedEvent::pack(event, last);
            last = end;
            packed
        });
        let events = packed.collect();
        let events = ThreadEvents { process: 0, thread: 4, from: 100, events };
        writer.write_events(&EncodedChunk::new(&Chunk::Events(events)), 3);
        writer.write(&EncodedChunk::new(&Chunk::Names(ProcessNames::default())));
        writer.finish().expect("written")
    }

    fn refused(bytes: &[u8]) -> String {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(bytes).expect("written");
        read(file.path()).expect_err("refused").to_string()
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("events");
        let written = recorded(&file, 1 << 20);
        assert_eq!(written.totals, RecordedTotals { events: 3, lost: 0, cut: 0 });
        let recording = read(&file).expect("a recording");
        assert_eq!((&recording.run, recording.totals), (&run(), written.totals));
        assert_eq!(recording.processes.len(), 1);
        let process = &recording.processes[0];
        assert_eq!(process.facts, facts());
        assert_eq!(process.events, [event(90, 80), event(100, 50), event(400, 1)], "by beginning");
    }

    #[test]
    fn a_process_that_becomes_another_program_has_ended_when_that_begins() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("events");
        let mut writer = RecordingFile::create(&file, 1 << 20).expect("a file");
        let mut write = |chunk: Chunk| writer.write(&EncodedChunk::new(&chunk));
        write(Chunk::Begin(run()));
        for (process, pid, began) in [(0, 70, 6), (1, 70, 500), (2, 71, 50)] {
            write(Chunk::Process(ProcessFacts { process, pid, began, ..facts() }));
        }
        // The first thread of the second began before the command was told of the process.
        for (process, began) in [(0, 0), (1, 450), (2, 50)] {
            for ending in [0, UNFINISHED] {
                let (packed, _) = PackedEvent::pack(&Event { ending, ..event(100, 900) }, 100);
                let events = vec![packed];
                write(Chunk::Events(ThreadEvents { process, thread: 4, from: 100, events }));
            }
            let threads = [Some(400), Some(800), None].map(|ended| ThreadFacts {
                began,
                ended,
                ..ThreadFacts::default()
            });
            let threads = threads.to_vec();
            let names = ProcessNames { process, ended: 1000, threads, ..ProcessNames::default() };
            write(Chunk::Names(names));
        }
        writer.finish().expect("written");
        let recording = read(&file).expect("a recording");
        let ends = recording.processes.iter().map(|process| {
            let threads: Vec<_> = process.names.threads.iter().map(|thread| thread.ended).collect();
            let of = |ending| process.events.iter().find(|event| event.ending == ending);
            let lasted = [0, UNFINISHED].map(|ending| of(ending).expect("both").lasted);
            (process.names.ended, threads, lasted)
        });
        let whole = || (1000, vec![Some(400), Some(800), None], [900, 900]);
        let cut = (450, vec![Some(400), Some(450), None], [900, 350]);
        assert_eq!(ends.collect::<Vec<_>>(), [cut, whole(), whole()]);
    }

    #[test]
    fn a_file_has_an_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("events");
        let written = recorded(&file, 20);
        assert_eq!(written.totals, RecordedTotals { events: 0, lost: 0, cut: 3 });
        let recording = read(&file).expect("a recording");
        assert!(recording.processes[0].events.is_empty());
    }

    #[test]
    fn what_comes_after_the_end_of_the_room_is_cut_off_even_if_it_would_fit() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("events");
        let mut writer = RecordingFile::create(&file, 100).expect("a file");
        let (packed, _) = PackedEvent::pack(&event(100, 50), 100);
        let chunk = |events: Vec<PackedEvent>| {
            let events = ThreadEvents { process: 0, thread: 4, from: 100, events };
            EncodedChunk::new(&Chunk::Events(events))
        };
        writer.write(&EncodedChunk::new(&Chunk::Begin(run())));
        writer.write(&EncodedChunk::new(&Chunk::Process(facts())));
        // Names of a process that has ended take none of the room.
        let frame = FrameNames { name: "f".repeat(200), file: None, line: None, module: None };
        let names = ProcessNames { frames: vec![frame], ..ProcessNames::default() };
        writer.write(&EncodedChunk::new(&Chunk::Names(names)));
        assert!(writer.write_events(&chunk(vec![packed]), 1));
        assert!(!writer.write_events(&chunk(vec![packed; 50]), 50));
        assert!(!writer.write_events(&chunk(vec![packed]), 1));
        let written = writer.finish().expect("written");
        assert_eq!(written.totals, RecordedTotals { events: 1, lost: 0, cut: 51 });
    }

    #[test]
    fn events_that_no_thread_can_have_left_are_damage() {
        let (packed, _) = PackedEvent::pack(&event(100, 50), 100);
        assert!(packed.unpack(4, 100).is_some());
        let endless = PackedEvent { lasted: Event::LONGEST + 1, ..packed };
        assert_eq!(endless.unpack(4, 100), None);
    }

    #[test]
    fn other_files_are_told_from_recordings() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("events");
        recorded(&file, 1 << 20);
        let whole = std::fs::read(&file).expect("readable");
        for other in [&b""[..], b"{\"schema\": 1}", &whole[..7]] {
            assert!(refused(other).contains("is no recording"), "{}", refused(other));
        }
        let mut newer = whole.clone();
        newer[8] = 9;
        assert!(refused(&newer).contains("version 9"), "{}", refused(&newer));
        // Wherever it is cut, between two chunks or in one.
        for length in 12..whole.len() {
            assert!(refused(&whole[..length]).contains("is cut off"), "at {length}");
        }
        let mut damaged = whole.clone();
        damaged[16] = 200;
        assert!(refused(&damaged).contains("damaged"), "{}", refused(&damaged));
        let longer = [&whole[..], b"more"].concat();
        assert!(refused(&longer).contains("damaged"), "{}", refused(&longer));
    }
}
