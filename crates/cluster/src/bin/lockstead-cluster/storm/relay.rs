//! The network of the storm: each client reaches each member through a relay of this process, which sees
//! what is on its way, and holds, loses, repeats and delays it.

use super::plan::{Fault, Moment};
use super::request::Request;
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The time that a member has to take a connection, and a copy of a request to be answered.
const CONNECT: Duration = Duration::from_secs(2);

/// A client's line to all members.
#[derive(Default)]
pub(super) struct Line {
    state: Mutex<LineState>,
    open: Condvar,
}

#[derive(Clone, Copy, Default)]
struct LineState {
    cut: bool,
    /// Grows when all connections are to end.
    epoch: u64,
}

impl Line {
    fn state(&self) -> MutexGuard<'_, LineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cuts the line: nothing passes any more, in neither direction.
    pub(super) fn cut(&self) {
        self.state().cut = true;
    }

    /// Mends the line; with `reset` the connections end, and what was on its way is lost.
    pub(super) fn mend(&self, reset: bool) {
        let mut state = self.state();
        state.cut = false;
        state.epoch += u64::from(reset);
        drop(state);
        self.open.notify_all();
    }

    fn epoch(&self) -> u64 {
        self.state().epoch
    }

    /// Waits until the line is whole; fails for connections that have ended meanwhile.
    fn pass(&self, epoch: u64) -> io::Result<()> {
        let mut state = self.state();
        while state.cut {
            state = self.open.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.epoch == epoch { Ok(()) } else { Err(io::ErrorKind::ConnectionReset.into()) }
    }
}

/// What is to happen when the answer comes.
#[derive(Default)]
struct OnAnswer(Mutex<Option<Hit>>);

impl OnAnswer {
    fn set(&self, hit: Hit) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(hit);
    }

    fn take(&self) -> Option<Hit> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A fault that meets a client.
pub(super) struct Hit {
    pub(super) fault: Fault,
    /// It happens when the request was carried out, and before the answer.
    pub(super) after: bool,
    /// The moment and the fault, as they are counted.
    pub(super) what: String,
}

/// Whoever decides what happens to what is on its way.
pub(super) trait Strikes: Send + Sync {
    /// Returns the fault that waits for this moment of the client.
    fn reached(&self, client: usize, moment: Moment) -> Option<Hit>;

    /// Carries a fault out, at a client, or at the member that serves it, and counts it; what concerns a
    /// request alone the relay does itself, if this says so. False if the fault does not happen: all is to be
    /// calm, or it cannot be done.
    fn strike(&self, client: usize, member: Option<usize>, hit: &Hit) -> bool;
}

/// The way between one client and all members.
struct Way {
    relays: Arc<Relays>,
    strikes: Arc<dyn Strikes>,
    client: usize,
    line: Arc<Line>,
}

/// Where relays listen and where the members are.
pub(super) struct Relays {
    pub(super) address: String,
    /// The members, as the relays reach them.
    pub(super) members: Vec<(String, u16)>,
}

impl Relays {
    /// Starts the relays of a client to all members; returns the endpoints for it.
    pub(super) fn start(
        self: &Arc<Self>,
        strikes: Arc<dyn Strikes>,
        client: usize,
        line: &Arc<Line>,
    ) -> io::Result<String> {
        let (relays, line) = (Arc::clone(self), Arc::clone(line));
        let way = Arc::new(Way { relays, strikes, client, line });
        let mut endpoints = Vec::new();
        for member in 0..self.members.len() {
            let listener = TcpListener::bind((self.address.as_str(), 0))?;
            endpoints.push(format!("http://{}", listener.local_addr()?));
            let way = Arc::clone(&way);
            thread::spawn(move || {
                for socket in listener.incoming() {
                    let (Ok(socket), way) = (socket, Arc::clone(&way)) else { continue };
                    thread::spawn(move || way.carry(member, &socket));
                }
            });
        }
        Ok(endpoints.join(","))
    }

