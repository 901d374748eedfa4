//! Deterministic spaces.

use core::alloc::Layout;
use core::ffi::CStr;
use core::fmt;
use core::mem;
use core::ptr::{self, NonNull};

use hummock_sys::space as sys;

use crate::place::{holds_values, OutOfMemory, Owned, Place};

/// The owner of a value in a [`Space`]: a box that cannot outlive it.
pub type SpaceBox<'space, T> = Owned<'space, T, Space>;

/// Blocks are aligned to this.
const ALIGNED: usize = 16;

extern "C" {
    fn __errno_location() -> *mut i32;
}

/// Why a space was not made or changed: an error number of the system.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SpaceError {
    errno: i32,
}

impl SpaceError {
    fn last() -> SpaceError {
        // SAFETY: the C library's own, of this thread.
        SpaceError { errno: unsafe { *__errno_location() } }
    }

    /// As `std::io::Error::from_raw_os_error` takes it.
    pub fn raw_os_error(&self) -> i32 {
        self.errno
    }
}

impl fmt::Display for SpaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.errno {
            12 => f.write_str("out of memory"),
            22 => f.write_str(
                "the options contradict each other, or the space is too small for its own records",
            ),
            number => write!(f, "the system refused with error {number}"),
        }
    }
}

impl fmt::Debug for SpaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpaceError({}: {self})", self.errno)
    }
}

impl core::error::Error for SpaceError {}

/// A property that may be left out, wished for, or required.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    /// Not wanted.
    #[default]
    Off,
    /// Wanted; the space is made without it if the system has none. See [`Space::has`].
    Try,
    /// Without it, the space is not made.
    Require,
}

/// Who may use a space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// One thread allocates, without a lock: the one that made it, or called [`Space::own`]. Others may
    /// free, and ask for `usable_size`, `contains` and `stats`; what else they ask for fails.
    #[default]
    Owner,
    /// Threads take turns and spin; one that waits long sleeps, by a system call.
    Spin,
    /// A lock that lends its holder the priority of who waits.
    Inherit,
}

/// What a space has; see [`Space::has`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Every page of the initial size has its memory.
    Populated,
    /// It stays in memory.
    Locked,
    /// It stands in huge pages.
    HugePages,
    /// A child process does not get it.
    NoFork,
}

/// How to make a [`Space`].
#[derive(Clone, Copy, Debug)]
pub struct SpaceOptions {
    raw: sys::hummock_space_options_t,
}

// SAFETY: a pointer in it is null, or to a name that lives for ever.
unsafe impl Send for SpaceOptions {}
// SAFETY: as above.
unsafe impl Sync for SpaceOptions {}

impl SpaceOptions {
    /// A space of `bytes`, its own records included, that does not grow, for one thread.
    pub fn new(bytes: usize) -> SpaceOptions {
        // SAFETY: integers and pointers, for which zero is a value.
        let mut raw: sys::hummock_space_options_t = unsafe { mem::zeroed() };
        raw.size = mem::size_of_val(&raw);
        raw.initial = bytes;
        SpaceOptions { raw }
    }

    /// It may grow to `maximum` bytes: by `step` when it is short (0: never by itself), and by
    /// [`Space::expand`].
    pub fn grow(mut self, step: usize, maximum: usize) -> Self {
        self.raw.expand = step;
        self.raw.maximum = maximum;
        self
    }

    /// Gives every page its memory when it is taken.
    pub fn populate(mut self, wish: Wish) -> Self {
        self.raw.populate = wish as u32;
        self
    }

    /// Keeps it in memory.
    pub fn lock(mut self, wish: Wish) -> Self {
        self.raw.lock = wish as u32;
        self
    }

    /// Huge pages.
    pub fn huge_pages(mut self, wish: Wish) -> Self {
        self.raw.huge_pages = wish as u32;
        self
    }

    /// Who may use it.
    pub fn threads(mut self, threads: Threads) -> Self {
        self.raw.threads = threads as u32;
        self
    }

    /// Rounds blocks to powers of two: a space of [`Space::required_size`] then refuses nothing.
    pub fn proven(mut self) -> Self {
        self.raw.policy = sys::HUMMOCK_SPACE_PROVEN;
        self
    }

