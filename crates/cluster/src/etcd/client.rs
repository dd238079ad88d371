//! Requests to whichever member answers.
//!
//! Every request may be sent more than once, to different members, and an earlier copy may arrive late:
//! whoever makes one sees to it that this does no harm (CLUSTER-NAMED in `protocol`).

use super::http::{Connection, Endpoint};
use super::tls::{Tls, TlsFiles};
use super::wire::{Answer, Get, Pair, Txn, number, pairs};
use crate::error::ClusterError;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The pause after all endpoints have failed, before the first is tried again.
const ROUND: Duration = Duration::from_millis(50);
/// The most connections that are kept for later.
const KEPT: usize = 8;

/// Where etcd is and who asks.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The members to ask, in this order.
    pub endpoints: Vec<Endpoint>,
    /// A user of etcd and the password.
    pub user: Option<(String, String)>,
    /// The certificates for endpoints with `https:`.
    pub tls: TlsFiles,
    /// The time that one member has for an answer before the next one is asked.
    pub attempt: Duration,
    /// The time after which a request has failed.
    pub patience: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        let endpoint = Endpoint { secure: false, host: "127.0.0.1".into(), port: 2379 };
        ClientOptions {
            endpoints: vec![endpoint],
            user: None,
            tls: TlsFiles::default(),
            attempt: Duration::from_secs(1),
            patience: Duration::from_secs(5),
        }
    }
}

impl ClientOptions {
    /// Reads endpoints from their text, `URL,…`.
    ///
    /// # Errors
    /// [`ClusterError::Options`], with what is allowed.
    ///
    /// ```
    /// let options = lockstead_cluster::ClientOptions::of("http://a:2379,https://b:2379")?;
    /// assert_eq!(options.endpoints.len(), 2);
    /// # Ok::<(), lockstead_cluster::ClusterError>(())
    /// ```
    pub fn of(endpoints: &str) -> Result<Self, ClusterError> {
        let endpoints = endpoints.split(',').map(|text| text.trim().parse());
        let endpoints = endpoints.collect::<Result<_, _>>().map_err(ClusterError::Options)?;
        Ok(ClientOptions { endpoints, ..ClientOptions::default() })
    }
}

/// What was sent to etcd so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests of locks, those that were repeated once each time.
    pub requests: u64,
    /// Watches that were opened.
    pub watches: u64,
    /// Renewals of leases, and leases that were made or given back.
    pub leases: u64,
}

#[derive(Default)]
pub(super) struct Counts {
    requests: AtomicU64,
    pub(super) watches: AtomicU64,
    leases: AtomicU64,
}

/// What is asked of one member went wrong.
enum Failed {
    /// Another member may do better.
    Elsewhere(String),
    /// A connection that was kept has ended meanwhile, which says nothing of the member.
    Stale(String),
    /// The token of the user is not valid any more.
    Token,
    No(ClusterError),
}

/// A client of the members of one cluster.
pub(crate) struct Client {
    pub(super) options: ClientOptions,
    pub(super) tls: Tls,
    pub(super) counts: Counts,
    /// The endpoint that answered last.
    current: AtomicUsize,
    idle: Mutex<Vec<(usize, Connection)>>,
    token: Mutex<Option<String>>,
}

impl Client {
    pub(crate) fn new(options: ClientOptions) -> Result<Self, ClusterError> {
        if options.endpoints.is_empty() {
            return Err(ClusterError::Options("no endpoint; give one: http://HOST:2379".into()));
        }
        let tls = Tls::new(&options.tls).map_err(ClusterError::Options)?;
        Ok(Client {
            options,
            tls,
            counts: Counts::default(),
            current: AtomicUsize::new(0),
            idle: Mutex::default(),
            token: Mutex::default(),
        })
    }

    pub(crate) fn options(&self) -> &ClientOptions {
        &self.options
    }

