//! Servers under load from several clients.

use super::case::{Case, names, processes, sum};
use super::server::Server;
use super::{MORE_FOLDERS, installed, is_root, skip};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

fn words(list: &[&str]) -> Vec<OsString> {
    list.iter().map(OsString::from).collect()
}

fn connected(socket: &Path) -> Option<BufReader<UnixStream>> {
    let stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(super::DEADLINE)).expect("a time-out can be set");
    Some(BufReader::new(stream))
}

/// Sends a line and gives the first line of the answer.
fn ask(server: &mut BufReader<UnixStream>, question: &str) -> String {
    server.get_mut().write_all(format!("{question}\r\n").as_bytes()).expect("sent");
    next(server)
}

fn next(server: &mut BufReader<UnixStream>) -> String {
    let mut line = String::new();
    server.read_line(&mut line).expect("an answer");
    line.trim_end().to_owned()
}

/// Returns the answers that four clients get, in the order of the clients.
fn clients(
    socket: &Path,
    one: impl Fn(&mut BufReader<UnixStream>, usize) -> String + Sync,
) -> String {
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|number| {
                let one = &one;
                scope.spawn(move || one(&mut connected(socket).expect("a connection"), number))
            })
            .collect();
        clients.into_iter().map(|client| client.join().expect("answered")).collect()
    })
}

#[test]
fn memcached() {
    let Some(program) = installed("memcached") else { return };
    const ROUNDS: u64 = 300;
    let report = Server {
        command: Box::new(|_| {
            let mut line = vec![program.clone().into_os_string()];
            line.extend(words(&["-t", "4", "-s", "socket", "-m", "16"]));
            if is_root() {
                line.extend(words(&["-u", "root"]));
            }
            line
        }),
        ready: Box::new(|folder| connected(&folder.join("socket")).is_some()),
        work: Box::new(|folder| {
            clients(&folder.join("socket"), |server, number| {
                let mut answers = String::new();
                for i in 0..ROUNDS {
                    let key = i % 40;
                    answers += &ask(server, &format!("set k{key} 0 0 5\r\nhello"));
                    answers += &ask(server, &format!("get k{key}"));
                    answers += &next(server);
                    answers += &next(server);
                    answers += &ask(server, &format!("add own{number}x{i} 0 0 1\r\n1"));
                }
                answers
            })
        }),
        stop: libc::SIGTERM,
    }
    .unharmed();
    let found = processes(&report, "memcached");
    assert_eq!(found.len(), 1, "{report:#}");
    assert!(sum(&found, "/threads/created") >= 5, "{report:#}");
    assert!(sum(&found, "/totals/acquisitions") >= 4 * ROUNDS * 3, "{report:#}");
}

#[test]
fn redis() {
    let Some(program) = installed("redis-server") else { return };
    const ROUNDS: usize = 300;
    let report = Server {
        command: Box::new(|_| {
            let mut line = vec![program.clone().into_os_string()];
            line.extend(words(&["--port", "0", "--unixsocket", "socket", "--save", ""]));
            line.extend(words(&["--daemonize", "no", "--dir", ".", "--io-threads", "2"]));
            line
        }),
        ready: Box::new(|folder| {
            connected(&folder.join("socket")).is_some_and(|mut c| ask(&mut c, "PING") == "+PONG")
        }),
        work: Box::new(|folder| {
            let socket = folder.join("socket");
            let mut answers = clients(&socket, |server, number| {
                let mut answers = String::new();
                for i in 0..ROUNDS {
                    answers += &ask(server, &format!("SET k{number}x{i} value{i}"));
                    answers += &ask(server, &format!("GET k{number}x{i}"));
                    answers += &next(server);
                }
                answers
            });
            let mut client = connected(&socket).expect("a connection");
            answers += &ask(&mut client, "BGSAVE");
            answers += &ask(&mut client, "DBSIZE");
            answers += &ask(&mut client, "FLUSHALL ASYNC");
            // The child that saves has ended, however long it takes.
            super::until("the data are saved", || {
                ask(&mut client, "INFO persistence");
                let mut text = String::new();
                while !text.contains("module_fork_last_cow_size") {
                    text = text + &next(&mut client) + "\n";
                }
                next(&mut client);
                std::thread::sleep(Duration::from_millis(20));
                text.contains("rdb_bgsave_in_progress:0")
                    && text.contains("rdb_last_bgsave_status:ok")
            });
            answers
        }),
        stop: libc::SIGTERM,
    }
    .unharmed();
    let found = processes(&report, "redis-server");
    assert!(sum(&found, "/threads/created") >= 4, "{report:#}");
    assert!(names(&report, "bio") || names(&report, "redis"), "{report:#}");
}

const NGINX: &str = "
    daemon off; master_process on; worker_processes 2; pid nginx.pid;
    thread_pool default threads=3;
    events { worker_connections 64; }
    http {
        access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3;
        uwsgi_temp_path t4; scgi_temp_path t5;
        server {
            listen unix:FOLDER/socket; root FOLDER/html;
            location /big { aio threads; sendfile off; output_buffers 1 32k; }
        }
    }";

fn nginx_line(program: &Path, folder: &Path) -> Vec<OsString> {
    fs::create_dir_all(folder.join("html")).expect("made");
    fs::write(folder.join("html/index.html"), "hello").expect("written");
    fs::write(folder.join("html/big"), vec![b'x'; 200_000]).expect("written");
    let user = if is_root() { "user root;" } else { "" };
    let text = format!("{user}{}", NGINX.replace("FOLDER", folder.to_str().expect("text")));
    fs::write(folder.join("nginx.conf"), text).expect("written");
    let mut line = vec![program.as_os_str().to_owned()];
    line.extend(words(&["-e", "stderr", "-p"]));
    line.push(folder.as_os_str().to_owned());
    line.extend(words(&["-c", "nginx.conf"]));
    line
}