    fn connect(&self, member: usize) -> io::Result<TcpStream> {
        let (host, port) = &self.members[member];
        let address = format!("{host}:{port}").parse().map_err(io::Error::other)?;
        let socket = TcpStream::connect_timeout(&address, CONNECT)?;
        socket.set_nodelay(true)?;
        Ok(socket)
    }

    /// Sends a copy of a request to a member, and forgets the answer.
    fn copy(&self, member: usize, request: &[u8]) -> io::Result<()> {
        let mut socket = self.connect(member)?;
        socket.set_read_timeout(Some(CONNECT))?;
        socket.write_all(request)?;
        let _ = socket.read(&mut [0; 256])?;
        Ok(())
    }
}

impl Way {
    fn strike(&self, member: usize, hit: &Hit) -> bool {
        self.strikes.strike(self.client, Some(member), hit)
    }

    /// Carries a connection's data in both directions until it ends in one.
    fn carry(&self, member: usize, socket: &TcpStream) {
        let Ok(other) = self.relays.connect(member) else { return };
        // Whichever way it ends, both sides are to hear of it; that they have may be the reason.
        let end = || (socket.shutdown(Shutdown::Both), other.shutdown(Shutdown::Both));
        let (on_answer, epoch) = (&OnAnswer::default(), self.line.epoch());
        thread::scope(|scope| {
            scope.spawn(|| {
                let _ = self.requests(member, socket, &other, on_answer, epoch);
                let _ = end();
            });
            let _ = self.answers(member, &other, socket, on_answer, epoch);
            let _ = end();
        });
        // What waited for an answer that never came happens now, unless it was to meet that answer.
        if let Some(hit) = on_answer.take().filter(|hit| !hit.fault.of_request()) {
            self.strike(member, &hit);
        }
    }

    fn requests(
        &self,
        member: usize,
        socket: &TcpStream,
        mut other: &TcpStream,
        on_answer: &OnAnswer,
        epoch: u64,
    ) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let mut reader = BufReader::new(socket);
        while let Some(request) = Request::read(&mut reader)? {
            self.line.pass(epoch)?;
            let moment = request.moment();
            if let Some(hit) = moment.and_then(|at| self.strikes.reached(self.client, at)) {
                match hit.fault {
                    Fault::LoseAnswer => on_answer.set(hit),
                    Fault::Delay(time) => {
                        if self.strike(member, &hit) {
                            thread::sleep(time);
                        }
                    }
                    Fault::CopyLate(time) => {
                        if self.strike(member, &hit) {
                            let relays = Arc::clone(&self.relays);
                            thread::spawn(move || {
                                thread::sleep(time);
                                // That it does not arrive is what happens to some of them.
                                let _ = relays.copy(member, &request.bytes);
                            });
                            return Ok(());
                        }
                    }
                    _ if hit.after => on_answer.set(hit),
                    _ => {
                        self.strike(member, &hit);
                    }
                }
                self.line.pass(epoch)?;
            }
            other.write_all(&request.bytes)?;
        }
        Ok(())
    }

    fn answers(
        &self,
        member: usize,
        mut other: &TcpStream,
        mut socket: &TcpStream,
        on_answer: &OnAnswer,
        epoch: u64,
    ) -> io::Result<()> {
        let mut buffer = vec![0; 16 << 10];
        loop {
            let number = other.read(&mut buffer)?;
            if number == 0 {
                return Ok(());
            }
            if let Some(hit) = on_answer.take()
                && self.strike(member, &hit)
                && matches!(hit.fault, Fault::LoseAnswer)
            {
                return Ok(());
            }
            self.line.pass(epoch)?;
            socket.write_all(&buffer[..number])?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_mended_by_reset_has_its_connections_end() {
        let line = Line::default();
        let epoch = line.epoch();
        line.cut();
        thread::scope(|scope| {
            let waits = scope.spawn(|| line.pass(epoch).is_err());
            line.mend(true);
            assert!(waits.join().expect("a thread"));
        });
        assert!(line.pass(line.epoch()).is_ok());
    }
}
