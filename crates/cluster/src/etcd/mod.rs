//! What is needed of etcd, over the JSON gateway that each member has: requests that find a member that
//! answers, and watches.

mod client;
mod http;
mod tls;
mod watch;
pub(crate) mod wire;

pub(crate) use client::Client;
pub use client::{ClientOptions, Traffic};
pub use http::Endpoint;
pub use tls::TlsFiles;
pub(crate) use watch::Watch;
