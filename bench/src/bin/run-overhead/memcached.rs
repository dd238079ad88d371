//! memcached under a loopback load of our own: eight connections, each one set
//! and fifteen gets in one write, then all answers.

use crate::tools::{self, Result, Tools};
use crate::{OverheadRow, QuotientTarget};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 8;
const GETS: usize = 15;
const MEASURED: Duration = Duration::from_secs(3);
const WARM_UP: Duration = Duration::from_millis(500);

/// A server that ends with this value, and the command above it.
struct Server {
    child: Child,
    pid: u32,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: a signal to a process of ours that has not been waited for.
        unsafe { libc::kill(self.pid as i32, libc::SIGTERM) };
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(tools: &Tools, program: &Path, under_run: bool) -> Result<Server> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut command = tools.command(under_run, program);
    command.args(["-t", "4", "-U", "0", "-l", "127.0.0.1", "-p", &port.to_string()]);
    // SAFETY: by CALL-NUMBERS the call takes numbers and touches no memory of ours.
    if unsafe { libc::geteuid() } == 0 {
        command.args(["-u", "root"]);
    }
    let child = command.stdout(Stdio::null()).spawn()?;
    let mut server = Server { pid: child.id(), child, port };
    let deadline = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if Instant::now() > deadline {
            return Err("memcached did not begin to listen within ten seconds".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    if under_run {
        server.pid = tools::child_of(server.pid)?.ok_or("lockstead run has no child")?;
    }
    Ok(server)
}

/// Runs the rounds of one connection until it is told to stop.
fn client(port: u16, number: usize, stop: &AtomicBool, done: &AtomicU64) -> Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let value = [b'v'; 100];
    let mut buffer = vec![0; 1 << 16];
    let mut random = fastrand::Rng::with_seed(number as u64);
    while !stop.load(Ordering::Relaxed) {
        let mut request = Vec::with_capacity(1024);
        let key = |r: &mut fastrand::Rng| format!("key{}", r.u32(..1000));
        write!(request, "set {} 0 0 {}\r\n", key(&mut random), value.len())?;
        request.extend_from_slice(&value);
        request.extend_from_slice(b"\r\n");
        for _ in 0..GETS {
            write!(request, "get {}\r\n", key(&mut random))?;
        }
        stream.write_all(&request)?;
        // One "STORED", then an "END" for each get.
        let (mut ends, mut kept) = (0, 0);
        while ends < GETS {
            let read = stream.read(&mut buffer[kept..])?;
            if read == 0 {
                return Err("memcached closed the connection".into());
            }
            let filled = kept + read;
            ends += buffer[..filled].windows(5).filter(|w| w == b"END\r\n").count();
            // What may be the beginning of an "END" stays for the next look.
            kept = filled.min(4);
            buffer.copy_within(filled - kept..filled, 0);
        }
        done.fetch_add(1 + GETS as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// Measures operations per second, and server CPU microseconds per operation.
fn load(server: &Server) -> Result<(f64, f64)> {
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|number| {
                let (stop, done) = (&stop, &done);
                scope.spawn(move || {
                    client(server.port, number, stop, done).map_err(|error| error.to_string())
                })
            })
            .collect();
        std::thread::sleep(WARM_UP);
        let before = (done.load(Ordering::Relaxed), tools::process_cpu(server.pid), Instant::now());
        std::thread::sleep(MEASURED);
        let after = (done.load(Ordering::Relaxed), tools::process_cpu(server.pid), Instant::now());
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().expect("a client does not panic")?;
        }
        let operations = (after.0 - before.0) as f64;
        let cpu = after.1? - before.1?;
        Ok((operations / (after.2 - before.2).as_secs_f64(), cpu / operations * 1e6))
    })
}

pub(crate) fn measure(tools: &Tools, rounds: usize) -> Result<Vec<OverheadRow>> {
    let Some(program) = Tools::installed("memcached") else { return Ok(Vec::new()) };
    let (mut rate, mut cpu) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        eprintln!("run-overhead: memcached, round {round} of {rounds}");
        let native = load(&start(tools, &program, false)?)?;
        let observed = load(&start(tools, &program, true)?)?;
        rate.push((native.0 / 1e3, observed.0 / 1e3));
        cpu.push((native.1, observed.1));
    }
    let (rate_limit, cpu_limit) = if tools.check { (None, 1.35) } else { (Some(0.85), 1.25) };
    Ok(vec![
        OverheadRow::of("memcached", "k ops/s", &rate, rate_limit.map(QuotientTarget::AtLeast)),
        OverheadRow::of(
            "memcached server",
            "CPU us/op",
            &cpu,
            Some(QuotientTarget::AtMost(cpu_limit)),
        ),
    ])
}
