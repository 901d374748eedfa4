//! Heaps: sets of blocks that end together.

use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{self, ManuallyDrop};
use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};
use core::slice;
use core::str;

use hummock_sys as sys;

#[cfg(feature = "allocator-api2")]
use crate::global::keeps_alignment;

/// The system had no more memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("out of memory")
    }
}

impl core::error::Error for OutOfMemory {}

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

/// A set of blocks that end together, at the latest when the heap is dropped; that costs one step for
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

    /// Ends a block.
    ///
    /// # Safety
    /// `block` is a live block of this heap, and nothing refers to what is in it.
    pub unsafe fn deallocate(&self, block: NonNull<u8>) {
        sys::hummock_heap_free(self.raw.as_ptr(), block.as_ptr().cast());
    }

    /// Moves `value` into the heap, where it stays until the heap ends. It is not dropped: what it owns
    /// elsewhere is not freed. See [`Heap::boxed`].
    #[allow(clippy::mut_from_ref)] // every call has a block of its own
    pub fn alloc<T>(&self, value: T) -> Result<&mut T, OutOfMemory> {
        let place = self.place::<T>()?;
        // SAFETY: fresh room for a T, which lives as long as the heap is borrowed.
        unsafe {
            place.as_ptr().write(value);
            Ok(&mut *place.as_ptr())
        }
    }

    /// Copies a slice into the heap, where it stays until the heap ends.
    #[allow(clippy::mut_from_ref)] // every call has a block of its own
    pub fn alloc_slice<T: Copy>(&self, items: &[T]) -> Result<&mut [T], OutOfMemory> {
        let place = match mem::size_of_val(items) {
            0 => NonNull::dangling(),
            _ => self.allocate(Layout::for_value(items))?.cast::<T>(),
        };
        // SAFETY: fresh room for as many, which lives as long as the heap is borrowed.
        unsafe {
            ptr::copy_nonoverlapping(items.as_ptr(), place.as_ptr(), items.len());
            Ok(slice::from_raw_parts_mut(place.as_ptr(), items.len()))
        }
    }

    /// Copies a string into the heap, where it stays until the heap ends.
    #[allow(clippy::mut_from_ref)] // every call has a block of its own
    pub fn alloc_str(&self, text: &str) -> Result<&mut str, OutOfMemory> {
        let bytes = self.alloc_slice(text.as_bytes())?;
        // SAFETY: a copy of a str.
        Ok(unsafe { str::from_utf8_unchecked_mut(bytes) })
    }

    /// Moves `value` into the heap and gives its owner, which drops it and frees its block.
    pub fn boxed<T>(&self, value: T) -> Result<HeapBox<'_, T>, OutOfMemory> {
        let place = self.place::<T>()?;
        // SAFETY: fresh room for a T.
        unsafe { place.as_ptr().write(value) };
        Ok(HeapBox { place, heap: self, owns: PhantomData })
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

    fn place<T>(&self) -> Result<NonNull<T>, OutOfMemory> {
        match mem::size_of::<T>() {
            0 => Ok(NonNull::dangling()),
            _ => Ok(self.allocate(Layout::new::<T>())?.cast()),
        }
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

/// The owner of a value in a [`Heap`]: a box that cannot outlive it.
pub struct HeapBox<'heap, T> {
    place: NonNull<T>,
    heap: &'heap Heap,
    owns: PhantomData<T>,
}

// SAFETY: an owner of a T, beside a reference to a heap, which any thread may use.
unsafe impl<T: Send> Send for HeapBox<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for HeapBox<'_, T> {}

impl<'heap, T> HeapBox<'heap, T> {
    /// Takes the value out and frees its block.
    pub fn into_inner(self) -> T {
        let this = ManuallyDrop::new(self);
        // SAFETY: read once; the block is freed, the value is not dropped.
        unsafe {
            let value = this.place.as_ptr().read();
            this.free();
            value
        }
    }

    /// Leaves the value in the heap until that ends; it will not be dropped.
    pub fn leak(self) -> &'heap mut T {
        let this = ManuallyDrop::new(self);
        // SAFETY: nobody else owns it, and the heap keeps the block.
        unsafe { &mut *this.place.as_ptr() }
    }

    /// SAFETY: once, and the value is not used after it.
    unsafe fn free(&self) {
        if mem::size_of::<T>() != 0 {
            self.heap.deallocate(self.place.cast());
        }
    }
}

impl<T> Drop for HeapBox<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the only owner.
        unsafe {
            ptr::drop_in_place(self.place.as_ptr());
            self.free();
        }
    }
}

impl<T> Deref for HeapBox<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the owner's own value.
        unsafe { self.place.as_ref() }
    }
}

impl<T> DerefMut for HeapBox<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the owner's own value.
        unsafe { self.place.as_mut() }
    }
}

impl<T: fmt::Debug> fmt::Debug for HeapBox<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for HeapBox<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// `Vec::new_in(&heap)` and the like, of the crate `allocator_api2`.
#[cfg(feature = "allocator-api2")]
// SAFETY: blocks are the heap's own, live until freed or until the heap ends, which `&Heap` outlives; a
// copy of the reference is the same heap.
unsafe impl allocator_api2::alloc::Allocator for &Heap {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, allocator_api2::alloc::AllocError> {
        let block = match layout.size() {
            0 => NonNull::new(layout.align() as *mut u8).expect("no alignment is 0"),
            _ => Heap::allocate(self, layout).map_err(|_| allocator_api2::alloc::AllocError)?,
        };
        Ok(NonNull::slice_from_raw_parts(block, layout.size()))
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() != 0 {
            Heap::deallocate(self, block);
        }
    }

    unsafe fn grow(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, allocator_api2::alloc::AllocError> {
        if old.size() != 0 && new.align() <= old.align() && keeps_alignment(new, new.size()) {
            let moved = sys::hummock_heap_realloc(self.raw.as_ptr(), block.as_ptr().cast(), new.size());
            let moved = NonNull::new(moved.cast()).ok_or(allocator_api2::alloc::AllocError)?;
            return Ok(NonNull::slice_from_raw_parts(moved, new.size()));
        }
        let moved = allocator_api2::alloc::Allocator::allocate(self, new)?;
        ptr::copy_nonoverlapping(block.as_ptr(), moved.as_ptr().cast(), old.size());
        allocator_api2::alloc::Allocator::deallocate(self, block, old);
        Ok(moved)
    }
}
