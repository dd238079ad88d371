//! Stores that refuse late owners by their tokens: a file, an object store with conditional writes, PostgreSQL.
//! The owner's lease ends, the next one writes, and then the old one does. Where etcd is not installed, skipped.

mod postgres;
#[path = "../../examples/fenced_file/store.rs"]
mod store;

use lockstead_cluster::member::{self, Members};
use lockstead_cluster::{ClusterError, LostBy, Mutex, MutexGuard, Session, SessionOptions};
use std::fs;
use std::sync::{Mutex as StdMutex, PoisonError};
use std::thread;
use store::Written;

/// Returns two owners of one lock, the first of which has lost its lease and does not look.
fn late_and_present(members: &Members) -> (MutexGuard, MutexGuard) {
    let open = || {
        let client = members.options();
        Session::open(SessionOptions { client, ..SessionOptions::default() }).expect("a session")
    };
    let session = open();
    let late = Mutex::new(&session, "m").lock().expect("acquired").acquired().expect("nobody died");
    session.close().expect("closed");
    let next = Mutex::new(&open(), "m").lock().expect("acquired");
    assert!(next.is_inconsistent());
    let next = next.recover(|_| ()).expect("consistent");
    assert!(late.token() < next.token());
    assert_eq!(late.check().err(), Some(ClusterError::Lost(LostBy::Closed)));
    (late, next)
}

fn members() -> Option<Members> {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return None;
    }
    Some(Members::start(1).expect("etcd starts"))
}

#[test]
fn a_file_refuses_the_write_of_an_owner_that_was_late() {
    let Some(members) = members() else { return };
    let (late, next) = late_and_present(&members);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report");
    assert_eq!(store::write(&path, next.token(), "new").expect("written"), Written::Yes);
    let refused = store::write(&path, late.token(), "old").expect("an answer");
    assert_eq!(refused, Written::Refused(next.token()));
    assert_eq!(store::write(&path, next.token(), "again").expect("written"), Written::Yes);
    let text = fs::read_to_string(&path).expect("the file");
    assert_eq!(text, format!("{}\nagain", next.token()));
}

/// Compares and replaces are one step to other writers: tokens in the file never go back.
#[test]
fn writers_at_once_leave_the_greatest_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report");
    thread::scope(|scope| {
        for writer in 0..4_u64 {
            let path = &path;
            scope.spawn(move || {
                let mut seen = 0;
                for turn in 0..50 {
                    let token = 1 + turn * 4 + (writer + turn) % 4;
                    let written = store::write(path, token, "text").expect("an answer");
                    let now =
                        store::token_of(path).expect("a token").expect("somebody has written");
                    assert!(now >= seen, "the file went back from {seen} to {now}");
                    assert!(now >= token, "{written:?}, and then {now} in place of {token}");
                    seen = now;
                }
            });
        }
    });
    assert_eq!(store::token_of(&path).expect("a token"), Some(200));
    fs::write(&path, "no token").expect("the file");
    store::write(&path, 1, "text").expect_err("what it does not know it does not replace");
}

/// An object as object stores have it: its version is another one after each write, and a write may be
/// conditional on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Object {
    etag: u64,
    /// The token of who wrote it, in its metadata: `x-amz-meta-token`.
    token: u64,
    body: String,
}

/// What is needed of S3 and the like: `GetObject`, and `PutObject` with `If-Match`.
#[derive(Default)]
struct Bucket(StdMutex<Object>);

impl Bucket {
    fn get(&self) -> Object {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes if the version is still this one; false is status 412.
    fn put_if_match(&self, etag: u64, token: u64, body: &str) -> bool {
        let mut object = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_that = object.etag == etag;
        if is_that {
            *object = Object { etag: etag + 1, token, body: body.to_owned() };
        }
        is_that
    }
}

/// Writes by a token; `between` is what others do between the read and the write.
fn put_fenced(bucket: &Bucket, token: u64, body: &str, mut between: impl FnMut()) -> Written {
    loop {
        let read = bucket.get();
        if read.token > token {
            return Written::Refused(read.token);
        }
        between();
        if bucket.put_if_match(read.etag, token, body) {
            return Written::Yes;
        }
        // Somebody has written meanwhile: with which token?
    }
}

#[test]
fn an_object_store_with_conditional_writes_refuses_it_even_between_its_read_and_its_write() {
    let Some(members) = members() else { return };
    let (late, next) = late_and_present(&members);
    let bucket = Bucket::default();
    let mut stopped = 0;
    let written = put_fenced(&bucket, late.token(), "old", || {
        stopped += 1;
        assert_eq!(put_fenced(&bucket, next.token(), "new", || ()), Written::Yes);
    });
    assert_eq!((written, stopped), (Written::Refused(next.token()), 1));
    assert_eq!(bucket.get().body, "new");
    // Without the condition the old owner's write would stand: the store, not the lock, refuses it.
    let etag = bucket.get().etag;
    assert!(bucket.put_if_match(etag, late.token(), "old"));
    assert_eq!(bucket.get().body, "old");
}
