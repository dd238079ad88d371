//! TLS, and users with passwords. Where etcd, etcdctl or openssl is not installed, skipped.

use lockstead_cluster::member::{self, Members};
use lockstead_cluster::{ClusterError, Mutex, Session, SessionOptions, TlsFiles};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Runs a program; false if it is not there.
fn ran(program: &str, words: &[&str]) -> bool {
    let output =
        Command::new(program).args(words).env("ETCDCTL_API", "3").stdin(Stdio::null()).output();
    match output {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            true
        }
        Err(_) => false,
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}

#[test]
fn members_are_believed_by_their_authority_only() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let folder = std::env::temp_dir().join(format!("lockstead-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (key, certificate) = (folder.join("key.pem"), folder.join("cert.pem"));
    let own = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    let more = ["-days", "2", "-subj", "/CN=etcd", "-addext", "subjectAltName=IP:127.0.0.1"];
    let files = ["-keyout", text(&key), "-out", text(&certificate)];
    // An authority that is the server as well is refused as a server: it must not be one.
    let plain = ["-addext", "basicConstraints=critical,CA:FALSE"];
    if !ran("openssl", &[&own[..], &more, &plain, &files].concat()) {
        println!("skipped: openssl is not installed");
        return;
    }
    let flags = ["--cert-file", text(&certificate), "--key-file", text(&key)];
    let members = Members::start_with(1, &flags.map(str::to_owned), true).expect("etcd starts");
    let open = |authorities| {
        let mut client = members.options();
        client.patience = std::time::Duration::from_secs(20);
        client.tls = TlsFiles { authorities, client: None };
        Session::open(SessionOptions { client, ..SessionOptions::default() })
    };
    let session = open(Some(certificate.clone())).expect("a session");
    let guard = Mutex::new(&session, "m").lock().expect("acquired").acquired().expect("held");
    guard.unlock().expect("released");
    let mut client = members.options();
    client.patience = std::time::Duration::from_millis(200);
    match Session::open(SessionOptions { client, ..SessionOptions::default() }).err() {
        Some(ClusterError::Unreachable { last }) => assert!(last.contains("--cacert"), "{last}"),
        other => panic!("{other:?}"),
    }
    let wrong = open(Some(key)).expect_err("a key is no certificate");
    assert!(matches!(&wrong, ClusterError::Options(why) if why.contains("key.pem")), "{wrong}");
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn users_that_may_not_are_told_so() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let members = Members::start(1).expect("etcd starts");
    let endpoints = format!("--endpoints={}", members.endpoints());
    let control = |words: &[&str]| ran("etcdctl", &[&[endpoints.as_str()], words].concat());
    if !control(&["role", "add", "root"]) {
        println!("skipped: etcdctl is not installed");
        return;
    }
    for words in [
        &["user", "add", "root:secret"][..],
        &["user", "grant-role", "root", "root"],
        &["role", "add", "locks"],
        &["role", "grant-permission", "locks", "--prefix=true", "readwrite", "lockstead/"],
        &["user", "add", "worker:word"],
        &["user", "grant-role", "worker", "locks"],
        &["auth", "enable"],
    ] {
        assert!(control(words));
    }
    let open = |user: Option<(&str, &str)>, root: &str| {
        let mut client = members.options();
        // Passwords are hashed at length, which a loaded machine takes its time for.
        client.attempt = Duration::from_secs(20);
        client.user = user.map(|(name, password)| (name.to_owned(), password.to_owned()));
        let root = root.to_owned();
        Session::open(SessionOptions { client, root, ..SessionOptions::default() })
    };
    let session = open(Some(("worker", "word")), "lockstead").expect("a session");
    let guard = Mutex::new(&session, "m").lock().expect("acquired").acquired().expect("held");
    guard.unlock().expect("released");
    let elsewhere = open(Some(("worker", "word")), "other").expect("a session");
    let refused = Mutex::new(&elsewhere, "m").lock().expect_err("not its folder");
    assert!(matches!(refused, ClusterError::Refused { code: 7, .. }), "{refused}");
    let wrong = open(Some(("worker", "guess")), "lockstead").expect_err("a wrong password");
    assert!(wrong.to_string().contains("--user"), "{wrong}");
}
