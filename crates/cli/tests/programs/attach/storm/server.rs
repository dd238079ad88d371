//! A server with locks of the standard library: one line for each request, one for each answer.
use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Barrier, Condvar, Mutex, RwLock, mpsc};
use std::thread;
use std::time::Duration;

type Job = (u64, Arc<(Mutex<Option<u64>>, Condvar)>);

#[derive(Default)]
struct Shared {
    sums: Mutex<HashMap<u64, i64>>,
    table: RwLock<HashMap<u64, u64>>,
    log: RwLock<Vec<u64>>,
    jobs: (Mutex<VecDeque<Job>>, Condvar),
    fair: Mutex<(u64, u64)>,
}

fn main() {
    let shared = Arc::new(Shared::default());
    for _ in 0..2 {
        let shared = shared.clone();
        thread::spawn(move || loop {
            let (number, slot) = {
                let mut jobs = shared.jobs.0.lock().unwrap();
                loop {
                    if let Some(job) = jobs.pop_front() {
                        break job;
                    }
                    jobs = shared.jobs.1.wait(jobs).unwrap();
                }
            };
            *slot.0.lock().unwrap() = Some(number * 3 + 1);
            slot.1.notify_one();
        });
    }
    // They keep the locks from being free whenever a request comes.
    let barrier = Arc::new(Barrier::new(2));
    for _ in 0..2 {
        let (shared, barrier) = (shared.clone(), barrier.clone());
        thread::spawn(move || loop {
            {
                let mut pair = shared.fair.lock().unwrap();
                pair.0 += 1;
                thread::sleep(Duration::from_micros(100));
                pair.1 += 1;
                assert_eq!(pair.0, pair.1);
            }
            {
                let _sums = shared.sums.lock().unwrap();
                thread::sleep(Duration::from_micros(100));
            }
            {
                let _table = shared.table.write().unwrap();
                thread::sleep(Duration::from_micros(100));
            }
            shared.log.write().unwrap().clear();
            barrier.wait();
            thread::sleep(Duration::from_millis(1));
        });
    }
    let (sender, receiver) = mpsc::channel::<(u64, mpsc::Sender<u64>)>();
    thread::spawn(move || {
        for (number, back) in receiver {
            back.send(number ^ 0xffff).unwrap();
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    for stream in listener.incoming() {
        let (stream, shared, sender) = (stream.unwrap(), shared.clone(), sender.clone());
        thread::spawn(move || {
            stream.set_nodelay(true).unwrap();
            let mut out = stream.try_clone().unwrap();
            for line in BufReader::new(stream).lines() {
                let Ok(line) = line else { return };
                let words: Vec<&str> = line.split(' ').collect();
                let number = |at: usize| words[at].parse::<u64>().unwrap();
                let answer = match words[0] {
                    "add" => {
                        let mut sums = shared.sums.lock().unwrap();
                        let sum = sums.entry(number(1)).or_default();
                        *sum += number(2) as i64;
                        *sum as u64
                    }
                    "put" => {
                        shared.table.write().unwrap().insert(number(1), number(2));
                        shared.log.write().unwrap().push(number(1));
                        number(2)
                    }
                    "get" => {
                        let _log = shared.log.read().unwrap().len();
                        shared.table.read().unwrap().get(&number(1)).copied().unwrap_or(0)
                    }
                    "job" => {
                        let slot = Arc::new(Default::default());
                        shared.jobs.0.lock().unwrap().push_back((number(1), Arc::clone(&slot)));
                        shared.jobs.1.notify_one();
                        let mut done = slot.0.lock().unwrap();
                        while done.is_none() {
                            done = slot.1.wait(done).unwrap();
                        }
                        done.unwrap()
                    }
                    "ask" => {
                        let (back, answer) = mpsc::channel();
                        sender.send((number(1), back)).unwrap();
                        answer.recv().unwrap()
                    }
                    _ => {
                        let pair = shared.fair.lock().unwrap();
                        pair.0 - pair.1
                    }
                };
                writeln!(out, "{answer}").unwrap();
            }
        });
    }
}
