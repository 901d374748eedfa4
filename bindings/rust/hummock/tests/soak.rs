//! Vec, String and HashMap churn over threads, with Hummock as the global allocator.
//!
//! SOAK_LENGTH=n makes it n times as long; SOAK_SEED=n repeats a run.

use std::collections::HashMap;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread;

#[global_allocator]
static ALLOCATOR: hummock::Hummock = hummock::Hummock;

const THREADS: u64 = 4;
const ROUNDS: u64 = 100_000;
const KEYS: u64 = 2_000;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) % bound
    }
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Bytes that show their key and length.
fn bytes(key: u64, length: usize) -> Vec<u8> {
    (0..length).map(|at| (key as usize + at) as u8).collect()
}

fn check_bytes(key: u64, bytes: &[u8]) {
    assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == (key as usize + at) as u8));
}

/// One thread: a map that grows and shrinks, buffers that are resized, boxes that others end.
fn churn(
    seed: u64,
    rounds: u64,
    others: Vec<Sender<(u64, Vec<u8>)>>,
    inbox: Receiver<(u64, Vec<u8>)>,
) -> u64 {
    let mut random = Random(seed);
    let mut words: HashMap<u64, String> = HashMap::new();
    let mut buffers: HashMap<u64, Vec<u8>> = HashMap::new();
    let mut received = 0;
    for _ in 0..rounds {
        let key = random.below(KEYS);
        match random.below(8) {
            0 => drop(words.remove(&key)),
            1 | 2 => {
                let word = words.entry(key).or_default();
                assert!(word.bytes().all(|letter| letter == b'a' + (key % 26) as u8));
                word.extend(
                    std::iter::repeat((b'a' + (key % 26) as u8) as char).take(random.below(300) as usize),
                );
                if word.len() > 5_000 {
                    word.truncate(7);
                    word.shrink_to_fit();
                }
            }
            3 | 4 => {
                let length = 1 << random.below(17);
                drop(buffers.insert(key, bytes(key, length as usize)));
            }
            5 => {
                if let Some(buffer) = buffers.get_mut(&key) {
                    check_bytes(key, buffer);
                    buffer.truncate(random.below(buffer.len() as u64 + 1) as usize);
                    buffer.shrink_to_fit();
                }
            }
            6 => {
                let length = random.below(3_000) as usize;
                let to = random.below(others.len() as u64) as usize;
                others[to].send((key, bytes(key, length))).expect("all threads receive to the end");
            }
            _ => {
                for (key, buffer) in inbox.try_iter() {
                    check_bytes(key, &buffer);
                    received += 1;
                }
            }
        }
    }
    drop(others);
    for (key, buffer) in inbox {
        check_bytes(key, &buffer);
        received += 1;
    }
    received
}

#[test]
fn soak() {
    let seed = from_environment("SOAK_SEED", 88_172_645_463_325_252);
    let rounds = ROUNDS * from_environment("SOAK_LENGTH", 1);
    println!("SOAK_SEED={seed}");
    let before = hummock::Stats::now();
    let (senders, inboxes): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel()).unzip();
    let threads: Vec<_> = inboxes
        .into_iter()
        .zip(1..)
        .map(|(inbox, number): (_, u64)| {
            let senders = senders.clone();
            thread::spawn(move || churn(seed.wrapping_mul(number), rounds, senders, inbox))
        })
        .collect();
    drop(senders);
    let received: u64 = threads.into_iter().map(|thread| thread.join().expect("no thread failed")).sum();
    assert!(received > rounds * THREADS / 16, "only {received} buffers came over");

    let after = hummock::Stats::now();
    assert!(after.peak() > 10 << 20, "the churn was served by something else");
    assert!(after.live() < before.live() + (1 << 20), "{} bytes stayed in use", after.live());
    assert!(after.threads() <= before.threads() + 1, "{} threads still have a heap", after.threads());
}
