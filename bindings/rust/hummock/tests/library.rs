//! What is known of the whole process. The only test of its program: others would change the figures meanwhile.

use std::alloc::{GlobalAlloc, Layout};

use hummock::Hummock;

#[test]
fn figures_of_the_process() {
    assert_eq!(hummock::version(), env!("CARGO_PKG_VERSION"));
    assert!(!hummock::is_malloc(), "the C library's malloc is its own");
    let big = Layout::from_size_align(50 << 20, 16).unwrap();
    let before = hummock::Stats::now();
    let block = unsafe { Hummock.alloc(big) };
    let now = hummock::Stats::now();
    assert!(now.live() >= before.live() + big.size() && now.large_blocks() > before.large_blocks());
    unsafe { Hummock.dealloc(block, big) };
    let block = unsafe { Hummock.alloc(Layout::from_size_align(1 << 20, 16).unwrap()) };
    unsafe {
        block.write_bytes(1, 1 << 20);
        Hummock.dealloc(block, Layout::from_size_align(1 << 20, 16).unwrap());
    }
    hummock::trim(0);
    let classes: Vec<_> = now.classes().collect();
    assert_eq!(classes.len(), hummock_sys::HUMMOCK_CLASS_COUNT - 1, "the first entry is not used");
    assert!(classes.iter().any(|class| class.block_size == 1024));
    assert!(classes.iter().all(|class| class.block_size > 0));
    assert!(format!("{now:?}").contains("live: "));
}
