//! Looking into the heap: live blocks, sparse slabs, totals by tag.

use core::ffi::{c_int, c_void};
use core::mem;
use core::ptr::{self, NonNull};

use hummock_sys as sys;

unsafe extern "C" fn visit<F: FnMut(NonNull<u8>, usize) -> bool>(
    context: *mut c_void,
    block: *mut c_void,
    size: usize,
) -> c_int {
    let visit = &mut *context.cast::<F>();
    c_int::from(visit(NonNull::new_unchecked(block.cast()), size))
}

pub(crate) fn walk_raw<F: FnMut(NonNull<u8>, usize) -> bool>(
    heap: *mut sys::hummock_heap_t,
    mut each: F,
) -> bool {
    // SAFETY: `each` lives until the call returns, and is called by this thread alone.
    unsafe { sys::hummock_heap_walk(heap, Some(visit::<F>), ptr::from_mut(&mut each).cast()) == 0 }
}

/// Calls `each` with the address and the room of each live block that is in no heap, until it returns false. What
/// other threads do meanwhile may be told of or not. False: not to be had, as in checked mode.
///
/// ```
/// # let text = unsafe { hummock_sys::hummock_malloc(100) };
/// let mut bytes = 0;
/// assert!(hummock::walk(|_, size| {
///     bytes += size;
///     true
/// }));
/// assert!(bytes >= 100);
/// # unsafe { hummock_sys::hummock_free(text) };
/// ```
pub fn walk<F: FnMut(NonNull<u8>, usize) -> bool>(each: F) -> bool {
    walk_raw(ptr::null_mut(), each)
}

/// How much of the slab of a block is in use, in percent; 100 where it would gain nothing to move the block.
/// `None`: not a live block of the allocator's.
pub fn slab_utilisation(block: *const u8) -> Option<u8> {
    // SAFETY: any address may be asked for.
    u8::try_from(unsafe { sys::hummock_slab_utilisation(block.cast()) }).ok()
}

/// What threads with a tag have drawn from slabs so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagTotal {
    /// Bytes.
    pub bytes: u64,
    /// Number of blocks.
    pub blocks: u64,
}

/// What the calling thread allocates from now on is for `tag`. Returns the tag before.
///
/// ```
/// let before = hummock::tag(17);
/// # let block = unsafe { hummock_sys::hummock_malloc(1 << 20) };
/// hummock::tag(before);
/// assert!(hummock::tag_total(17).unwrap().bytes >= 1 << 20);
/// # unsafe { hummock_sys::hummock_free(block) };
/// ```
pub fn tag(tag: u32) -> u32 {
    // SAFETY: no preconditions.
    unsafe { sys::hummock_tag(tag) }
}

/// The total of a tag; `None`: no thread ever had it, or there were too many.
pub fn tag_total(tag: u32) -> Option<TagTotal> {
    let mut raw =
        sys::hummock_tag_stats_t { size: mem::size_of::<sys::hummock_tag_stats_t>(), ..Default::default() };
    // SAFETY: `raw` knows its size.
    let error = unsafe { sys::hummock_tag_stats(tag, &mut raw) };
    (error == 0).then_some(TagTotal { bytes: raw.bytes, blocks: raw.blocks })
}

/// Writes all figures as JSON to `out`, as `hummock stats --json` prints them, as far as there is room, and returns
/// the length of the whole text.
pub fn stats_json(out: &mut [u8]) -> usize {
    // SAFETY: as much as there is room for is written.
    unsafe { sys::hummock_stats_json(out.as_mut_ptr().cast(), out.len()) }
}
