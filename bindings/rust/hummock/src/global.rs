//! The global allocator.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr;

use hummock_sys as sys;

/// Every block is aligned to this, but those that `realloc` cuts to [`TINY`] bytes or less.
const ALIGNED: usize = 16;
const TINY: usize = 8;

/// Hummock as a program's allocator.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: hummock::Hummock = hummock::Hummock;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Hummock;

/// Does a block of this layout, resized by the library, keep its alignment?
pub(crate) fn keeps_alignment(layout: Layout, new_size: usize) -> bool {
    layout.align() <= TINY || (layout.align() <= ALIGNED && new_size > TINY)
}

// SAFETY: blocks are Hummock's own, aligned as asked; no function unwinds.
unsafe impl GlobalAlloc for Hummock {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNED {
            sys::hummock_malloc(layout.size()).cast()
        } else {
            sys::hummock_memalign(layout.align(), layout.size()).cast()
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        sys::hummock_free(block.cast());
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNED {
            return sys::hummock_calloc(1, layout.size()).cast();
        }
        let block = self.alloc(layout);
        if !block.is_null() {
            block.write_bytes(0, layout.size());
        }
        block
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if keeps_alignment(layout, new_size) {
            return sys::hummock_realloc(block.cast(), new_size).cast();
        }
        // SAFETY: the caller sees to it that new_size, rounded up to the alignment, does not overflow.
        let moved = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
        if !moved.is_null() {
            ptr::copy_nonoverlapping(block, moved, layout.size().min(new_size));
            self.dealloc(block, layout);
        }
        moved
    }
}
