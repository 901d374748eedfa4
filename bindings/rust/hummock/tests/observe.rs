//! Looking into the heap from Rust.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use hummock::Heap;

fn json() -> String {
    let mut text = vec![0; hummock::stats_json(&mut []) + 4096];
    let length = hummock::stats_json(&mut text);
    text.truncate(length);
    String::from_utf8(text).unwrap()
}

#[test]
fn a_walk_tells_of_what_lives() {
    let heap = Heap::new().unwrap();
    let mut expected = BTreeMap::new();
    let kept: Vec<_> = (0..500).map(|number: u64| heap.boxed([number; 9]).unwrap()).collect();
    for each in &kept {
        expected.insert(each.as_ptr() as usize, 80);
    }
    let mut seen = BTreeMap::new();
    assert!(heap.walk(|block, size| {
        seen.insert(block.as_ptr() as usize, size);
        true
    }));
    assert_eq!(seen, expected);
    let mut left = 10;
    heap.walk(|_, _| {
        left -= 1;
        left != 0
    });
    assert_eq!(left, 0);
}

#[test]
fn names_tags_and_the_use_of_slabs() {
    let heap = Heap::new().unwrap();
    heap.set_name(c"requests");
    let number = heap.boxed(17u64).unwrap();
    assert!(json().contains("\"name\":\"requests\""));
    assert_eq!(hummock::slab_utilisation(core::ptr::from_ref(&*number).cast()), Some(100));
    assert_eq!(hummock::slab_utilisation(core::ptr::from_ref(&left_alone).cast()), None);

    let before = hummock::tag(4711);
    let block = unsafe { hummock_sys::hummock_malloc(1 << 20) };
    assert_eq!(hummock::tag(before), 4711);
    let total = hummock::tag_total(4711).unwrap();
    assert!(total.bytes >= 1 << 20 && total.blocks >= 1);
    assert_eq!(hummock::tag_total(4712), None);
    unsafe { hummock_sys::hummock_free(block) };
}

#[allow(non_upper_case_globals)]
static left_alone: u64 = 0;

static CAME: AtomicUsize = AtomicUsize::new(0);
static WENT: AtomicUsize = AtomicUsize::new(0);
const ODD: usize = 4711 * 11;

struct Count;
impl hummock::Hooks for Count {
    fn allocated(block: NonNull<u8>, size: usize) {
        if size == ODD {
            CAME.store(block.as_ptr() as usize, Relaxed);
        }
    }
    fn released(block: NonNull<u8>) {
        if block.as_ptr() as usize == CAME.load(Relaxed) {
            WENT.fetch_add(1, Relaxed);
        }
    }
}

#[test]
fn hooks_are_told_of_blocks() {
    assert!(hummock::set_hooks::<Count>());
    let block = unsafe { hummock_sys::hummock_malloc(ODD) };
    assert_eq!(CAME.load(Relaxed), block as usize);
    unsafe { hummock_sys::hummock_free(block) };
    assert_eq!(WENT.load(Relaxed), 1);
    hummock::remove_hooks();
    unsafe { hummock_sys::hummock_free(hummock_sys::hummock_malloc(ODD)) };
    assert_eq!(WENT.load(Relaxed), 1);
}
