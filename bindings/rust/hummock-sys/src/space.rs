use core::ffi::{c_char, c_int, c_void};

pub const HUMMOCK_SPACE_OFF: u32 = 0;
pub const HUMMOCK_SPACE_TRY: u32 = 1;
pub const HUMMOCK_SPACE_REQUIRE: u32 = 2;

pub const HUMMOCK_SPACE_AT_START: u32 = 0;
pub const HUMMOCK_SPACE_AT_FIRST: u32 = 1;

pub const HUMMOCK_SPACE_OWNER: u32 = 0;
pub const HUMMOCK_SPACE_SPIN: u32 = 1;
pub const HUMMOCK_SPACE_INHERIT: u32 = 2;

pub const HUMMOCK_SPACE_DENSE: u32 = 0;
pub const HUMMOCK_SPACE_PROVEN: u32 = 1;

pub const HUMMOCK_SPACE_POPULATED: u32 = 1;
pub const HUMMOCK_SPACE_LOCKED: u32 = 2;
pub const HUMMOCK_SPACE_HUGE_PAGES: u32 = 4;
pub const HUMMOCK_SPACE_NO_FORK: u32 = 8;
pub const HUMMOCK_SPACE_SHARED: u32 = 16;

pub const HUMMOCK_SPACE_INTERNAL: c_int = 0;
pub const HUMMOCK_SPACE_EXTERNAL: c_int = 1;

/// Memory of a fixed extent.
#[repr(C)]
pub struct hummock_space_t {
    _private: [u8; 0],
}

/// What a space shall be; zero is a good default for every field but `size` and `initial`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hummock_space_options_t {
    /// In: the size of this structure.
    pub size: usize,
    pub name: *const c_char,
    pub initial: usize,
    pub expand: usize,
    pub maximum: usize,
    pub reserve: u32,
    pub populate: u32,
    pub lock: u32,
    pub huge_pages: u32,
    pub no_fork: u32,
    pub zero: u32,
    pub threads: u32,
    pub policy: u32,
    pub cache_blocks: u32,
    pub cache_step: u32,
    pub cache_largest: u32,
    pub shared: u32,
    pub memory: *mut c_void,
}

/// What a space holds, in bytes unless named otherwise.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hummock_space_stats_t {
    /// In: the size of this structure.
    pub size: usize,
    pub bytes: usize,
    pub free: usize,
    pub used: usize,
    pub overhead: usize,
    pub peak: usize,
    pub initial: usize,
    pub maximum: usize,
    pub expand: usize,
    pub largest_free: usize,
    pub free_ranges: usize,
    pub pool_free: usize,
    pub pool_used: usize,
    pub cache_free: usize,
    pub cache_free_blocks: usize,
    pub cache_used: usize,
    pub live_blocks: usize,
    pub allocations: usize,
    pub failures: usize,
    pub largest_request: usize,
    pub largest_refused: usize,
    pub expansions: usize,
    pub recoveries: usize,
    pub achieved: u32,
    pub threads: u32,
    pub policy: u32,
    pub broken: u32,
    pub name: [c_char; 32],
}

/// What `hummock_space_walk` calls.
pub type hummock_space_visit_t = Option<
    unsafe extern "C" fn(context: *mut c_void, address: *mut c_void, size: usize, live: c_int) -> c_int,
>;

extern "C" {
    pub fn hummock_space_create(
        options: *const hummock_space_options_t,
        achieved: *mut u32,
    ) -> *mut hummock_space_t;
    pub fn hummock_space_destroy(space: *mut hummock_space_t);

    pub fn hummock_space_malloc(space: *mut hummock_space_t, size: usize) -> *mut c_void;
    pub fn hummock_space_malloc_zero(space: *mut hummock_space_t, size: usize, zero: c_int) -> *mut c_void;
    pub fn hummock_space_calloc(space: *mut hummock_space_t, count: usize, size: usize) -> *mut c_void;
    pub fn hummock_space_memalign(space: *mut hummock_space_t, alignment: usize, size: usize) -> *mut c_void;
    pub fn hummock_space_realloc(space: *mut hummock_space_t, block: *mut c_void, size: usize)
        -> *mut c_void;
    pub fn hummock_space_free(space: *mut hummock_space_t, block: *mut c_void);
    pub fn hummock_space_usable_size(space: *mut hummock_space_t, block: *const c_void) -> usize;
    pub fn hummock_space_contains(space: *const hummock_space_t, address: *const c_void) -> c_int;

    pub fn hummock_space_required_size(max_live: usize, largest: usize, smallest: usize) -> usize;
    pub fn hummock_space_expand(space: *mut hummock_space_t, bytes: usize) -> c_int;
    pub fn hummock_space_shrink(space: *mut hummock_space_t, bytes: usize) -> usize;
    pub fn hummock_space_trim(space: *mut hummock_space_t) -> usize;
    pub fn hummock_space_own(space: *mut hummock_space_t) -> c_int;
    pub fn hummock_space_flush(space: *mut hummock_space_t);

    pub fn hummock_space_stats(space: *mut hummock_space_t, out: *mut hummock_space_stats_t) -> c_int;
    pub fn hummock_space_walk(
        space: *mut hummock_space_t,
        visit: hummock_space_visit_t,
        context: *mut c_void,
    ) -> c_int;

    pub fn hummock_space_open(name: *const c_char) -> *mut hummock_space_t;
    pub fn hummock_space_attach(descriptor: c_int) -> *mut hummock_space_t;
    pub fn hummock_space_descriptor(space: *const hummock_space_t) -> c_int;
    pub fn hummock_space_offset(space: *const hummock_space_t, block: *const c_void) -> usize;
    pub fn hummock_space_pointer(space: *const hummock_space_t, offset: usize) -> *mut c_void;
    pub fn hummock_space_set_root(space: *mut hummock_space_t, offset: usize);
    pub fn hummock_space_root(space: *const hummock_space_t) -> usize;
    pub fn hummock_space_of_process(which: c_int) -> *mut hummock_space_t;
}
