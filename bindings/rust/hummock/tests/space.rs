//! Spaces: their extent, who may use them, what they promise.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use hummock::{OutOfMemory, Property, Space, SpaceOptions, Threads, Wish};

const MIB: usize = 1 << 20;

#[test]
fn never_more_than_its_extent() {
    let space = SpaceOptions::new(MIB).create().unwrap();
    let mut blocks = Vec::new();
    while let Ok(block) = space.boxed([1u8; 1000]) {
        blocks.push(block);
    }
    let full = space.stats();
    assert!(blocks.len() > 900, "{full:?}");
    assert_eq!((full.bytes, full.live_blocks, full.expansions), (MIB, blocks.len(), 0));
    assert_eq!(full.bytes, full.free + full.used + full.overhead);
    assert!(full.failures >= 1);
    blocks.pop();
    space.boxed([1u8; 1000]).expect("what was freed can be had again");
    drop(blocks);
    assert_eq!((space.stats().live_blocks, space.stats().used), (0, 0));
}

#[test]
fn growing_and_shrinking() {
    let space = SpaceOptions::new(MIB).grow(MIB, 4 * MIB).create().unwrap();
    let large = space.boxed([0u8; 3 * MIB / 2]).unwrap();
    assert!(space.stats().expansions >= 1 && space.stats().bytes > 3 * MIB / 2);
    space.expand(MIB / 2).unwrap();
    assert!(space.expand(64 * MIB).is_err());
    drop(large);
    assert!(space.shrink(usize::MAX) > 0);
    assert_eq!(space.stats().bytes, MIB);
}

#[test]
fn values_strings_and_drops() {
    struct Counted<'a>(&'a AtomicUsize);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    #[repr(align(256))]
    struct Aligned(u8);

    let drops = AtomicUsize::new(0);
    let space = SpaceOptions::new(MIB).create().unwrap();
    drop(space.boxed(Counted(&drops)).unwrap());
    space.alloc(Counted(&drops)).unwrap();
    assert_eq!(drops.load(Ordering::Relaxed), 1);
    assert_eq!(space.alloc_str("Größe").unwrap(), "Größe");
    let aligned = space.alloc(Aligned(3)).unwrap();
    assert_eq!((aligned.0, aligned as *mut _ as usize % 256), (3, 0));
    assert_eq!(space.stats().live_blocks, 3);
    drop(space);
    assert_eq!(drops.load(Ordering::Relaxed), 1, "a space's end drops nothing");
}

#[test]
fn the_owner_alone_allocates() {
    let mut space = SpaceOptions::new(MIB).create().unwrap();
    let block = space.boxed(5u64).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(space.boxed(1).err(), Some(OutOfMemory));
            drop(block); // but any thread may free
        });
    });
    assert!(space.boxed(1).is_ok());
    let space = thread::spawn(move || {
        space.own().unwrap();
        assert!(space.boxed(1).is_ok());
        space
    });
    let space = space.join().unwrap();
    assert!(space.boxed(1).is_err(), "it is another thread's now");
}

#[test]
fn zeros_at_first_and_no_child() {
    let space = SpaceOptions::new(MIB).name(c"frames").zeroed().at_first().create().unwrap();
    for _ in 0..2 {
        let block = space.allocate(Layout::new::<[u8; 1000]>()).unwrap();
        // SAFETY: the block is this long and in nobody else's use.
        let bytes = unsafe { std::slice::from_raw_parts_mut(block.as_ptr(), 1000) };
        assert!(bytes.iter().all(|byte| *byte == 0));
        bytes.fill(1);
        // SAFETY: it is live, and `bytes` is not used again.
        unsafe { space.deallocate(block) };
    }
    let alone = SpaceOptions::new(MIB).no_fork(Wish::Require).create().unwrap();
    assert!(alone.has(Property::NoFork) && !space.has(Property::NoFork));
}

#[test]
fn threads_share_a_space() {
    for threads in [Threads::Spin, Threads::Inherit] {
        let space = SpaceOptions::new(8 * MIB).threads(threads).cache(16, 32, 256).create().unwrap();
        thread::scope(|scope| {
            for thread in 0..4u64 {
                let space = &space;
                scope.spawn(move || {
                    let mut boxes = Vec::new();
                    for number in 0..5_000u64 {
                        boxes.push(space.boxed([thread, number]).unwrap());
                        if number % 3 != 0 {
                            boxes.swap_remove(number as usize % boxes.len());
                        }
                    }
                    assert!(boxes.iter().all(|kept| kept[0] == thread));
                });
            }
        });
        let stats = space.stats();
        assert_eq!(stats.bytes, stats.free + stats.used + stats.overhead);
    }
}

#[test]
fn proven_spaces_refuse_nothing() {
    const MAX_LIVE: usize = 100_000;
    let bytes = Space::required_size(MAX_LIVE, 1000, 100).unwrap();
    let space = SpaceOptions::new(bytes).proven().create().unwrap();
    let mut blocks: Vec<(NonNull<u8>, usize)> = Vec::new();
    let mut live = 0;
    let mut random = 88_172_645_463_325_252u64;
    for _ in 0..200_000 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let size = 100 + (random >> 40) as usize % 901;
        if live + size <= MAX_LIVE {
            let layout = Layout::from_size_align(size, 8).unwrap();
            blocks.push((space.allocate(layout).expect("the space was proven to be large enough"), size));
            live += size;
        } else {
            let (block, size) = blocks.swap_remove((random >> 20) as usize % blocks.len());
            unsafe { space.deallocate(block) };
            live -= size;
        }
    }
    assert_eq!((space.stats().failures, space.stats().live_blocks), (0, blocks.len()));
    assert_eq!(Space::required_size(1000, 10, 100), None);
}

#[test]
fn properties_and_refusals() {
    let space = SpaceOptions::new(MIB).populate(Wish::Require).lock(Wish::Try).create().unwrap();
    assert!(space.has(Property::Populated) && !space.has(Property::NoFork));
    let too_small = SpaceOptions::new(0).create().unwrap_err();
    assert_eq!(too_small.raw_os_error(), 22);
    assert!(SpaceOptions::new(MIB).grow(MIB, MIB / 2).create().is_err());
    assert!(format!("{space:?}").contains("bytes: 1048576"));
}

#[cfg(feature = "allocator-api2")]
#[test]
fn collections_live_in_a_space() {
    use allocator_api2::vec::Vec;

    let space = SpaceOptions::new(MIB).create().unwrap();
    let mut numbers = Vec::new_in(&space);
    numbers.extend(0..10_000u32);
    assert_eq!(numbers.iter().sum::<u32>(), 49_995_000);
    assert_eq!(space.stats().live_blocks, 1);
    assert!(numbers.try_reserve(MIB).is_err());
    drop(numbers);
    assert_eq!(space.stats().live_blocks, 0);
}