    /// Each thread keeps up to `blocks` free blocks at hand of each size up to `largest`, sizes rounded up
    /// to multiples of `step`, a power of two of 16 at least. Of a space with an owner `step` is 0.
    pub fn cache(mut self, blocks: u32, step: u32, largest: u32) -> Self {
        self.raw.cache_blocks = blocks;
        self.raw.cache_step = step;
        self.raw.cache_largest = largest;
        self
    }

    /// What `hummock spaces` calls it; cut to 31 bytes.
    pub fn name(mut self, name: &'static CStr) -> Self {
        self.raw.name = name.as_ptr();
        self
    }

    /// A child process does not get it.
    pub fn no_fork(mut self, wish: Wish) -> Self {
        self.raw.no_fork = wish as u32;
        self
    }

    /// Blocks are handed out full of zeros.
    pub fn zeroed(mut self) -> Self {
        self.raw.zero = 1;
        self
    }

    /// Takes the memory at the first allocation, not at once: only that tells whether the system has what
    /// is required.
    pub fn at_first(mut self) -> Self {
        self.raw.reserve = sys::HUMMOCK_SPACE_AT_FIRST;
        self
    }

    /// Makes the space.
    pub fn create(self) -> Result<Space, SpaceError> {
        let mut achieved = 0;
        // SAFETY: the options know their size.
        let raw = unsafe { sys::hummock_space_create(&self.raw, &mut achieved) };
        NonNull::new(raw).map(|raw| Space { raw, achieved }).ok_or_else(SpaceError::last)
    }
}

/// What a space holds, in bytes unless named otherwise. `bytes` is `free` + `used` + `overhead`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpaceStats {
    /// The space now.
    pub bytes: usize,
    /// Free.
    pub free: usize,
    /// Live blocks with their headers.
    pub used: usize,
    /// The space's own records.
    pub overhead: usize,
    /// The most that was used.
    pub peak: usize,
    /// A free range at least so long exists; none is 1/64 longer.
    pub largest_free: usize,
    /// Live blocks, their number.
    pub live_blocks: usize,
    /// Requests refused, their number.
    pub failures: usize,
    /// Expansions, their number.
    pub expansions: usize,
}

/// Memory of a fixed extent, from which blocks are taken and freed in a bounded number of instructions,
/// without a system call, and without growing unless asked.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use hummock::{SpaceOptions, Wish};
///
/// let space = SpaceOptions::new(1 << 20).populate(Wish::Require).create()?;
/// let samples = space.alloc_slice(&[0.0f32; 256])?;   // lives as long as the space
/// let frame = space.boxed([0u8; 1500])?;              // ends here, or earlier by drop
/// samples[0] = frame.len() as f32;
/// assert!(space.boxed([0u8; 2 << 20]).is_err());      // never memory outside of it
/// assert_eq!(space.stats().live_blocks, 2);
/// # Ok(())
/// # }
/// ```
///
/// What was allocated cannot outlive it:
///
/// ```compile_fail,E0505
/// let space = hummock::SpaceOptions::new(1 << 20).create().unwrap();
/// let number = space.alloc(1).unwrap();
/// drop(space);
/// assert_eq!(*number, 1);
/// ```
pub struct Space {
    raw: NonNull<sys::hummock_space_t>,
    achieved: u32,
}

// SAFETY: any thread may hold a space; what one may not do in Threads::Owner fails.
unsafe impl Send for Space {}
// SAFETY: as above.
unsafe impl Sync for Space {}

holds_values!(Space, "space");

impl Space {
    /// Bytes of a [proven](SpaceOptions::proven) space that refuses nothing as long as requests are of
    /// `smallest` to `largest` bytes and those live at once add up to `max_live` at most. None when no
    /// space is large enough, or the sizes contradict each other.
    pub fn required_size(max_live: usize, largest: usize, smallest: usize) -> Option<usize> {
        // SAFETY: no preconditions.
        match unsafe { sys::hummock_space_required_size(max_live, largest, smallest) } {
            0 => None,
            bytes => Some(bytes),
        }
    }

