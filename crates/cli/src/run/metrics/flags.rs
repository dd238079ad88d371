//! The options that are about metrics.

use clap::Args;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// Where the figures of locks are shown while the program runs.
#[derive(Debug, Args)]
pub(crate) struct MetricsFlags {
    /// Show figures of locks in Prometheus' text format while the program runs: in a file that is
    /// replaced every 2 seconds (FILE), or to who asks (PORT on 127.0.0.1, or ADDRESS:PORT; port 0: any)
    #[arg(long = "metrics", value_name = "FILE|PORT", value_parser = place)]
    pub(crate) place: Option<MetricsPlace>,
    /// The most locks of a process that have figures of their own, those with the most waiting; the
    /// others are one sum
    #[arg(
        long = "metrics-locks",
        value_name = "COUNT",
        default_value_t = 100,
        requires = "place",
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    pub(crate) locks: u32,
}

/// Where metrics are to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MetricsPlace {
    /// A file that is replaced again and again.
    File(PathBuf),
    /// An address at which HTTP is answered.
    Address(SocketAddr),
}

fn place(text: &str) -> Result<MetricsPlace, String> {
    if text.is_empty() {
        return Err("a file, a port, or an address with a port is needed".into());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let port = text.parse::<u16>();
        let port = port.map_err(|_| "a port is at most 65535; a file is ./NAME".to_owned())?;
        return Ok(MetricsPlace::Address((Ipv4Addr::LOCALHOST, port).into()));
    }
    let ends_in_port = text.rsplit_once(':').is_some_and(|(_, port)| {
        !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    if !ends_in_port || text.contains('/') {
        return Ok(MetricsPlace::File(text.into()));
    }
    let mut found = text.to_socket_addrs().map_err(|error| {
        format!(
            "{error}; allowed: 127.0.0.1:9464, [::1]:9464, a name with a port; a file is ./NAME"
        )
    })?;
    found.next().map(MetricsPlace::Address).ok_or_else(|| "the name has no address".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_file_or_an_address() {
        for (text, address) in [
            ("0", "127.0.0.1:0"),
            ("9464", "127.0.0.1:9464"),
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("[::1]:9464", "[::1]:9464"),
        ] {
            let address = address.parse().expect("an address");
            assert_eq!(place(text), Ok(MetricsPlace::Address(address)), "{text}");
        }
        for text in ["locks.prom", "/tmp/a:1", "./9464", "a:b"] {
            assert_eq!(place(text), Ok(MetricsPlace::File(text.into())), "{text}");
        }
        for text in ["", "65536", "::1:99999999"] {
            assert!(place(text).is_err(), "{text}");
        }
    }
}
