//! A watch that ends with the first change: whoever waits then looks itself.
//!
//! It also ends when the stream does, for whichever reason, and when nothing was heard for a while: a
//! member that was cut off from the others says nothing, and a revision that was compacted has no
//! events. So a waiter looks too often, and never sleeps for ever.

use super::client::Client;
use super::http::Connection;
use super::wire::{Keys, range};
use crate::threads;
use serde_json::{Value, json};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The time without any change after which a waiter looks again by itself.
pub(crate) const QUIET: Duration = Duration::from_secs(10);

/// The pause after a watch that failed, so that a waiter whom no member lets watch asks seldom.
const PAUSE: Duration = Duration::from_millis(100);

/// A watch; dropped, it ends and wakes nobody.
pub(crate) struct Watch {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    ended: AtomicBool,
    /// The connection, once it stands.
    socket: Mutex<Option<TcpStream>>,
}

impl Watch {
    /// Watches `keys` from this revision on, by a thread of its own, which calls `wake` once.
    ///
    /// `deletions`: only keys that vanish are of interest.
    pub(crate) fn start(
        client: &Arc<Client>,
        keys: &Keys,
        from: i64,
        deletions: bool,
        wake: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Watch> {
        let shared = Arc::new(Shared::default());
        let mut create = range(keys);
        create["start_revision"] = from.to_string().into();
        if deletions {
            create["filters"] = json!(["NOPUT"]);
        }
        let body = json!({"create_request": create}).to_string();
        let (client, state) = (Arc::clone(client), Arc::clone(&shared));
        client.counts.watches.fetch_add(1, Ordering::Relaxed);
        threads::start("lockstead-watch", move || {
            let (number, _) = client.endpoint();
            let failed = state.follow(&client, number, &body).is_err();
            if state.ended.load(Ordering::Acquire) {
                return;
            }
            if failed {
                client.turn_away(number);
                thread::sleep(PAUSE);
            }
            wake();
        })?;
        Ok(Watch { shared })
    }
}

impl Shared {
    /// Returns when something has changed, or if the stream has ended in good order.
    fn follow(&self, client: &Client, number: usize, body: &str) -> std::io::Result<()> {
        let endpoint = &client.options.endpoints[number];
        let mut connection = Connection::open(endpoint, &client.tls, client.options.attempt)?;
        let socket = connection.socket()?;
        *self.socket.lock().unwrap_or_else(PoisonError::into_inner) = Some(socket);
        if self.ended.load(Ordering::Acquire) {
            return Ok(());
        }
        connection.set_timeout(QUIET)?;
        let token = client.token_now();
        // A member that has lost the leader then ends the stream in place of saying nothing.
        let mut headers = vec![("Grpc-Metadata-hasleader", "true")];
        headers.extend(token.as_deref().map(|token| ("Authorization", token)));
        connection.stream("/v3/watch", &headers, body, |line| {
            let Ok(message) = serde_json::from_slice::<Value>(line) else { return false };
            let result = &message["result"];
            let events = result["events"].as_array().is_some_and(|events| !events.is_empty());
            let over = message.get("error").is_some() || result["canceled"].as_bool() == Some(true);
            !events && !over
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        let socket = self.shared.socket.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(socket) = socket {
            // The thread reads the end of the stream, and goes.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}
