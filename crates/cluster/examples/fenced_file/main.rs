//! Holds a lock over etcd, and writes under it to a file that refuses late owners. It does what standard
//! input says, a line each, so that one can be stopped between two steps:
//!
//! ```text
//!   cargo run -p lockstead-cluster --example fenced_file -- ENDPOINTS NAME FILE [SECONDS OF THE LEASE]
//!   asks
//!   in, token 42…
//!   look            ─▶ what the clock says: still held, or lost
//!   file TEXT       ─▶ writes the file by its token, whatever the clock says
//!   write           ─▶ writes a key of etcd by a guarded transaction
//!   release         ─▶ says whether it was held until here
//! ```
//!
//! Stop it for longer than its lease (`kill -STOP`), have another one write meanwhile, and let it go on.

mod store;

use lockstead_cluster::{
    ClientOptions, ClusterError, Locked, Mutex, MutexGuard, Session, SessionOptions,
};
use std::path::Path;
use std::time::Duration;
use store::Written;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [endpoints, name, file, seconds @ ..] = &words[..] else {
        return Err("usage: fenced_file ENDPOINTS NAME FILE [SECONDS OF THE LEASE]".into());
    };
    let ttl = Duration::from_secs(seconds.first().map_or(Ok(10), |text| text.parse())?);
    let client = ClientOptions::of(endpoints)?;
    let session = Session::open(SessionOptions { client, ttl, ..SessionOptions::default() })?;
    println!("asks");
    let guard = match Mutex::new(&session, name).lock() {
        Ok(Locked::Acquired(guard)) => guard,
        Ok(Locked::OwnerDied(guard)) => {
            println!("the last owner died");
            guard.mark_consistent()?
        }
        Ok(Locked::NotRecoverable) => return Err(ClusterError::NotRecoverable.into()),
        Err(error) => {
            println!("not in: {error}");
            return Ok(());
        }
    };
    println!("in, token {}", guard.token());
    let mut guard = Some(guard);
    for line in std::io::stdin().lines() {
        let line = line?;
        let Some(held) = &guard else { break };
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("look", _) => match held.check() {
                Ok(deadline) => println!("held for {:?} for sure", deadline.remaining()),
                Err(error) => println!("{error}"),
            },
            ("file", text) => match store::write(Path::new(file), held.token(), text)? {
                Written::Yes => println!("written"),
                Written::Refused(last) => println!("refused: token {last} was here"),
            },
            ("write", _) => {
                match held.txn().put(&format!("written/{name}"), "by its owner").commit() {
                    Ok(_) => println!("guarded write carried out: true"),
                    Err(error) => println!("guarded write carried out: false ({error})"),
                }
            }
            ("release", _) => match guard.take().map(MutexGuard::unlock) {
                Some(Err(error)) => println!("release: {error}"),
                _ => println!("release: held until here"),
            },
            (other, _) => println!("{other:?} means nothing: look, file TEXT, write, release"),
        }
    }
    Ok(())
}
