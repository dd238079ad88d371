//! Slots that have seen as many deaths as a generation counts.

use crate::support::{Watchdog, eventually};
use lockstead::shared::{JoinError, Locked, Segment, SegmentOptions, SharedMutex, raw};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Barrier;
use std::thread;

/// The last generation of a slot.
const LAST: u64 = (1 << 14) - 1;

type Locks = [SharedMutex<u64>; 3];

/// Returns a segment with one slot, which has seen so many deaths.
fn with_deaths(deaths: u64) -> Segment<Locks> {
    let options = SegmentOptions::new().participants(1);
    let segment = Segment::<Locks>::memfd("worn", &options).expect("a segment");
    write(&segment, deaths << 32);
    segment
}

/// Writes over the slot's life word.
fn write(segment: &Segment<Locks>, life: u64) {
    let file = std::fs::File::from(segment.as_fd().try_clone_to_owned().expect("a descriptor"));
    let record = segment.header().slots_at + 128;
    file.write_all_at(&life.to_ne_bytes(), record).expect("the life word");
}

/// Reads the slot's life word.
fn read(segment: &Segment<Locks>) -> u64 {
    let file = std::fs::File::from(segment.as_fd().try_clone_to_owned().expect("a descriptor"));
    let mut life = [0; 8];
    file.read_exact_at(&mut life, segment.header().slots_at + 128).expect("the life word");
    u64::from_ne_bytes(life)
}

fn die_with(locks: &[SharedMutex<u64>]) {
    thread::scope(|s| {
        s.spawn(|| {
            for lock in locks {
                core::mem::forget(lock.lock().unwrap());
            }
        });
    });
}

#[test]
fn a_slot_that_is_worn_out_begins_anew_and_the_dead_are_told_of() {
    let _watchdog = Watchdog::new("a_slot_that_is_worn_out_begins_anew_and_the_dead_are_told_of");
    for by_itself in [true, false] {
        let segment = with_deaths(LAST);
        let locks = segment.root();
        die_with(&locks[..2]);
        let dead: u64 = LAST << 32 | 0xc000_0000;
        eventually(|| read(&segment) & !(0x3_ffff << 46) == dead);
        if !by_itself {
            assert_eq!(segment.scrub(), 1);
        }
        // A lock operation scrubs as well as `participate` does.
        for lock in &locks[..2] {
            let locked = lock.lock().expect("a slot");
            assert!(matches!(locked, Locked::OwnerDied(_)));
            drop(locked.recover(|_| ()).expect("repaired"));
        }
        assert!(matches!(locks[2].lock().unwrap(), Locked::Acquired(_)));
        assert_eq!(segment.scrub(), 0, "somebody sits there");
    }
}

/// Erases those names: a dead participant of generation 0 would have to be taken for a living one.
#[test]
fn no_name_of_an_earlier_life_is_left() {
    let _watchdog = Watchdog::new("no_name_of_an_earlier_life_is_left");
    let segment = with_deaths(LAST);
    let file = std::fs::File::from(segment.as_fd().try_clone_to_owned().expect("a descriptor"));
    let word = |at: u64, word: u32| {
        file.write_all_at(&word.to_ne_bytes(), segment.header().root + at).expect("a word");
    };
    write(&segment, LAST << 32 | 0xc000_0000);
    word(0, 1 | 1 << 31);
    word(4, 1);
    word(16, 1 | 1 << 28);
    word(32, 1 | 1 << 29);
    word(36, 1);
    segment.participate().expect("it scrubs");
    let told = segment.root().each_ref().map(|lock| {
        let locked = lock.lock().expect("a slot");
        let told = locked.is_inconsistent();
        drop(locked.recover(|_| ()));
        told
    });
    assert_eq!(told, [true, false, true]);
}

#[test]
fn what_is_left_without_a_death_does_not_wear_out() {
    let _watchdog = Watchdog::new("what_is_left_without_a_death_does_not_wear_out");
    let segment = with_deaths(LAST);
    for _ in 0..3 {
        thread::scope(|s| {
            s.spawn(|| drop(segment.root()[0].lock().unwrap())).join().unwrap();
        });
        assert_eq!(segment.scrub(), 0);
    }
    assert!(matches!(segment.root()[0].lock().unwrap(), Locked::Acquired(_)));
}

/// Returns a life word that says that this process scrubs.
fn scrubbed_by(process: u64) -> u64 {
    LAST << 32 | process << 46 | 0xbfff_ffff
}

