//! The stream of a connection, with TLS around it or without.

use super::http::Endpoint;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

/// The files by which server and client know each other, all PEM.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// The certificates of the authorities that servers are believed by.
    pub authorities: Option<PathBuf>,
    /// The certificate of this client and its key, where servers ask for one.
    pub client: Option<(PathBuf, PathBuf)>,
}

#[cfg(feature = "tls")]
mod with {
    use super::*;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
    use std::path::Path;
    use std::sync::Arc;

    /// What connections to endpoints with `https:` are made of; none without certificates.
    #[derive(Clone)]
    pub(crate) struct Tls(Option<Arc<ClientConfig>>);

    pub(crate) enum Stream {
        Plain(TcpStream),
        Secure(Box<StreamOwned<ClientConnection, TcpStream>>),
    }

    fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
        let cannot = |why: &dyn std::fmt::Display| {
            format!("cannot read certificates from {}: {why}", path.display())
        };
        let found: Result<Vec<_>, _> =
            CertificateDer::pem_file_iter(path).map_err(|error| cannot(&error))?.collect();
        let found = found.map_err(|error| cannot(&error))?;
        if found.is_empty() { Err(cannot(&"there is none in it")) } else { Ok(found) }
    }

    impl Tls {
        pub(crate) fn new(files: &TlsFiles) -> Result<Self, String> {
            let Some(authorities) = &files.authorities else { return Ok(Tls(None)) };
            let mut roots = RootCertStore::empty();
            for certificate in certificates(authorities)? {
                roots.add(certificate).map_err(|error| {
                    format!("{}: not an authority's certificate: {error}", authorities.display())
                })?;
            }
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let builder = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .map_err(|error| error.to_string())?
                .with_root_certificates(roots);
            let config = match &files.client {
                None => builder.with_no_client_auth(),
                Some((certificate, key)) => {
                    let chain = certificates(certificate)?;
                    let wrong = |error: &dyn std::fmt::Display| {
                        format!("cannot use the key {}: {error}", key.display())
                    };
                    let secret =
                        PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(&error))?;
                    builder.with_client_auth_cert(chain, secret).map_err(|error| wrong(&error))?
                }
            };
            Ok(Tls(Some(Arc::new(config))))
        }

        pub(crate) fn around(
            &self,
            endpoint: &Endpoint,
            mut socket: TcpStream,
        ) -> io::Result<Stream> {
            if !endpoint.secure {
                return Ok(Stream::Plain(socket));
            }
            let config = self.0.clone().ok_or_else(|| {
                io::Error::other(
                    "an endpoint with https: needs the authorities' certificates (--cacert FILE)",
                )
            })?;
            let name = ServerName::try_from(endpoint.host.clone()).map_err(io::Error::other)?;
            let mut secure = ClientConnection::new(config, name).map_err(io::Error::other)?;
            // Now, so that a certificate that is refused is told before anything may have been sent.
            while secure.is_handshaking() {
                secure.complete_io(&mut socket)?;
            }
            Ok(Stream::Secure(Box::new(StreamOwned::new(secure, socket))))
        }
    }

    impl Stream {
        pub(crate) fn socket(&self) -> &TcpStream {
            match self {
                Stream::Plain(socket) => socket,
                Stream::Secure(stream) => &stream.sock,
            }
        }
    }

    impl Read for Stream {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self {
                Stream::Plain(socket) => socket.read(buffer),
                Stream::Secure(stream) => stream.read(buffer),
            }
        }
    }

    impl Write for Stream {
        fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
            match self {
                Stream::Plain(socket) => socket.write(buffer),
                Stream::Secure(stream) => stream.write(buffer),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            match self {
                Stream::Plain(socket) => socket.flush(),
                Stream::Secure(stream) => stream.flush(),
            }
        }
    }
}

#[cfg(not(feature = "tls"))]
mod without {
    use super::*;

    #[derive(Clone)]
    pub(crate) struct Tls;

    pub(crate) struct Stream(TcpStream);

    impl Tls {
        pub(crate) fn new(files: &TlsFiles) -> Result<Self, String> {
            if files.authorities.is_some() || files.client.is_some() {
                return Err("built without the feature `tls`".into());
            }
            Ok(Tls)
        }

        pub(crate) fn around(&self, endpoint: &Endpoint, socket: TcpStream) -> io::Result<Stream> {
            if endpoint.secure {
                return Err(io::Error::other("https: was built without the feature `tls`"));
            }
            Ok(Stream(socket))
        }
    }

    impl Stream {
        pub(crate) fn socket(&self) -> &TcpStream {
            &self.0
        }
    }

    impl Read for Stream {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(buffer)
        }
    }

    impl Write for Stream {
        fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
            self.0.write(buffer)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }
}

#[cfg(feature = "tls")]
pub(crate) use with::{Stream, Tls};
#[cfg(not(feature = "tls"))]
pub(crate) use without::{Stream, Tls};
