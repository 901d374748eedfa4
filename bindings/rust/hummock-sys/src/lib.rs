//! Hummock's C interface, and the allocator itself, built from its sources by the `cc` crate (a C++20
//! compiler is needed; no C++ library is needed at run time). The C library's `malloc` is left alone.
//!
//! Each item means what `hummock/hummock.h` says of it; the crate `hummock` has the safe types.
//!
//! ```
//! unsafe {
//!     let block = hummock_sys::hummock_malloc(100);
//!     assert!(hummock_sys::hummock_usable_size(block) >= 100);
//!     hummock_sys::hummock_free(block);
//! }
//! ```
#![no_std]
#![allow(non_camel_case_types)]

use core::ffi::{c_char, c_int, c_void};

/// Entries of [`hummock_stats_t::per_class`].
pub const HUMMOCK_CLASS_COUNT: usize = 82;

/// A set of blocks that can be ended together.
#[repr(C)]
pub struct hummock_heap_t {
    _private: [u8; 0],
}

/// What a heap holds now, in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hummock_heap_stats_t {
    /// In: the size of this structure.
    pub size: usize,
    pub live_bytes: usize,
    pub live_blocks: usize,
    pub mapped_bytes: usize,
    pub slabs: usize,
}

/// One size class.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hummock_class_stats_t {
    pub block_size: usize,
    pub slabs: usize,
    pub live_blocks: usize,
}

/// Figures of the whole process, in bytes unless named otherwise.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hummock_stats_t {
    /// In: the size of this structure.
    pub size: usize,
    pub live: usize,
    pub committed: usize,
    pub dirty: usize,
    pub resident: usize,
    pub mapped: usize,
    pub peak: usize,
    pub metadata: usize,
    pub threads: usize,
    pub heaps: usize,
    pub large_blocks: usize,
    pub large_bytes: usize,
    pub purged: usize,
    pub classes: usize,
    pub per_class: [hummock_class_stats_t; HUMMOCK_CLASS_COUNT],
    pub huge_pinned: usize,
    pub huge_advised: usize,
    pub huge_refusals: usize,
}

/// The tag of all for which there was no row.
pub const HUMMOCK_TAG_OTHERS: u32 = u32::MAX;

/// What threads with a tag have drawn from slabs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hummock_tag_stats_t {
    /// In: the size of this structure.
    pub size: usize,
    pub bytes: u64,
    pub blocks: u64,
}

/// What a tool wants to be told of.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hummock_hooks_t {
    /// In: the size of this structure.
    pub size: usize,
    pub context: *mut c_void,
    pub allocated: Option<unsafe extern "C" fn(context: *mut c_void, block: *mut c_void, size: usize)>,
    pub resized: Option<
        unsafe extern "C" fn(context: *mut c_void, block: *mut c_void, size: usize, before: *mut c_void),
    >,
    pub released: Option<unsafe extern "C" fn(context: *mut c_void, block: *mut c_void)>,
    pub mapped: Option<
        unsafe extern "C" fn(context: *mut c_void, what: *const c_char, address: *const c_void, bytes: usize),
    >,
}

extern "C" {
    pub fn hummock_malloc(size: usize) -> *mut c_void;
    pub fn hummock_free(block: *mut c_void);
    pub fn hummock_calloc(count: usize, size: usize) -> *mut c_void;
    pub fn hummock_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    pub fn hummock_reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void;
    pub fn hummock_aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    pub fn hummock_posix_memalign(out: *mut *mut c_void, alignment: usize, size: usize) -> c_int;
    pub fn hummock_memalign(alignment: usize, size: usize) -> *mut c_void;
    pub fn hummock_free_sized(block: *mut c_void, size: usize);
    pub fn hummock_free_aligned_sized(block: *mut c_void, alignment: usize, size: usize);
    pub fn hummock_malloc_zero(size: usize) -> *mut c_void;
    pub fn hummock_realloc_zero(block: *mut c_void, size: usize) -> *mut c_void;
    pub fn hummock_usable_size(block: *const c_void) -> usize;
    pub fn hummock_good_size(size: usize) -> usize;
    pub fn hummock_trim(keep: usize) -> c_int;

    pub fn hummock_heap_create() -> *mut hummock_heap_t;
    pub fn hummock_heap_malloc(heap: *mut hummock_heap_t, size: usize) -> *mut c_void;
    pub fn hummock_heap_calloc(heap: *mut hummock_heap_t, count: usize, size: usize) -> *mut c_void;
    pub fn hummock_heap_realloc(heap: *mut hummock_heap_t, block: *mut c_void, size: usize) -> *mut c_void;
    pub fn hummock_heap_memalign(heap: *mut hummock_heap_t, alignment: usize, size: usize) -> *mut c_void;
    pub fn hummock_heap_free(heap: *mut hummock_heap_t, block: *mut c_void);
    pub fn hummock_heap_destroy(heap: *mut hummock_heap_t);
    pub fn hummock_heap_stats(heap: *mut hummock_heap_t, out: *mut hummock_heap_stats_t) -> c_int;

    pub fn hummock_stats(out: *mut hummock_stats_t) -> c_int;
    pub fn hummock_stats_json(out: *mut c_char, room: usize) -> usize;

    pub fn hummock_heap_walk(
        heap: *mut hummock_heap_t,
        visit: Option<unsafe extern "C" fn(context: *mut c_void, block: *mut c_void, size: usize) -> c_int>,
        context: *mut c_void,
    ) -> c_int;
    pub fn hummock_heap_set_name(heap: *mut hummock_heap_t, name: *const c_char) -> c_int;
    pub fn hummock_slab_utilisation(block: *const c_void) -> c_int;
    pub fn hummock_tag(tag: u32) -> u32;
    pub fn hummock_tag_stats(tag: u32, out: *mut hummock_tag_stats_t) -> c_int;
    pub fn hummock_set_hooks(hooks: *const hummock_hooks_t) -> c_int;

    pub fn hummock_profile_start(bytes: usize) -> c_int;
    pub fn hummock_profile_stop() -> c_int;
    pub fn hummock_profile_write(path: *const c_char) -> c_int;

    pub fn hummock_is_active() -> c_int;
    pub fn hummock_version() -> *const c_char;
    pub fn hummock_option_get(name: *const c_char, value: *mut c_char, room: usize) -> c_int;
    pub fn hummock_option_set(name: *const c_char, value: *const c_char) -> c_int;
    pub fn hummock_on_bad_pointer(handler: Option<unsafe extern "C" fn(message: *const c_char)>) -> c_int;
}

/// Deterministic spaces, as `hummock/space.h` has them.
pub mod space;
