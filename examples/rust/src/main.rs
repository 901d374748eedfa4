//! The ten commonest words of some files, and what counting them took.
//!
//! `cargo run --release -- ../../docs/*.md`

use std::collections::HashMap;
use std::error::Error;
use std::{env, fs};

use hummock::{Heap, Stats};

#[global_allocator]
static ALLOCATOR: hummock::Hummock = hummock::Hummock;

fn main() -> Result<(), Box<dyn Error>> {
    // The words stand in a heap of their own, which ends at once; the table is the global allocator's.
    let heap = Heap::new()?;
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in env::args().skip(1) {
        let text = fs::read_to_string(name)?.to_lowercase();
        for word in text.split(|letter: char| !letter.is_ascii_lowercase()).filter(|word| !word.is_empty()) {
            match counts.get_mut(word) {
                Some(count) => *count += 1,
                None => drop(counts.insert(heap.alloc_str(word)?, 1)),
            }
        }
    }
    let mut words: Vec<_> = counts.iter().collect();
    words.sort_by(|(word, count), (other, others)| others.cmp(count).then(word.cmp(other)));
    for (word, count) in words.iter().take(10) {
        println!("{count} {word}");
    }
    let figures = Stats::now();
    eprintln!(
        "{} words in {} KiB of their heap; {} KiB in use, {} KiB at most",
        words.len(),
        heap.stats().live_bytes / 1024,
        figures.live() / 1024,
        figures.peak() / 1024
    );
    Ok(())
}
