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
fn clients_show_a_certificate_where_members_ask_for_one() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let folder = std::env::temp_dir().join(format!("lockstead-certs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = |name: &str| folder.join(name);
    let (authority, authority_key) = (file("ca.pem"), file("ca-key.pem"));
    let curve = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    let make = |name: &str, more: &[&str]| {
        let (key, certificate) = (file(&format!("{name}-key.pem")), file(&format!("{name}.pem")));
        let subject = format!("/CN={name}");
        let files = ["-keyout", text(&key), "-out", text(&certificate), "-subj", &subject];
        ran("openssl", &[&curve[..], &files, &["-days", "2"], more].concat())
    };
    if !make("ca", &["-addext", "basicConstraints=critical,CA:TRUE"]) {
        println!("skipped: openssl is not installed");
        return;
    }
    let signed = ["-CA", text(&authority), "-CAkey", text(&authority_key)];
    let plain = ["-addext", "basicConstraints=critical,CA:FALSE"];
    let here = ["-addext", "subjectAltName=IP:127.0.0.1"];
    assert!(make("server", &[&signed[..], &plain, &here].concat()));
    assert!(make("client", &[&signed[..], &plain].concat()));
    let flags = [
        "--cert-file",
        text(&file("server.pem")),
        "--key-file",
        text(&file("server-key.pem")),
        "--client-cert-auth",
        "--trusted-ca-file",
        text(&authority),
    ]
    .map(str::to_owned);
    let members = Members::start_with(1, &flags, true).expect("etcd starts");
    let open = |client, patience| {
        let mut options = members.options();
        options.patience = patience;
        options.tls = TlsFiles { authorities: Some(authority.clone()), client };
        Session::open(SessionOptions { client: options, ..SessionOptions::default() })
    };
    let own = || Some((file("client.pem"), file("client-key.pem")));
    let session = open(own(), Duration::from_secs(20)).expect("a session");
    let guard = Mutex::new(&session, "m").lock().expect("acquired").acquired().expect("held");
    guard.unlock().expect("released");
    // Without one, the member does not speak with it.
    match open(None, Duration::from_millis(300)).err() {
        Some(ClusterError::Unreachable { last }) => {
            assert!(last.to_lowercase().contains("certificate"), "{last}");
        }
        other => panic!("{other:?}"),
    }
    let wrong = open(Some((file("client.pem"), authority.clone())), Duration::from_secs(1));
    let wrong = wrong.expect_err("a certificate is no key");
    assert!(matches!(&wrong, ClusterError::Options(why) if why.contains("ca.pem")), "{wrong}");
    // The command does the same.
    let words = ["ls", "--endpoints", &members.endpoints(), "--cacert", text(&authority)];
    let command = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockstead-cluster"));
        command.args(words).args(more).output().expect("it runs").status.code()
    };
    let (certificate, key) = (file("client.pem"), file("client-key.pem"));
    assert_eq!(command(&["--cert", text(&certificate), "--key", text(&key)]), Some(0));
    assert_eq!(command(&["--cert", text(&certificate)]), Some(2));
    let _ = std::fs::remove_dir_all(&folder);
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
