//! Heaps: what they hold, when it ends, who may use it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use hummock::Heap;

struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn boxes_drop_what_they_own() {
    let drops = AtomicUsize::new(0);
    let heap = Heap::new().unwrap();
    drop(heap.boxed(Counted(&drops)).unwrap());
    assert_eq!(drops.load(Ordering::Relaxed), 1);
    assert_eq!(heap.stats().live_blocks, 0);

    let kept = heap.boxed(Counted(&drops)).unwrap().into_inner();
    assert_eq!((drops.load(Ordering::Relaxed), heap.stats().live_blocks), (1, 0));
    drop(kept);

    heap.boxed(Counted(&drops)).unwrap().leak();
    heap.alloc(Counted(&drops)).unwrap();
    assert_eq!(heap.stats().live_blocks, 2);
    drop(heap);
    assert_eq!(drops.load(Ordering::Relaxed), 2, "a heap's end drops nothing");
}

#[test]
fn values_strings_and_slices() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(align(256))]
    struct Aligned(u8);

    let heap = Heap::new().unwrap();
    let aligned = heap.alloc(Aligned(7)).unwrap();
    assert_eq!((*aligned, aligned as *mut _ as usize % 256), (Aligned(7), 0));
    let several = heap.alloc_slice(&[Aligned(1), Aligned(2)]).unwrap();
    assert_eq!((several[1], several.as_ptr() as usize % 256), (Aligned(2), 0));
    let text = heap.alloc_str("grüße").unwrap();
    text.make_ascii_uppercase();
    assert_eq!(text, "GRüßE");
    assert_eq!(heap.stats().live_blocks, 3);

    assert_eq!(heap.alloc_str("").unwrap(), "");
    assert_eq!(heap.alloc_slice::<u64>(&[]).unwrap().len(), 0);
    heap.alloc(()).unwrap();
    drop(heap.boxed(()).unwrap());
    assert_eq!(heap.stats().live_blocks, 3, "what has no size takes no block");
}

#[test]
fn threads_share_a_heap() {
    let heap = Heap::new().unwrap();
    thread::scope(|scope| {
        for thread in 0..4u64 {
            let heap = &heap;
            scope.spawn(move || {
                let mut boxes = Vec::new();
                for number in 0..20_000u64 {
                    boxes.push(heap.boxed([thread, number]).unwrap());
                    if number % 3 != 0 {
                        boxes.swap_remove(number as usize % boxes.len());
                    }
                }
                assert!(boxes.iter().all(|kept| kept[0] == thread));
            });
        }
    });
    assert_eq!(heap.stats().live_blocks, 0);
}

#[cfg(feature = "allocator-api2")]
#[test]
fn collections_live_in_a_heap() {
    use allocator_api2::vec::Vec;

    let heap = Heap::new().unwrap();
    let mut numbers = Vec::new_in(&heap);
    numbers.extend(0..100_000u32);
    numbers.truncate(10);
    numbers.shrink_to_fit();
    assert_eq!(numbers.iter().sum::<u32>(), 45);
    assert_eq!(heap.stats().live_blocks, 1);
    let mut aligned = Vec::new_in(&heap);
    for number in 0..1_000u128 {
        aligned.push(number);
        assert!(aligned.as_ptr().is_aligned());
    }
    assert_eq!(aligned.iter().sum::<u128>(), 499_500);
    drop(aligned);
    let none: Vec<u32, &Heap> = Vec::new_in(&heap);
    drop((numbers, none));
    assert_eq!(heap.stats().live_blocks, 0);
}