#[test]
fn nginx() {
    let Some(program) = installed("nginx") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let line = nginx_line(&program, folder.path());
    let tried = Command::new(&program).args(&line[1..]).arg("-t").output().expect("it starts");
    if !tried.status.success() {
        return skip(&format!("this nginx cannot do it: {tried:?}"));
    }
    let report = Server {
        command: Box::new(|folder| nginx_line(&program, folder)),
        ready: Box::new(|folder| connected(&folder.join("socket")).is_some()),
        work: Box::new(|folder| {
            let socket = folder.join("socket");
            let get = |path: &str| {
                let mut server = connected(&socket).expect("a connection");
                let request = format!("GET {path} HTTP/1.0\r\n\r\n");
                server.get_mut().write_all(request.as_bytes()).expect("sent");
                let mut text = String::new();
                server.read_to_string(&mut text).expect("an answer");
                let (head, body) = text.split_once("\r\n\r\n").expect("a head");
                format!("{} {}\n", head.lines().next().expect("a line"), body.len())
            };
            clients(&socket, |_, _| {
                (0..25).map(|_| get("/") + &get("/big") + &get("/no")).collect()
            })
        }),
        stop: libc::SIGQUIT,
    }
    .unharmed();
    // The master and two workers; those have the threads.
    let found = processes(&report, "nginx");
    assert!(found.len() >= 2, "{report:#}");
    assert!(sum(&found, "/threads/created") >= 8, "{report:#}");
    assert!(names(&report, "ngx_") || names(&report, "nginx+0x"), "{report:#}");
}

/// Returns a program of PostgreSQL: Debian keeps them apart.
fn postgres_program(name: &str) -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<_> = versions.map(|version| version.path().join("bin").join(name)).collect();
    found.extend(
        ["/usr/bin", "/usr/local/bin"].iter().chain(&MORE_FOLDERS).map(|f| Path::new(f).join(name)),
    );
    found.retain(|file| file.is_file());
    if found.is_empty() {
        skip(&format!("{name} is not installed"));
    }
    found.into_iter().next()
}

/// It refuses to run as root: then as nobody.
const NOBODY: u32 = 65534;

fn as_somebody() -> Option<Vec<OsString>> {
    if !is_root() {
        return Some(Vec::new());
    }
    let program = installed("setpriv")?;
    let mut line = vec![program.into_os_string()];
    line.extend(words(&["--reuid=65534", "--regid=65534", "--clear-groups"]));
    Some(line)
}

fn give_away(folder: &Path) {
    if is_root() {
        std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY)).expect("given away");
    }
}

#[test]
fn postgresql() {
    let (Some(initdb), Some(postgres), Some(pgbench)) =
        (postgres_program("initdb"), postgres_program("postgres"), postgres_program("pgbench"))
    else {
        return;
    };
    let Some(prefix) = as_somebody() else { return };
    let line = |program: &Path, rest: &[&str]| {
        let mut line = prefix.clone();
        line.push(program.as_os_str().to_owned());
        line.extend(words(rest));
        line
    };
    let report = Server {
        command: Box::new(|folder| {
            give_away(folder);
            let made = line(&initdb, &["-A", "trust", "-N", "-U", "bench", "-D", "data"]);
            let made = Command::new(&made[0]).args(&made[1..]).current_dir(folder).output();
            let made = made.expect("initdb starts");
            assert!(made.status.success(), "{made:?}");
            let options = ["-D", "data", "-F", "-k", folder.to_str().expect("text")];
            let mut line = line(&postgres, &options);
            line.extend(words(&["-c", "listen_addresses=", "-c", "shared_buffers=16MB"]));
            line
        }),
        ready: Box::new(|folder| {
            folder.join(".s.PGSQL.5432").exists() && {
                let said = bench(&line(&pgbench, &["-i", "-q", "-s", "1"]), folder, false);
                said.is_some()
            }
        }),
        work: Box::new(|folder| {
            let load = line(&pgbench, &["-c", "4", "-j", "2", "-t", "25"]);
            bench(&load, folder, true).expect("pgbench succeeds")
        }),
        stop: libc::SIGINT,
    }
    .unharmed();
    assert_eq!(report["processes"].as_array().map(Vec::is_empty), Some(false), "{report:#}");
    let processes = report["processes"].as_array().expect("an array").len() as u64;
    let all = processes + report["silent_processes"].as_u64().expect("a number");
    assert!(all >= 8, "one for each connection, and those in the background: {report:#}");
}

/// Returns what pgbench says of its transactions; `None` if it failed.
fn bench(line: &[OsString], folder: &Path, watch: bool) -> Option<String> {
    let line: Vec<&OsStr> = line.iter().map(OsString::as_os_str).collect();
    let host = ["-h", folder.to_str().expect("text"), "-U", "bench", "postgres"];
    if !watch {
        let output = Command::new(line[0]).args(&line[1..]).args(host).output().expect("it starts");
        return output.status.success().then(String::new);
    }
    fn counts(text: &str) -> String {
        text.lines().filter(|line| line.starts_with("number of")).collect::<Vec<_>>().join("\n")
    }
    let mut case = Case::new(line[0]).edit(counts);
    for word in &line[1..] {
        case = case.arg(word);
    }
    let seen = case.args(&host).unharmed();
    assert_eq!(seen.status, Some(0));
    seen.had("pgbench", 2, 1);
    Some(counts(&seen.stdout))
}