    /// Whether the space has this property.
    pub fn has(&self, property: Property) -> bool {
        let bit = match property {
            Property::Populated => sys::HUMMOCK_SPACE_POPULATED,
            Property::Locked => sys::HUMMOCK_SPACE_LOCKED,
            Property::HugePages => sys::HUMMOCK_SPACE_HUGE_PAGES,
            Property::NoFork => sys::HUMMOCK_SPACE_NO_FORK,
        };
        self.achieved & bit != 0
    }

    /// A block for `layout`, with anything in it. It ends with the space, or by [`Space::deallocate`].
    pub fn allocate(&self, layout: Layout) -> Result<NonNull<u8>, OutOfMemory> {
        // SAFETY: the space is alive; a Layout's alignment is a power of two.
        let block = unsafe {
            if layout.align() <= ALIGNED {
                sys::hummock_space_malloc(self.raw.as_ptr(), layout.size())
            } else {
                sys::hummock_space_memalign(self.raw.as_ptr(), layout.align(), layout.size())
            }
        };
        NonNull::new(block.cast()).ok_or(OutOfMemory)
    }

    /// Frees a block.
    ///
    /// # Safety
    /// `block` is a live block of this space, and nothing refers to what is in it.
    pub unsafe fn deallocate(&self, block: NonNull<u8>) {
        sys::hummock_space_free(self.raw.as_ptr(), block.as_ptr().cast());
    }

    /// Makes the space `bytes` larger, at most to its maximum.
    pub fn expand(&self, bytes: usize) -> Result<(), SpaceError> {
        // SAFETY: the space is alive.
        match unsafe { sys::hummock_space_expand(self.raw.as_ptr(), bytes) } {
            0 => Ok(()),
            errno => Err(SpaceError { errno }),
        }
    }

    /// Gives up to `bytes` of what is free at its end back, and says how much; never below the first size.
    pub fn shrink(&self, bytes: usize) -> usize {
        // SAFETY: the space is alive.
        unsafe { sys::hummock_space_shrink(self.raw.as_ptr(), bytes) }
    }

    /// In [`Threads::Owner`], the calling thread is the owner from now on.
    pub fn own(&mut self) -> Result<(), SpaceError> {
        // SAFETY: the space is alive, and nobody else uses it.
        match unsafe { sys::hummock_space_own(self.raw.as_ptr()) } {
            0 => Ok(()),
            errno => Err(SpaceError { errno }),
        }
    }

    /// What the space holds now. Adds up the caches of its threads.
    pub fn stats(&self) -> SpaceStats {
        // SAFETY: integers only, for which zero is a value.
        let mut raw: sys::hummock_space_stats_t = unsafe { mem::zeroed() };
        raw.size = mem::size_of_val(&raw);
        // SAFETY: the space is alive and `raw` knows its size.
        unsafe { sys::hummock_space_stats(self.raw.as_ptr(), ptr::addr_of_mut!(raw)) };
        SpaceStats {
            bytes: raw.bytes,
            free: raw.free,
            used: raw.used,
            overhead: raw.overhead,
            peak: raw.peak,
            largest_free: raw.largest_free,
            live_blocks: raw.live_blocks,
            failures: raw.failures,
            expansions: raw.expansions,
        }
    }
}

impl Place for Space {
    fn take(&self, layout: Layout) -> Result<NonNull<u8>, OutOfMemory> {
        self.allocate(layout)
    }
    unsafe fn give(&self, block: NonNull<u8>) {
        self.deallocate(block);
    }
    unsafe fn resize(&self, block: NonNull<u8>, size: usize) -> Result<NonNull<u8>, OutOfMemory> {
        let moved = sys::hummock_space_realloc(self.raw.as_ptr(), block.as_ptr().cast(), size);
        NonNull::new(moved.cast()).ok_or(OutOfMemory)
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // SAFETY: nobody borrows the space any more.
        unsafe { sys::hummock_space_destroy(self.raw.as_ptr()) }
    }
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Space").field(&self.stats()).finish()
    }
}
