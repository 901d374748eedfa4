//! The memory allocator Hummock: a global allocator, heaps whose blocks are freed together, statistics.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: hummock::Hummock = hummock::Hummock;
//!
//! let words: Vec<String> = "many small blocks".split(' ').map(String::from).collect();
//! assert_eq!(words.len(), 3);
//! assert!(hummock::Stats::now().live() > 0);
//! ```
//!
//! A [`Heap`] gives back everything it holds at once:
//!
//! ```
//! let heap = hummock::Heap::new()?;
//! let name = heap.alloc_str("request 17")?;
//! let mut numbers = heap.boxed([1, 2, 3])?;
//! numbers[0] = 10;
//! assert_eq!((&*name, numbers.iter().sum::<i32>()), ("request 17", 15));
//! # Ok::<(), hummock::OutOfMemory>(())
//! ```
//!
//! A [`Space`] has a fixed extent, and takes and frees blocks in a bounded number of instructions.
//!
//! It is built from its C++ sources (a C++20 compiler is needed) and needs the C library alone at run
//! time, whose own `malloc` it leaves as it is. Linux only. `no_std`; with feature `allocator-api2` a heap
//! is an `Allocator` for that crate's collections.
//!
//! A pointer that is no block, given to an `unsafe` function here, is reported in one line on standard
//! error, and the process is aborted.
#![no_std]
#![warn(missing_docs)]

/// The program in it is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

mod global;
mod heap;
mod observe;
mod options;
mod place;
mod space;
mod stats;

pub use global::Hummock;
pub use heap::{Heap, HeapBox, HeapStats};
pub use observe::{
    profile_start, profile_stop, profile_write, remove_hooks, set_hooks, slab_utilisation, stats_json, tag,
    tag_total, walk, Hooks, TagTotal,
};
pub use options::{option, set_option, OptionError, OptionValue};
pub use place::{OutOfMemory, Owned};
pub use space::{Property, Space, SpaceBox, SpaceError, SpaceOptions, SpaceStats, Threads, Wish};
pub use stats::{ClassStats, Stats};

/// What [`conf!`](crate::conf) makes; not for use by hand.
#[doc(hidden)]
#[repr(transparent)]
pub struct Conf(pub *const core::ffi::c_char);
// SAFETY: it points to a literal.
unsafe impl Sync for Conf {}

/// Compiles options into the program; the environment's `HUMMOCK_CONF` goes over them. Once a program.
///
/// ```
/// hummock::conf!("decay_ms:100,dirty_max:64M");
/// # fn main() {
/// assert_eq!(hummock::option("decay_ms").unwrap().as_str(), "100");
/// # }
/// ```
#[macro_export]
macro_rules! conf {
    ($text:literal) => {
        #[no_mangle]
        #[used]
        #[allow(non_upper_case_globals)]
        pub static hummock_conf: $crate::Conf = $crate::Conf(concat!($text, "\0").as_ptr().cast());
    };
}

/// Gives free memory back to the system, all but about `keep` bytes; true when there was some.
pub fn trim(keep: usize) -> bool {
    // SAFETY: no preconditions.
    unsafe { hummock_sys::hummock_trim(keep) != 0 }
}

/// The version of the allocator, as `"1.0.0"`.
pub fn version() -> &'static str {
    // SAFETY: a static string of ASCII.
    let text = unsafe { core::ffi::CStr::from_ptr(hummock_sys::hummock_version()) };
    text.to_str().unwrap_or("")
}

/// True when the C library's `malloc` is Hummock's too, as in a process where it was preloaded.
pub fn is_malloc() -> bool {
    // SAFETY: no preconditions.
    unsafe { hummock_sys::hummock_is_active() != 0 }
}
