//! The promises of `GlobalAlloc`.

use std::alloc::{GlobalAlloc, Layout};

use hummock::Hummock;

fn layouts() -> impl Iterator<Item = Layout> {
    let sizes = [1, 7, 8, 9, 16, 100, 1024, 5000, 70_000, 3_000_000];
    (0..=16).flat_map(move |power| {
        sizes.into_iter().map(move |size| Layout::from_size_align(size, 1 << power).unwrap())
    })
}

fn is_aligned(block: *mut u8, layout: Layout) -> bool {
    block as usize % layout.align() == 0
}

#[test]
fn blocks_are_aligned_and_writable() {
    for layout in layouts() {
        unsafe {
            let block = Hummock.alloc(layout);
            assert!(!block.is_null() && is_aligned(block, layout), "{layout:?}");
            block.write_bytes(0xA5, layout.size());
            Hummock.dealloc(block, layout);
        }
    }
}

#[test]
fn zeroed_blocks_are_zero() {
    for layout in layouts() {
        unsafe {
            for _ in 0..2 {
                let block = Hummock.alloc_zeroed(layout);
                assert!(is_aligned(block, layout), "{layout:?}");
                assert!(std::slice::from_raw_parts(block, layout.size()).iter().all(|byte| *byte == 0));
                block.write_bytes(0xFF, layout.size());
                Hummock.dealloc(block, layout);
            }
        }
    }
}

#[test]
fn realloc_keeps_contents_and_alignment() {
    for layout in layouts() {
        for new_size in [1, 4, 8, 9, 17, 800, 90_000, 5_000_000] {
            unsafe {
                let block = Hummock.alloc(layout);
                block.write_bytes(0x3C, layout.size());
                let moved = Hummock.realloc(block, layout, new_size);
                let new_layout = Layout::from_size_align(new_size, layout.align()).unwrap();
                assert!(is_aligned(moved, new_layout), "{layout:?} to {new_size}");
                let kept = std::slice::from_raw_parts(moved, layout.size().min(new_size));
                assert!(kept.iter().all(|byte| *byte == 0x3C));
                Hummock.dealloc(moved, new_layout);
            }
        }
    }
}

#[test]
fn what_cannot_be_had_is_null() {
    let huge = Layout::from_size_align(isize::MAX as usize - 4096, 16).unwrap();
    unsafe {
        assert!(Hummock.alloc(huge).is_null());
        assert!(Hummock.alloc_zeroed(huge).is_null());
        let small = Layout::from_size_align(100, 16).unwrap();
        let block = Hummock.alloc(small);
        block.write_bytes(1, 100);
        assert!(Hummock.realloc(block, small, huge.size()).is_null());
        assert_eq!(*block.add(99), 1);
        Hummock.dealloc(block, small);
    }
}
