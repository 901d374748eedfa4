//! Heaps: sets of blocks that are freed together.

use core::alloc::Layout;
use core::ffi::CStr;
use core::fmt;
use core::mem;
use core::ptr::NonNull;

use hummock_sys as sys;

use crate::observe::walk_raw;
use crate::place::{holds_values, OutOfMemory, Owned, Place};

/// The owner of a value in a [`Heap`]: a box that cannot outlive it.
pub type HeapBox<'heap, T> = Owned<'heap, T, Heap>;

/// What a heap holds now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapStats {
    /// Bytes of room of the live blocks.
    pub live_bytes: usize,
    /// Their number.
    pub live_blocks: usize,
    /// Bytes of the slabs and large blocks that the heap holds.
    pub mapped_bytes: usize,
    /// Their number.
    pub slabs: usize,
}

/// A set of blocks that are freed together, at the latest when the heap is dropped; that costs one step for
/// some hundred blocks. Any thread may use it; its calls take a lock.
///
/// ```
/// # fn main() -> Result<(), hummock::OutOfMemory> {
/// let heap = hummock::Heap::new()?;
/// for number in 0..1000 {
///     heap.alloc(number)?;            // lives as long as the heap
/// }
/// let text = heap.boxed([0u8; 100])?; // ends here, or earlier by drop
/// assert_eq!(heap.stats().live_blocks, 1001);
/// drop(text);
/// assert_eq!(heap.stats().live_blocks, 1000);
/// # Ok(())
/// # }
/// ```
///
/// What was allocated cannot outlive it:
///
/// ```compile_fail,E0505
/// let heap = hummock::Heap::new().unwrap();
/// let number = heap.alloc(1).unwrap();
/// drop(heap);
/// assert_eq!(*number, 1);
/// ```
pub struct Heap {
    raw: NonNull<sys::hummock_heap_t>,
}

// SAFETY: the functions of a heap may be called from any thread.
unsafe impl Send for Heap {}
// SAFETY: as above; they take the heap's lock.
unsafe impl Sync for Heap {}

impl Heap {
    /// A heap with nothing in it.
    pub fn new() -> Result<Heap, OutOfMemory> {
        // SAFETY: no preconditions.
        let raw = unsafe { sys::hummock_heap_create() };
        NonNull::new(raw).map(|raw| Heap { raw }).ok_or(OutOfMemory)
    }

    /// A block for `layout`, with anything in it. It ends with the heap, or by [`Heap::deallocate`].
    pub fn allocate(&self, layout: Layout) -> Result<NonNull<u8>, OutOfMemory> {
        // SAFETY: the heap is alive; a Layout's alignment is a power of two.
        let block = unsafe { sys::hummock_heap_memalign(self.raw.as_ptr(), layout.align(), layout.size()) };
        NonNull::new(block.cast()).ok_or(OutOfMemory)
    }

    /// Frees a block.
    ///
    /// # Safety
    /// `block` is a live block of this heap, and nothing refers to what is in it.
    pub unsafe fn deallocate(&self, block: NonNull<u8>) {
        sys::hummock_heap_free(self.raw.as_ptr(), block.as_ptr().cast());
    }

    /// Gives the heap a name, which stands beside its figures in `hummock stats`; its first 23 bytes are kept.
    pub fn set_name(&self, name: &CStr) {
        // SAFETY: the heap is alive, and the name ends with its NUL.
        unsafe { sys::hummock_heap_set_name(self.raw.as_ptr(), name.as_ptr()) };
    }

    /// Calls `each` with the address and the room of each live block until it returns false. False: not to be
    /// had, as in checked mode.
    pub fn walk<F: FnMut(NonNull<u8>, usize) -> bool>(&self, each: F) -> bool {
        walk_raw(self.raw.as_ptr(), each)
    }

    /// What the heap holds now. The cost is one step a slab.
    pub fn stats(&self) -> HeapStats {
        let mut raw = sys::hummock_heap_stats_t {
            size: mem::size_of::<sys::hummock_heap_stats_t>(),
            ..Default::default()
        };
        // SAFETY: the heap is alive and `raw` knows its size.
        unsafe { sys::hummock_heap_stats(self.raw.as_ptr(), &mut raw) };
        HeapStats {
            live_bytes: raw.live_bytes,
            live_blocks: raw.live_blocks,
            mapped_bytes: raw.mapped_bytes,
            slabs: raw.slabs,
        }
    }
}

holds_values!(Heap, "heap");

impl Place for Heap {
    fn take(&self, layout: Layout) -> Result<NonNull<u8>, OutOfMemory> {
        self.allocate(layout)
    }
    unsafe fn give(&self, block: NonNull<u8>) {
        self.deallocate(block);
    }
    unsafe fn resize(&self, block: NonNull<u8>, size: usize) -> Result<NonNull<u8>, OutOfMemory> {
        let moved = sys::hummock_heap_realloc(self.raw.as_ptr(), block.as_ptr().cast(), size);
        NonNull::new(moved.cast()).ok_or(OutOfMemory)
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: nobody borrows the heap any more.
        unsafe { sys::hummock_heap_destroy(self.raw.as_ptr()) }
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Heap").field(&self.stats()).finish()
    }
}
