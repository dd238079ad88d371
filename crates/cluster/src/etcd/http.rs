//! A connection that speaks HTTP/1.1 to etcd's gateway.
//!
//! Not a library's: a watch is a body without an end that another thread has to be able to cut off, a
//! request that may have been carried out must be told from one that was not, and both need the socket,
//! which HTTP libraries keep to themselves. What is left is a request with a length, and a head that
//! `httparse` reads.

use super::tls::{Stream, Tls};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The most bytes of a head and of an answer: etcd's own answers are smaller, and what is not etcd must
/// not fill the memory.
const MOST_HEAD: u64 = 64 << 10;
const MOST_BODY: u64 = 64 << 20;

/// An endpoint: where a member listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub(crate) secure: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl std::str::FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let allowed = "allowed: http://HOST:PORT, https://HOST:PORT or HOST:PORT";
        let wrong = || format!("`{text}` is not an endpoint; {allowed}");
        let (secure, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some(_) => return Err(wrong()),
            None => (false, text),
        };
        let rest = rest.trim_end_matches('/');
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !host.ends_with(':') => {
                (host, port.parse().map_err(|_| wrong())?)
            }
            _ => (rest, 2379),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || host.contains(['/', '@', ' ']) {
            return Err(wrong());
        }
        Ok(Endpoint { secure, host: host.to_owned(), port })
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{scheme}://{open}{}{close}:{}", self.host, self.port)
    }
}

/// A connection to one endpoint.
pub(crate) struct Connection {
    stream: BufReader<Stream>,
    host: String,
}

/// The head of an answer.
struct Head {
    status: u16,
    /// The bytes of the body; `None`: in chunks.
    length: Option<u64>,
    close: bool,
}

impl Connection {
    /// Connects, in `timeout` at most for each address of the host.
    pub(crate) fn open(endpoint: &Endpoint, tls: &Tls, timeout: Duration) -> io::Result<Self> {
        let mut failed = io::Error::new(ErrorKind::NotFound, "the host has no address");
        for address in (endpoint.host.as_str(), endpoint.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(socket) => {
                    socket.set_nodelay(true)?;
                    socket.set_read_timeout(Some(timeout))?;
                    socket.set_write_timeout(Some(timeout))?;
                    let stream = BufReader::new(tls.around(endpoint, socket)?);
                    return Ok(Connection { stream, host: endpoint.to_string() });
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Returns a handle by which another thread can end what this connection waits for.
    pub(crate) fn socket(&self) -> io::Result<TcpStream> {
        self.stream.get_ref().socket().try_clone()
    }

    pub(crate) fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        let socket = self.stream.get_ref().socket();
        // Zero would be no bound at all.
        let timeout = Some(timeout.max(Duration::from_millis(1)));
        socket.set_read_timeout(timeout)?;
        socket.set_write_timeout(timeout)
    }

    fn send(&mut self, path: &str, headers: &[(&str, &str)], body: &str) -> io::Result<()> {
        let authority = self.host.split("://").nth(1).unwrap_or(&self.host);
        let mut head = format!(
            "POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        head += body;
        let stream = self.stream.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.flush()
    }

    fn head(&mut self) -> io::Result<Head> {
        let mut text = Vec::new();
        while !text.ends_with(b"\r\n\r\n") {
            let left = MOST_HEAD.saturating_sub(text.len() as u64);
            if (&mut self.stream).take(left).read_until(b'\n', &mut text)? == 0 {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "the answer has no end"));
            }
        }
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut response = httparse::Response::new(&mut headers);
        response.parse(&text).map_err(|error| {
            io::Error::new(ErrorKind::InvalidData, format!("not an answer in HTTP: {error}"))
        })?;
        let value = |name: &str| {
            let header = response.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name));
            header.and_then(|header| std::str::from_utf8(header.value).ok()).map(str::trim)
        };
        let chunked = value("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked"));
        let length = value("content-length").and_then(|text| text.parse().ok());
        if !chunked && length.is_none() {
            return Err(io::Error::new(ErrorKind::InvalidData, "an answer without a length"));
        }
        Ok(Head {
            status: response.code.unwrap_or(0),
            length: if chunked { None } else { length },
            close: value("connection").is_some_and(|v| v.eq_ignore_ascii_case("close")),
        })
    }

    /// Reads the next chunk; `None` behind the last one.
    fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = String::new();
        (&mut self.stream).take(1024).read_line(&mut line)?;
        let size = line.trim().split(';').next().unwrap_or_default();
        let size = u64::from_str_radix(size, 16).ok().filter(|size| *size <= MOST_BODY);
        let size =
            size.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "a chunk without a size"))?;
        let mut chunk = vec![0; usize::try_from(size).unwrap_or(0)];
        self.stream.read_exact(&mut chunk)?;
        let mut end = String::new();
        (&mut self.stream).take(1024).read_line(&mut end)?;
        Ok((size != 0).then_some(chunk))
    }

    /// Sends a request and returns status, body, and whether the connection can be used again.
    pub(crate) fn call(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<(u16, Vec<u8>, bool)> {
        self.send(path, headers, body)?;
        let head = self.head()?;
        let mut body = Vec::new();
        match head.length {
            Some(length) if length <= MOST_BODY => {
                body.resize(usize::try_from(length).unwrap_or(0), 0);
                self.stream.read_exact(&mut body)?;
            }
            Some(_) => return Err(io::Error::new(ErrorKind::InvalidData, "too long an answer")),
            None => {
                while let Some(chunk) = self.chunk()? {
                    body.extend(chunk);
                    if body.len() as u64 > MOST_BODY {
                        return Err(io::Error::new(ErrorKind::InvalidData, "too long an answer"));
                    }
                }
            }
        }
        Ok((head.status, body, !head.close))
    }

    /// Sends a request whose answer is a stream of lines, and calls `each` with one after another until
    /// that returns false or the stream ends.
    pub(crate) fn stream(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
        mut each: impl FnMut(&[u8]) -> bool,
    ) -> io::Result<()> {
        self.send(path, headers, body)?;
        let head = self.head()?;
        if head.length.is_some() || head.status != 200 {
            let status = head.status;
            return Err(io::Error::other(format!("status {status} in place of a stream")));
        }
        let mut left = Vec::new();
        while let Some(chunk) = self.chunk()? {
            left.extend(chunk);
            while let Some(end) = left.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = left.drain(..=end).collect();
                if !each(&line) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read_as_people_write_them() {
        for (text, shown) in [
            ("127.0.0.1:2379", "http://127.0.0.1:2379"),
            ("https://db.example:1/", "https://db.example:1"),
            ("db", "http://db:2379"),
            ("http://[::1]:5", "http://[::1]:5"),
        ] {
            let endpoint: Endpoint = text.parse().expect(text);
            assert_eq!(endpoint.to_string(), shown);
        }
        for text in ["", "ftp://a:1", "http://", "a:b", "http://u@h:1"] {
            let error = text.parse::<Endpoint>().expect_err(text);
            assert!(error.contains("allowed: http://HOST:PORT"), "{error}");
        }
    }
}