    /// Returns the time in which each endpoint is asked once that does not answer.
    pub(crate) fn round(&self) -> Duration {
        self.options.attempt * u32::try_from(self.options.endpoints.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn traffic(&self) -> Traffic {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Traffic {
            requests: read(&self.counts.requests),
            watches: read(&self.counts.watches),
            leases: read(&self.counts.leases),
        }
    }

    pub(super) fn endpoint(&self) -> (usize, &Endpoint) {
        let number = self.current.load(Ordering::Relaxed) % self.options.endpoints.len();
        (number, &self.options.endpoints[number])
    }

    /// Turns to the next endpoint, if nobody has since `from` was tried.
    pub(super) fn turn_away(&self, from: usize) {
        let next = (from + 1) % self.options.endpoints.len();
        let _ = self.current.compare_exchange(from, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn call(&self, path: &str, body: &Value, until: Instant) -> Result<Value, ClusterError> {
        self.call_repeatedly(path, body, until, &|| true, &mut false)
    }

    /// Asks the members in turn until one answers, `until` has come, or `goes_on` says false. That is asked
    /// after each try that failed, once each member was asked by a connection of its own. Sets `repeated`
    /// once the request may have been sent more than once.
    fn call_repeatedly(
        &self,
        path: &str,
        body: &Value,
        until: Instant,
        goes_on: &dyn Fn() -> bool,
        repeated: &mut bool,
    ) -> Result<Value, ClusterError> {
        let body = body.to_string();
        let mut tried = 0;
        let mut asked = vec![false; self.options.endpoints.len()];
        let mut known: Option<String> = None;
        loop {
            let (number, endpoint) = self.endpoint();
            let short = until.saturating_duration_since(Instant::now()) < self.options.attempt;
            let last = match self.once(number, path, &body, until) {
                Ok(answer) => return Ok(answer),
                Err(Failed::No(error)) => return Err(error),
                Err(Failed::Token) => {
                    *self.token.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    "the user's token has ended".to_owned()
                }
                Err(Failed::Elsewhere(why)) => {
                    asked[number] = true;
                    self.turn_away(number);
                    format!("{endpoint}: {why}")
                }
                Err(Failed::Stale(why)) => {
                    self.turn_away(number);
                    format!("{endpoint}: {why}")
                }
            };
            // A try that the end has cut short says nothing of the member; why the one before failed does.
            let cut = short && Instant::now() >= until;
            let last = known.take().filter(|_| cut).unwrap_or(last);
            tried += 1;
            *repeated = true;
            if asked.iter().all(|asked| *asked) && !goes_on() {
                return Err(ClusterError::Unreachable { last });
            }
            if tried % self.options.endpoints.len() == 0 {
                thread::sleep(ROUND.min(until.saturating_duration_since(Instant::now())));
            }
            if Instant::now() >= until {
                return Err(ClusterError::Unreachable { last });
            }
            known = Some(last);
        }
    }

    fn once(&self, number: usize, path: &str, body: &str, until: Instant) -> Result<Value, Failed> {
        let token = self.token(number, until)?;
        self.post(number, path, token.as_deref(), body, until)
    }

    /// Returns the user's token; `None` without a user.
    pub(super) fn token_now(&self) -> Option<String> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn token(&self, number: usize, until: Instant) -> Result<Option<String>, Failed> {
        let Some((name, password)) = &self.options.user else { return Ok(None) };
        if let Some(token) = self.token_now() {
            return Ok(Some(token));
        }
        let body = json!({"name": name, "password": password}).to_string();
        let answer = self.post(number, "/v3/auth/authenticate", None, &body, until)?;
        let token = answer["token"].as_str().map(str::to_owned);
        let mut kept = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clone_from(&token);
        Ok(token)
    }

    fn post(
        &self,
        number: usize,
        path: &str,
        token: Option<&str>,
        body: &str,
        until: Instant,
    ) -> Result<Value, Failed> {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = self.options.attempt.min(left).max(Duration::from_millis(1));
        let elsewhere = |error: std::io::Error| Failed::Elsewhere(error.to_string());
        let headers: Vec<_> = token.map(|token| ("Authorization", token)).into_iter().collect();
        if let Some(mut connection) = self.kept(number) {
            connection.set_timeout(timeout).map_err(elsewhere)?;
            match connection.call(path, &headers, body) {
                Ok(answer) => return self.judge(number, connection, answer),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Err(elsewhere(error));
                }
                // The member may have closed it while nobody looked, or got the request and gone: it counts
                // as sent.
                Err(error) => return Err(Failed::Stale(error.to_string())),
            }
        }
        let endpoint = &self.options.endpoints[number];
        let mut connection = Connection::open(endpoint, &self.tls, timeout).map_err(elsewhere)?;
        let answer = connection.call(path, &headers, body).map_err(elsewhere)?;
        self.judge(number, connection, answer)
    }

    fn kept(&self, number: usize) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let at = idle.iter().rposition(|(of, _)| *of == number)?;
        Some(idle.swap_remove(at).1)
    }

    fn judge(
        &self,
        number: usize,
        connection: Connection,
        (status, body, again): (u16, Vec<u8>, bool),
    ) -> Result<Value, Failed> {
        if again {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < KEPT {
                idle.push((number, connection));
            }
        }
        let unclear = || Failed::Elsewhere(format!("status {status} and no answer of etcd's"));
        let answer: Value = serde_json::from_slice(&body).map_err(|_| {
            // What etcd's gateway itself refuses, in words: asked again it would say the same. Other
            // words are a proxy's, perhaps, and another endpoint may answer.
            match status == 400 && body.starts_with(b"CommonName") {
                true => Failed::No(ClusterError::Refused { code: 0, message: first_line(&body) }),
                false => unclear(),
            }
        })?;
        if status == 200 && answer.get("error").is_none() {
            return Ok(answer);
        }
        // The stream of a lease has its error one level deeper, and 3.4 names the code otherwise there.
        let error = if answer["error"].is_object() { &answer["error"] } else { &answer };
        let code = number_of(error);
        let message = ["message", "error"].iter().find_map(|name| error[name].as_str());
        let message = message.unwrap_or("no reason").to_owned();
        Err(match code {
            16 if message.contains("invalid auth token") => Failed::Token,
            // Cancelled, deadline, exhausted, aborted, unavailable; 2 is what a member says that has no
            // leader.
            1 | 2 | 4 | 8 | 10 | 14 => Failed::Elsewhere(message),
            0 => unclear(),
            _ => Failed::No(ClusterError::Refused { code, message }),
        })
    }

    /// Returns the moment at which a request has failed that begins now.
    pub(crate) fn until(&self) -> Instant {
        Instant::now() + self.options.patience
    }

    /// Carries out a transaction, once or more often; says by `repeated` if that may have been more.
    pub(crate) fn txn(&self, txn: &Txn, repeated: &mut bool) -> Result<Answer, ClusterError> {
        self.txn_while(txn, self.until(), &|| true, repeated)
    }

    /// Does the same until this moment, and as long as `goes_on` says true once each member was asked.
    pub(crate) fn txn_while(
        &self,
        txn: &Txn,
        until: Instant,
        goes_on: &dyn Fn() -> bool,
        repeated: &mut bool,
    ) -> Result<Answer, ClusterError> {
        self.counts.requests.fetch_add(1, Ordering::Relaxed);
        let answer =
            self.call_repeatedly("/v3/kv/txn", &txn.to_json(), until, goes_on, repeated)?;
        Answer::from_json(&answer).ok_or_else(|| not_understood("/v3/kv/txn"))
    }

    /// Reads keys, and returns them with the revision at which they were read.
    pub(crate) fn get(&self, get: &Get) -> Result<(i64, Vec<Pair>), ClusterError> {
        self.counts.requests.fetch_add(1, Ordering::Relaxed);
        let answer = self.call("/v3/kv/range", &get.to_json(), self.until())?;
        let found = pairs(&answer).ok_or_else(|| not_understood("/v3/kv/range"))?;
        Ok((number(&answer["header"]["revision"]), found))
    }

    /// Makes a lease and returns its number.
    pub(crate) fn grant(&self, ttl: Duration) -> Result<i64, ClusterError> {
        self.counts.leases.fetch_add(1, Ordering::Relaxed);
        // A number of one's own: a copy of the request is refused, and no lease is left behind.
        let id = fastrand::i64(1..i64::MAX);
        let body = json!({"TTL": ttl.as_secs().to_string(), "ID": id.to_string()});
        match self.call("/v3/lease/grant", &body, self.until()) {
            Ok(_) => Ok(id),
            Err(ClusterError::Refused { message, .. }) if message.contains("already exists") => {
                Ok(id)
            }
            Err(error) => Err(error),
        }
    }

    /// Renews a lease; false if there is none any more.
    pub(crate) fn renew(&self, lease: i64, until: Instant) -> Result<bool, ClusterError> {
        self.counts.leases.fetch_add(1, Ordering::Relaxed);
        let body = json!({"ID": lease.to_string()});
        let answer = self.call("/v3/lease/keepalive", &body, until)?;
        // An ended lease is answered without an error, and without a time.
        Ok(number(&answer["result"]["TTL"]) > 0)
    }

    /// Ends a lease and removes all keys that have it. One that has ended is no error.
    pub(crate) fn revoke(&self, lease: i64) -> Result<(), ClusterError> {
        self.revoke_until(lease, self.until())
    }

    pub(crate) fn revoke_until(&self, lease: i64, until: Instant) -> Result<(), ClusterError> {
        self.counts.leases.fetch_add(1, Ordering::Relaxed);
        let body = json!({"ID": lease.to_string()});
        match self.call("/v3/lease/revoke", &body, until) {
            Err(ClusterError::Refused { code: 5, .. }) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Says whether the member that answers is the leader.
    pub(crate) fn leads(&self) -> Result<bool, ClusterError> {
        let answer = self.call("/v3/maintenance/status", &json!({}), self.until())?;
        Ok(answer["leader"].is_string() && answer["leader"] == answer["header"]["member_id"])
    }

    /// Returns the seconds for which a lease was made and those that are left; `None` if it has ended.
    pub(crate) fn time_to_live(&self, lease: i64) -> Result<Option<(i64, i64)>, ClusterError> {
        let body = json!({"ID": lease.to_string()});
        let answer = self.call("/v3/lease/timetolive", &body, self.until())?;
        let left = number(&answer["TTL"]);
        Ok((left > 0).then(|| (number(&answer["grantedTTL"]), left)))
    }
}

fn number_of(error: &Value) -> i64 {
    ["code", "grpc_code"]
        .iter()
        .map(|name| number(&error[name]))
        .find(|code| *code != 0)
        .unwrap_or(0)
}

fn first_line(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text.lines().next().unwrap_or_default();
    line.chars().filter(|letter| !letter.is_control()).take(200).collect()
}

fn not_understood(path: &str) -> ClusterError {
    let message = format!("{path} was answered by something that is not etcd 3.4 or later");
    ClusterError::Refused { code: 0, message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    #[test]
    fn a_try_that_is_cut_short_does_not_hide_why_the_one_before_failed() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let endpoints = format!("http://{}", listener.local_addr().expect("an address"));
        let patience = Duration::from_millis(500);
        let attempt = Duration::from_secs(60);
        let options = ClientOptions::of(&endpoints).expect("an endpoint");
        let client = Client::new(ClientOptions { patience, attempt, ..options }).expect("a client");
        // The first request is answered by something else, and no later one is.
        let server = thread::spawn(move || {
            let (mut first, _) = listener.accept().expect("a connection");
            let _ = first.read(&mut [0; 4096]).expect("a request");
            first.write_all(b"HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno").expect("sent");
            (first, listener)
        });
        let error = client.grant(Duration::from_secs(5)).expect_err("no answer of etcd's");
        let kept = server.join().expect("a thread");
        assert!(error.to_string().contains("status 503"), "{error}");
        drop(kept);
    }

    #[test]
    fn a_kept_connection_that_has_ended_is_no_try_of_the_member() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let endpoints = format!("http://{}", listener.local_addr().expect("an address"));
        let client = Client::new(ClientOptions::of(&endpoints).expect("an endpoint"));
        let client = client.expect("a client");
        // Each answer ends its connection without a word of that.
        let server = thread::spawn(move || {
            for body in ["{}", r#"{"header":{"revision":"1"},"succeeded":true}"#] {
                let (mut connection, _) = listener.accept().expect("a connection");
                let _ = connection.read(&mut [0; 4096]).expect("a request");
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                connection.write_all((head + body).as_bytes()).expect("sent");
            }
        });
        client.grant(Duration::from_secs(5)).expect("a lease");
        let answer = client.txn_while(&Txn::default(), client.until(), &|| false, &mut false);
        server.join().expect("a thread");
        assert!(answer.is_ok_and(|answer| answer.succeeded));
    }

    #[test]
    fn a_request_that_is_to_end_ends_once_each_member_was_asked() {
        let listeners = [(); 2].map(|()| TcpListener::bind(("127.0.0.1", 0)).expect("a port"));
        let address = |listener: &TcpListener| listener.local_addr().expect("an address");
        let endpoints =
            listeners.each_ref().map(|listener| format!("http://{}", address(listener)));
        let attempt = Duration::from_millis(100);
        let options = ClientOptions::of(&endpoints.join(",")).expect("endpoints");
        let client = Client::new(ClientOptions { attempt, ..options }).expect("a client");
        let servers = listeners.map(|listener| {
            thread::spawn(move || {
                let (mut connection, _) = listener.accept().expect("a connection");
                let _ = connection.read(&mut [0; 4096]).expect("a request");
                (connection, listener)
            })
        });
        let asked = std::cell::Cell::new(0);
        let goes_on = || {
            asked.set(asked.get() + 1);
            false
        };
        let late = Instant::now() + Duration::from_secs(60);
        let error = client.txn_while(&Txn::default(), late, &goes_on, &mut false);
        assert!(matches!(error, Err(ClusterError::Unreachable { .. })));
        assert_eq!(asked.get(), 1, "only behind the second member");
        for server in servers {
            server.join().expect("it was asked");
        }
    }
}
