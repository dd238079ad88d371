//! Answers HTTP for the one page that there is.
//!
//! # Who asks may be slow, or mean no good
//! One client is served at a time, each has [`PATIENCE`] and [`LONGEST`] bytes for what it asks, the
//! first again to take the answer, and its connection ends with the answer. Others wait in the
//! kernel's queue, which is bounded.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The time that a client has to ask, and again to take the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most bytes of a request.
const LONGEST: usize = 8192;
/// The most fields of a request.
const FIELDS: usize = 64;

/// Answers one client, with `page` if it asks for that.
pub(super) fn answer(mut client: TcpStream, page: impl FnOnce() -> String) {
    let until = Instant::now() + PATIENCE;
    let (status, kind, body) = match asked(&mut client, until) {
        None => return,
        Some(Ok(())) => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", page()),
        Some(Err(status)) => {
            let body = format!("{status}: GET /metrics has the figures of locks\n");
            (status, "text/plain; charset=utf-8", body)
        }
    };
    let allow = if status.starts_with("405") { "Allow: GET\r\n" } else { "" };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}\
         Connection: close\r\n\r\n{body}",
        body.len(),
    );
    // To make the page may have taken longer than a client may.
    let until = Instant::now() + PATIENCE;
    let mut left = answer.as_bytes();
    while !left.is_empty() && waits(&client, until) {
        match client.write(left) {
            Ok(0) | Err(_) => return,
            Ok(written) => left = &left[written..],
        }
    }
}

/// Returns whether the page is asked for, or else the status; `None` if nothing is asked in time.
fn asked(client: &mut TcpStream, until: Instant) -> Option<Result<(), &'static str>> {
    let mut bytes = Vec::new();
    loop {
        let mut some = [0; 1024];
        if !waits(client, until) {
            return None;
        }
        match client.read(&mut some) {
            Ok(0) => return None,
            Ok(length) => bytes.extend_from_slice(&some[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return None,
        }
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        match request.parse(&bytes) {
            Ok(httparse::Status::Complete(_)) => {
                let path = request.path.unwrap_or_default().split('?').next();
                return Some(match (request.method, path) {
                    (Some("GET"), Some("/metrics")) => Ok(()),
                    (Some("GET"), _) => Err("404 Not Found"),
                    _ => Err("405 Method Not Allowed"),
                });
            }
            Ok(httparse::Status::Partial) if bytes.len() < LONGEST => {}
            Ok(httparse::Status::Partial) => {
                return Some(Err("431 Request Header Fields Too Large"));
            }
            Err(_) => return Some(Err("400 Bad Request")),
        }
    }
}

/// Sets how long the next call may wait; `false` if the time is over.
fn waits(client: &TcpStream, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    !left.is_zero()
        && client.set_read_timeout(Some(left)).is_ok()
        && client.set_write_timeout(Some(left)).is_ok()
}
