//! TLS, and users with passwords, from C. Where etcd, etcdctl or openssl is not installed, skipped.

use crate::{COMPILERS, program, scratch, timed};
use lockstead_cluster::member::{self, Members};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Certificates of one authority, in a folder of their own.
struct Certificates(PathBuf);

impl Certificates {
    /// Makes those of an authority, a server and a client; `None` without openssl.
    fn new(name: &str) -> Option<Certificates> {
        if Command::new("openssl").arg("version").output().is_err() {
            println!("skipped: openssl is not installed");
            return None;
        }
        let folder = scratch().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("scratch can be written");
        let made = Certificates(folder);
        made.make("ca", "/CN=ca", &["-addext", "basicConstraints=critical,CA:TRUE"]);
        let (authority, key) = (made.file("ca.pem"), made.file("ca-key.pem"));
        let signed = ["-CA", &authority, "-CAkey", &key];
        // An authority that is the server as well is refused as a server: it must not be one.
        let plain = ["-addext", "basicConstraints=critical,CA:FALSE"];
        let here = ["-addext", "subjectAltName=IP:127.0.0.1"];
        made.make("server", "/CN=server", &[&signed[..], &plain, &here].concat());
        made.make("client", "/O=client", &[&signed[..], &plain].concat());
        made.make("named", "/CN=worker", &[&signed[..], &plain].concat());
        Some(made)
    }

    fn make(&self, name: &str, subject: &str, more: &[&str]) {
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
        openssl.args(["-nodes", "-days", "2", "-subj", subject, "-keyout"]);
        openssl.arg(self.file(&format!("{name}-key.pem"))).arg("-out");
        openssl.arg(self.file(&format!("{name}.pem"))).args(more);
        let output = openssl.stdin(Stdio::null()).output().expect("openssl runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path of text").to_owned()
    }

    /// Returns the flags of a member with these certificates that asks clients for theirs.
    fn flags(&self) -> Vec<String> {
        let (certificate, key) = (self.file("server.pem"), self.file("server-key.pem"));
        let authority = self.file("ca.pem");
        ["--cert-file", &certificate, "--key-file", &key, "--trusted-ca-file", &authority]
            .map(str::to_owned)
            .into_iter()
            .chain(["--client-cert-auth".to_owned()])
            .collect()
    }
}

