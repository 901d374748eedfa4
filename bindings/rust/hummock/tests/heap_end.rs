//! What a heap held is given back when it ends. Alone in its process, for the figures are the process's.

use hummock::{Heap, Stats};

#[test]
fn the_end_of_a_heap_gives_everything_back() {
    let before = Stats::now().heaps();
    for _ in 0..20 {
        let heap = Heap::new().unwrap();
        for size in 0..2_000 {
            heap.alloc_slice(&vec![1u8; size]).unwrap();
        }
        heap.alloc_slice(&vec![1u8; 20 << 20]).unwrap();
        assert_eq!(heap.stats().live_blocks, 2_000);
        assert_eq!(Stats::now().heaps(), before + 1);
    }
    let now = Stats::now();
    assert_eq!(now.heaps(), before);
    assert!(now.peak() < 200 << 20, "twenty heaps of 22 MiB each were never there together");
}