#[test]
fn who_comes_while_somebody_scrubs_waits_for_that() {
    let _watchdog = Watchdog::new("who_comes_while_somebody_scrubs_waits_for_that");
    let segment = with_deaths(0);
    let number = thread::scope(|s| {
        let joins = || {
            segment.participate().expect("a slot");
            read(&segment) >> 46
        };
        s.spawn(joins).join().expect("it ends")
    });
    eventually(|| read(&segment) >> 46 == 0);
    write(&segment, scrubbed_by(number));
    thread::scope(|s| {
        let came = s.spawn(|| segment.participate());
        // Who asks about it finds a process that lives, and no thread to ask about.
        assert!(!came.is_finished(), "nobody is done yet");
        assert_eq!(segment.scrub(), 0, "somebody does");
        assert_eq!(read(&segment), scrubbed_by(number));
        write(&segment, 0);
        assert_eq!(came.join().expect("it ends"), Ok(()));
    });
}

/// Gets the lock, however long the scrubbing takes: who has died there has died.
#[test]
fn a_dead_owners_lock_is_got_while_somebody_scrubs_its_slot() {
    let _watchdog = Watchdog::new("a_dead_owners_lock_is_got_while_somebody_scrubs_its_slot");
    let options = SegmentOptions::new().participants(2);
    let segment = Segment::<[SharedMutex<u64>; 1]>::memfd("scrubbed", &options).expect("one");
    let file = std::fs::File::from(segment.as_fd().try_clone_to_owned().expect("a descriptor"));
    let life = |slot: u64| segment.header().slots_at + 128 * slot;
    // This process, which goes on, scrubs the first slot; and lives in the second one.
    write_at(&file, life(1), &scrubbed_by(1).to_ne_bytes());
    let name = (LAST as u32) << 14 | 1;
    write_at(&file, segment.header().root, &name.to_ne_bytes());
    let got = segment.root()[0].lock_timeout(std::time::Duration::from_secs(30));
    assert!(matches!(got.expect("in time"), Locked::OwnerDied(_)));
}

fn write_at(file: &std::fs::File, at: u64, bytes: &[u8]) {
    file.write_all_at(bytes, at).expect("written");
}

#[test]
fn a_slot_whose_scrubber_has_ended_is_scrubbed_by_the_next_one() {
    let _watchdog = Watchdog::new("a_slot_whose_scrubber_has_ended_is_scrubbed_by_the_next_one");
    let segment = with_deaths(0);
    write(&segment, scrubbed_by(77));
    assert_eq!(segment.participate(), Ok(()));
    assert_eq!(read(&segment) >> 32 & LAST, 0, "it began anew");
}

/// Refuses to scrub: where the directory does not say where locks are, no name can be erased.
#[test]
fn where_locks_may_be_unknown_what_is_worn_out_stays_so() {
    let _watchdog = Watchdog::new("where_locks_may_be_unknown_what_is_worn_out_stays_so");
    let form = raw::Form::unknown(64);
    let options = SegmentOptions::new().participants(1);
    let segment = raw::RawSegment::memfd("worn", &options, &form, |_| ()).expect("a segment");
    let file = std::fs::File::from(segment.as_fd().try_clone_to_owned().expect("a descriptor"));
    let life: u64 = LAST << 32 | 0xc000_0000;
    file.write_all_at(&life.to_ne_bytes(), segment.header().slots_at + 128).expect("a word");
    assert_eq!(segment.participate(), Err(JoinError::WornOut));
    assert_eq!(segment.scrub(), 0);
}

/// Many that find all slots worn out scrub at once: none erases the name of one that has
/// come to a slot since.
#[test]
fn a_scrub_takes_no_lock_from_who_came_after_another_one() {
    let _watchdog = Watchdog::new("a_scrub_takes_no_lock_from_who_came_after_another_one");
    let options = SegmentOptions::new().participants(2);
    let segment = Segment::<[SharedMutex<u64>; 20_000]>::memfd("worn", &options).expect("one");
    let file = std::fs::File::from(segment.as_fd().try_clone_to_owned().expect("a descriptor"));
    let last = &segment.root()[19_999];
    for _ in 0..100 {
        for slot in 1..3 {
            let life: u64 = LAST << 32 | 0xc000_0000;
            let at = segment.header().slots_at + 128 * slot;
            file.write_all_at(&life.to_ne_bytes(), at).expect("the life word");
        }
        let (start, got) = (Barrier::new(2), Barrier::new(2));
        let had = thread::scope(|s| {
            let one = || {
                start.wait();
                let came = segment.participate();
                let locked = last.try_lock();
                got.wait();
                came.expect("slots were made usable");
                matches!(locked, Ok(Locked::Acquired(_)))
            };
            [s.spawn(one), s.spawn(one)].map(|thread| thread.join().expect("it ends"))
        });
        assert_ne!(had[0], had[1], "one has it");
        eventually(|| segment.scrub() == 0);
    }
}
