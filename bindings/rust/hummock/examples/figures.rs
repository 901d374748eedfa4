//! Holds a block for a tag, and prints the figures: as numbers, then as JSON.

#[global_allocator]
static GLOBAL: hummock::Hummock = hummock::Hummock;

fn main() {
    hummock::tag(4711);
    let block = vec![1u8; 10_000_000];
    hummock::tag(0);
    let stats = hummock::Stats::now();
    println!("{} {} {} {}", stats.large_blocks(), stats.large_bytes(), stats.mapped(), stats.purged());
    let mut text = vec![0; hummock::stats_json(&mut []) + 16384];
    let length = hummock::stats_json(&mut text);
    println!("{}", String::from_utf8_lossy(&text[..length]));
    drop(block);
}
