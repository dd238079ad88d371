//! The flags that say where etcd is.

use clap::Args;
use lockstead_cluster::{ClientOptions, ClusterError, Session, SessionOptions, TlsFiles};
use lockstead_render::failure::Failure;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args, Clone, Debug)]
pub(crate) struct EtcdFlags {
    /// Members of etcd to ask, in this order
    #[arg(
        long,
        value_name = "URL,…",
        env = "LOCKSTEAD_ENDPOINTS",
        default_value = "http://127.0.0.1:2379"
    )]
    pub(crate) endpoints: String,
    /// A user of etcd, NAME:PASSWORD
    #[arg(long, value_name = "NAME:PASSWORD", env = "LOCKSTEAD_USER", hide_env_values = true)]
    user: Option<String>,
    /// Certificates of the authorities that members are believed by, PEM
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Certificate of this client, PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Key of that certificate, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Folder of the locks' keys in etcd
    #[arg(long, value_name = "PATH", default_value = "lockstead")]
    pub(crate) root: String,
}

impl EtcdFlags {
    pub(crate) fn client(&self) -> Result<ClientOptions, Failure> {
        let mut options = ClientOptions::of(&self.endpoints)
            .map_err(|why| Failure::option("--endpoints <URL,…>", &self.endpoints, why))?;
        if self.cacert.is_none()
            && self.endpoints.split(',').any(|e| e.trim().starts_with("https:"))
        {
            let why =
                "an endpoint with https: needs --cacert FILE, the certificates of its authorities";
            return Err(Failure::Usage(why.into()));
        }
        if let Some(user) = &self.user {
            let split = user.split_once(':').ok_or_else(|| {
                Failure::Usage("--user wants NAME:PASSWORD, with a colon between them".into())
            })?;
            options.user = Some((split.0.to_owned(), split.1.to_owned()));
        }
        let client = self.cert.clone().zip(self.key.clone());
        options.tls = TlsFiles { authorities: self.cacert.clone(), client };
        Ok(options)
    }

    pub(crate) fn session(&self, ttl: Duration, margin: Duration) -> Result<Session, Failure> {
        let (client, root) = (self.client()?, self.root.clone());
        let options = SessionOptions { client, ttl, margin, root, ..SessionOptions::default() };
        Session::open(options).map_err(failed)
    }
}

/// Returns how the command ends with such an error.
pub(crate) fn failed(error: ClusterError) -> Failure {
    match error {
        ClusterError::Options(text) => Failure::Usage(text),
        error => Failure::Run(error.to_string()),
    }
}
