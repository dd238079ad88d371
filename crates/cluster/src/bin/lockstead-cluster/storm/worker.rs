//! A client of the storm: a process that takes the lock again and again and says until when it was sure of
//! it.

use super::judge::Judge;
use lockstead_cluster::{ClientOptions, Locked, Moment, Mutex, Session, SessionOptions};
use lockstead_render::failure::Failure;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// The process of a client; dropped, it is killed.
pub(super) struct Worker {
    child: Child,
}

impl Worker {
    pub(super) fn start(endpoints: &str, ttl: u64, judge: &Judge) -> Result<Worker, Failure> {
        let cannot =
            |error: std::io::Error| Failure::Run(format!("cannot start a client: {error}"));
        // This program, also if its file is replaced meanwhile.
        let mut child = Command::new("/proc/self/exe")
            .args(["storm", "--ttl", &ttl.to_string(), "--worker", endpoints])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(cannot)?;
        let judge = judge.clone();
        let pid = child.id();
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    judge.hear(pid, &line);
                }
            });
        }
        Ok(Worker { child })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn stop(&self, stopped: bool) {
        let Ok(pid) = libc::pid_t::try_from(self.child.id()) else { return };
        // SAFETY: a signal to a child that is not yet waited for, so that the number is its own.
        unsafe { libc::kill(pid, if stopped { libc::SIGSTOP } else { libc::SIGCONT }) };
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says one line, whole: a client may be killed at any moment.
fn say(text: &str) {
    let _ = std::io::stdout().lock().write_all(format!("{text}\n").as_bytes());
}

/// Takes the lock again and again.
///
/// `in TOKEN NS`: in, and sure of it at that moment. `sure TOKEN NS`: still sure. `write TOKEN`: what a
/// register is asked to accept, written without a look, as an owner does that was stopped before it.
/// `died TOKEN`: told of a death. `out TOKEN`: released. `lost TOKEN`: lost.
pub(super) fn work(endpoints: &str, ttl: u64) -> Result<(), Failure> {
    loop {
        let client = ClientOptions::of(endpoints).map_err(crate::common::failed)?;
        let ttl = Duration::from_secs(ttl);
        let options = SessionOptions { client, ttl, ..SessionOptions::default() };
        let Ok(session) = Session::open(options) else { continue };
        let mutex = Mutex::new(&session, "storm");
        // A session that is lost is followed by another one.
        while session.check().is_ok() {
            let Ok(locked) = mutex.lock() else { continue };
            let died = matches!(locked, Locked::OwnerDied(_));
            let Ok(guard) = locked.recover(|_| ()) else { continue };
            let token = guard.token();
            let mut word = "in";
            let turns = fastrand::u32(1..6);
            for _ in 0..turns {
                // The moment before the look: the look came later, and was still in time.
                let now = Moment::now().nanoseconds();
                if guard.check().is_err() {
                    break;
                }
                say(&format!("{word} {token} {now}"));
                word = "sure";
                thread::sleep(Duration::from_micros(fastrand::u64(10..300)));
                say(&format!("write {token}"));
            }
            if died {
                say(&format!("died {token}"));
            }
            let end = if guard.unlock().is_ok() { "out" } else { "lost" };
            say(&format!("{end} {token}"));
        }
    }
}
