//! Looking into the heap: live blocks, sparse slabs, totals by tag, hooks for tools.

use core::ffi::{c_char, c_int, c_void, CStr};
use core::marker::PhantomData;
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
/// other threads do meanwhile may be told of or not. Returns false where that is not possible, as in checked mode.
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

fn result(error: c_int) -> Result<(), i32> {
    if error == 0 {
        Ok(())
    } else {
        Err(error)
    }
}

/// Samples one block in `bytes` bytes from now on, with its stack; 0: as the option `profile` says, 1: every block.
/// `hummock profile PID` does the same from outside. The error is one of `errno.h`: there is no profile in checked
/// mode, or no memory for it.
///
/// ```
/// hummock::profile_start(1).unwrap();
/// # let block = unsafe { hummock_sys::hummock_malloc(1000) };
/// hummock::profile_write(c"/tmp/hummock-doc.heap").unwrap();
/// hummock::profile_stop().unwrap();
/// # unsafe { hummock_sys::hummock_free(block) };
/// # std::fs::remove_file("/tmp/hummock-doc.heap").unwrap();
/// ```
pub fn profile_start(bytes: usize) -> Result<(), i32> {
    // SAFETY: no preconditions.
    result(unsafe { sys::hummock_profile_start(bytes) })
}

/// No block is sampled any more. What was sampled stays until it is freed.
pub fn profile_stop() -> Result<(), i32> {
    // SAFETY: no preconditions.
    result(unsafe { sys::hummock_profile_stop() })
}

/// Writes what was sampled to a file that `pprof` reads.
pub fn profile_write(path: &CStr) -> Result<(), i32> {
    // SAFETY: the text ends with NUL.
    result(unsafe { sys::hummock_profile_write(path.as_ptr()) })
}

/// What a tool wants to be told of. The functions are called by any thread, in the middle of its `malloc` or `free`.
/// The first three may allocate and free, of which they are not told. None may panic.
pub trait Hooks: 'static {
    /// A block of this size was handed out.
    fn allocated(block: NonNull<u8>, size: usize) {
        let _ = (block, size);
    }
    /// A block was resized where it is: `before` is `block`. One that moves is allocated and then released.
    fn resized(block: NonNull<u8>, size: usize, before: NonNull<u8>) {
        let _ = (block, size, before);
    }
    /// The program frees this address. It may be no live block: that is found after.
    fn released(block: NonNull<u8>) {
        let _ = block;
    }
    /// Memory or address space came from the system or went there; `what` is as in the region log. This one must not
    /// allocate.
    fn mapped(what: &'static CStr, address: *const u8, bytes: usize) {
        let _ = (what, address, bytes);
    }
}

unsafe extern "C" fn allocated<H: Hooks>(_: *mut c_void, block: *mut c_void, size: usize) {
    H::allocated(NonNull::new_unchecked(block.cast()), size);
}
unsafe extern "C" fn resized<H: Hooks>(_: *mut c_void, block: *mut c_void, size: usize, before: *mut c_void) {
    H::resized(NonNull::new_unchecked(block.cast()), size, NonNull::new_unchecked(before.cast()));
}
unsafe extern "C" fn released<H: Hooks>(_: *mut c_void, block: *mut c_void) {
    H::released(NonNull::new_unchecked(block.cast()));
}
unsafe extern "C" fn mapped<H: Hooks>(
    _: *mut c_void,
    what: *const c_char,
    address: *const c_void,
    bytes: usize,
) {
    // SAFETY: the allocator's names are literals.
    H::mapped(unsafe { CStr::from_ptr(what) }, address.cast(), bytes);
}

struct Table<H>(PhantomData<H>);

impl<H: Hooks> Table<H> {
    const RAW: &'static sys::hummock_hooks_t = &sys::hummock_hooks_t {
        size: mem::size_of::<sys::hummock_hooks_t>(),
        context: ptr::null_mut(),
        allocated: Some(allocated::<H>),
        resized: Some(resized::<H>),
        released: Some(released::<H>),
        mapped: Some(mapped::<H>),
    };
}

/// Has the functions of `H` called for each block that comes and goes, in all threads, from now on. False: not to be
/// had, as in checked mode. A pair of `malloc` and `free` takes some 50 ns then.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
///
/// static BYTES: AtomicUsize = AtomicUsize::new(0);
/// struct Count;
/// impl hummock::Hooks for Count {
///     fn allocated(_: std::ptr::NonNull<u8>, size: usize) {
///         BYTES.fetch_add(size, Relaxed);
///     }
/// }
/// assert!(hummock::set_hooks::<Count>());
/// # unsafe { hummock_sys::hummock_free(hummock_sys::hummock_malloc(1000)) };
/// hummock::remove_hooks();
/// assert!(BYTES.load(Relaxed) >= 1000);
/// ```
pub fn set_hooks<H: Hooks>() -> bool {
    // SAFETY: the table is a constant.
    unsafe { sys::hummock_set_hooks(Table::<H>::RAW) == 0 }
}

/// No hooks are called any more, but by calls that are under way.
pub fn remove_hooks() {
    // SAFETY: no preconditions.
    unsafe { sys::hummock_set_hooks(ptr::null()) };
}