/// Makes a user `worker`, who may use the locks below `lockstead/`; false without etcdctl.
fn with_users(endpoints: &str, secure: &[String]) -> bool {
    let control = |words: &[&str]| {
        let mut control = Command::new("etcdctl");
        control.env("ETCDCTL_API", "3").arg(format!("--endpoints={endpoints}")).args(secure);
        control.args(["--dial-timeout=30s", "--command-timeout=30s"]).args(words);
        control.stdin(Stdio::null()).output()
    };
    for words in [
        &["role", "add", "root"][..],
        &["user", "add", "root:secret"],
        &["user", "grant-role", "root", "root"],
        &["role", "add", "locks"],
        &["role", "grant-permission", "locks", "--prefix=true", "readwrite", "lockstead/"],
        &["user", "add", "worker:word"],
        &["user", "grant-role", "worker", "locks"],
        &["auth", "enable"],
    ] {
        let Ok(output) = control(words) else {
            println!("skipped: etcdctl is not installed");
            return false;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    true
}

/// A program in C that asks for access.
struct Program(Child, BufReader<std::process::ChildStdout>);

/// Passwords are hashed at length, for which a loaded machine takes its time.
const LONG: &str = "14";
/// A member that is not believed is asked again and again for so long.
const SHORT: &str = "1";

impl Program {
    /// Starts it and returns what it says first.
    fn start(words: [&str; 7], patience: &str) -> (Program, String) {
        let path = program("c/access.c", COMPILERS[0]).expect("asked before");
        let words: Vec<&str> = words.into_iter().chain([patience]).collect();
        let mut command = timed(&path, &words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("runs");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut said = String::new();
        output.read_line(&mut said).expect("a line, or the end");
        (Program(child, output), said)
    }

    /// Lets it go on, and returns what it says at its end.
    fn goes_on(mut self) -> String {
        self.0.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
        let mut said = String::new();
        self.1.read_line(&mut said).expect("a line, or the end");
        assert!(self.0.wait().expect("it ends").success());
        said
    }

    /// Returns what it says that gets no further.
    fn refused(words: [&str; 7], patience: &str) -> String {
        let (mut program, said) = Program::start(words, patience);
        assert!(program.0.wait().expect("it ends").success());
        said
    }
}

fn started(flags: &[String], secure: bool) -> Option<Members> {
    // That it is not there is said by it.
    program("c/access.c", COMPILERS[0])?;
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return None;
    }
    Some(Members::start_with(1, flags, secure).expect("etcd starts"))
}

/// Asks until a member answers: one with certificates is not waited for when it is started.
fn answers(endpoints: &str, secure: &[String]) {
    let end = Instant::now() + Duration::from_secs(60);
    let asked = || -> std::io::Result<Output> {
        let mut control = Command::new("etcdctl");
        control.env("ETCDCTL_API", "3").arg(format!("--endpoints={endpoints}")).args(secure);
        control.args(["endpoint", "status"]).output()
    };
    while asked().is_ok_and(|output| !output.status.success()) {
        assert!(Instant::now() < end, "{endpoints} does not answer");
    }
}

#[test]
fn a_user_of_a_member_with_certificates_has_the_lock() {
    let Some(certificates) = Certificates::new("cluster-certificates") else { return };
    let Some(mut members) = started(&certificates.flags(), true) else { return };
    let endpoints = members.endpoints();
    let file = |name: &str| certificates.file(name);
    let (authority, own, key) = (file("ca.pem"), file("client.pem"), file("client-key.pem"));
    let secure = [format!("--cacert={authority}"), format!("--cert={own}"), format!("--key={key}")];
    answers(&endpoints, &secure);
    if !with_users(&endpoints, &secure) {
        return;
    }
    let words = [&*endpoints, &authority, &own, &key, "worker", "word", "lockstead"];
    let (program, said) = Program::start(words, LONG);
    assert_eq!(said, "in\n");
    // Members forget the tokens of users when they are started anew; the session asks for another one.
    members.kill(0);
    members.start_member(0).expect("etcd starts");
    assert_eq!(program.goes_on(), "out\n");

    // Each of these is missing or wrong, and the reason says which.
    let change = |at: usize, to: &'static str| {
        let mut words = words;
        words[at] = to;
        words
    };
    let reason = Program::refused(change(5, "guess"), LONG);
    assert!(reason.starts_with(&format!("open {}: ", -libc::EACCES)), "{reason}");
    let reason = Program::refused(change(4, "nobody"), LONG);
    assert!(reason.starts_with(&format!("open {}: ", -libc::EACCES)), "{reason}");
    let reason = Program::refused(change(6, "elsewhere"), LONG);
    assert!(reason.starts_with(&format!("lock {}: ", -libc::EACCES)), "{reason}");
    let (named, named_key) = (file("named.pem"), file("named-key.pem"));
    let mut with_name = words;
    (with_name[2], with_name[3]) = (&named, &named_key);
    let reason = Program::refused(with_name, LONG);
    assert!(reason.starts_with(&format!("open {}: ", -libc::EPROTO)), "{reason}");
    assert!(reason.contains("no common name"), "{reason}");
    let mut nobody = change(4, "-");
    nobody[5] = "-";
    let reason = Program::refused(nobody, LONG);
    // Some versions let anybody have a lease, and nobody a key.
    assert!(reason.contains(&format!(" {}: ", -libc::EACCES)), "{reason}");
}

#[test]
fn a_member_is_believed_by_its_authority_only() {
    let Some(certificates) = Certificates::new("cluster-authorities") else { return };
    let Some(members) = started(&certificates.flags(), true) else { return };
    let endpoints = members.endpoints();
    let file = |name: &str| certificates.file(name);
    let (authority, own, key) = (file("ca.pem"), file("client.pem"), file("client-key.pem"));
    let words = [&*endpoints, &authority, &own, &key, "-", "-", "lockstead"];
    let (program, said) = Program::start(words, LONG);
    assert_eq!(said, "in\n");
    assert_eq!(program.goes_on(), "out\n");

    for (changed, with, why) in
        [(1, "-", "cacert"), (1, &*own, "certificate"), (2, "-", "certificate")]
    {
        let mut words = words;
        words[changed] = with;
        if (changed, with) == (2, "-") {
            words[3] = "-";
        }
        let reason = Program::refused(words, SHORT);
        assert!(reason.starts_with("open -") && reason.to_lowercase().contains(why), "{reason}");
    }
}
