//! Figures of the process.

use core::fmt;
use core::mem;

use hummock_sys as sys;

/// One size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassStats {
    /// Bytes of a block.
    pub block_size: usize,
    /// Slabs of this class.
    pub slabs: usize,
    /// Blocks handed out.
    pub live_blocks: usize,
}

/// Figures of the whole process: exact when no other thread runs, else within the traffic.
#[derive(Clone)]
pub struct Stats {
    raw: sys::hummock_stats_t,
}

macro_rules! figures {
    ($($(#[$text:meta])* $name:ident)*) => {
        $($(#[$text])* pub fn $name(&self) -> usize { self.raw.$name })*

        fn list(&self, list: &mut fmt::DebugStruct<'_, '_>) {
            $(list.field(stringify!($name), &self.raw.$name);)*
        }
    };
}

impl Stats {
    /// The figures now. The cost is one step a slab: for a monitor, not for a loop.
    pub fn now() -> Stats {
        // SAFETY: integers only, for which zero is a value.
        let mut raw: sys::hummock_stats_t = unsafe { mem::zeroed() };
        raw.size = mem::size_of_val(&raw);
        // SAFETY: `raw` knows its size.
        unsafe { sys::hummock_stats(&mut raw) };
        Stats { raw }
    }

    figures! {
        /// Bytes of room of live blocks, those resting in other threads' caches included.
        live
        /// Bytes of slabs and large blocks, which hold the live blocks.
        committed
        /// Bytes free and not yet returned to the system.
        dirty
        /// Bytes that the system says the process has in memory; 0 without `/proc`.
        resident
        /// Bytes of address space taken from the system.
        mapped
        /// The most that committed and dirty were together, in bytes.
        peak
        /// Bytes of the allocator's own records.
        metadata
        /// Threads with a heap now.
        threads
        /// Heaps that the program made.
        heaps
        /// Number of blocks above 64 KiB.
        large_blocks
        /// Bytes of their room.
        large_bytes
        /// Bytes returned to the system so far.
        purged
    }

    /// The size classes.
    pub fn classes(&self) -> impl Iterator<Item = ClassStats> + '_ {
        let known = self.raw.classes.min(sys::HUMMOCK_CLASS_COUNT);
        self.raw.per_class[..known].iter().skip(1).map(|class| ClassStats {
            block_size: class.block_size,
            slabs: class.slabs,
            live_blocks: class.live_blocks,
        })
    }
}

impl fmt::Debug for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_struct("Stats");
        self.list(&mut list);
        list.finish()
    }
}
