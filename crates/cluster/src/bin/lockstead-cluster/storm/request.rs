//! Requests of HTTP on their way, and the moment of a turn at which a client sends one.

use super::plan::Moment;
use std::io::{self, BufRead, Read};

/// The most bytes of one request; a client's are smaller.
const MOST: u64 = 1 << 20;

/// A request of HTTP as it came.
pub(super) struct Request {
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
    head: usize,
}

impl Request {
    fn body(&self) -> &[u8] {
        &self.bytes[self.head..]
    }

    /// Reads the next one; `None` at the end of the connection.
    pub(super) fn read(from: &mut impl BufRead) -> io::Result<Option<Request>> {
        let wrong = |why: &'static str| io::Error::new(io::ErrorKind::InvalidData, why);
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            let left = MOST.saturating_sub(bytes.len() as u64);
            if from.take(left).read_until(b'\n', &mut bytes)? == 0 {
                return if bytes.is_empty() { Ok(None) } else { Err(wrong("half a head")) };
            }
        }
        let head = bytes.len();
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut request = httparse::Request::new(&mut headers);
        request.parse(&bytes).map_err(|_| wrong("not a request"))?;
        let path = request.path.unwrap_or_default().to_owned();
        let length = request.headers.iter().find(|h| h.name.eq_ignore_ascii_case("content-length"));
        let length = length.and_then(|header| std::str::from_utf8(header.value).ok()?.parse().ok());
        let length = length.filter(|length| *length < MOST).ok_or(wrong("no length"))?;
        from.take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != head as u64 + length {
            return Err(wrong("half a body"));
        }
        Ok(Some(Request { path, bytes, head }))
    }

    /// Returns the moment at which a client sends this, if it is one that the storm waits for.
    pub(super) fn moment(&self) -> Option<Moment> {
        if self.path == "/v3/lease/keepalive" {
            return Some(Moment::Renewing);
        }
        if self.path != "/v3/kv/txn" {
            return None;
        }
        let json: serde_json::Value = serde_json::from_slice(self.body()).ok()?;
        let steps = json["success"].as_array()?;
        if steps.iter().any(|step| step["request_delete_range"].is_object()) {
            return Some(Moment::Releasing);
        }
        let lease = steps.iter().find_map(|step| step["request_put"]["lease"].as_str())?;
        // Whoever calls things consistent has nothing to do otherwise; whoever claims, reads who is before.
        let otherwise = json["failure"].as_array().is_some_and(|steps| !steps.is_empty());
        match (lease == "0", otherwise) {
            (false, _) => Some(Moment::Acquiring),
            (true, true) => Some(Moment::Claiming),
            (true, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str, body: &str) -> Request {
        let text = format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut all = text.as_bytes();
        let read = Request::read(&mut all).expect("a request").expect("one");
        assert!(all.is_empty() && read.body() == body.as_bytes());
        read
    }

    #[test]
    fn the_moment_is_known_by_the_request() {
        let put = |lease| serde_json::json!({"request_put": {"key": "", "lease": lease}});
        let delete = serde_json::json!({"request_delete_range": {"key": ""}});
        let txn = |success: serde_json::Value, failure: serde_json::Value| {
            let body = serde_json::json!({"success": success, "failure": failure}).to_string();
            request("/v3/kv/txn", &body).moment()
        };
        let read = serde_json::json!([{"request_range": {}}]);
        let both = serde_json::json!([put("7"), put("0")]);
        assert_eq!(txn(both, read.clone()), Some(Moment::Acquiring));
        assert_eq!(txn(serde_json::json!([put("0")]), read.clone()), Some(Moment::Claiming));
        assert_eq!(txn(serde_json::json!([put("0")]), serde_json::json!([])), None);
        assert_eq!(txn(serde_json::json!([delete]), read), Some(Moment::Releasing));
        assert_eq!(request("/v3/lease/keepalive", "{}").moment(), Some(Moment::Renewing));
        assert_eq!(request("/v3/watch", "{}").moment(), None);
    }
}
