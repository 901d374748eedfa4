//! What heaps and spaces have in common: values that live in them.

use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{self, ManuallyDrop};
use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};

/// No memory was to be had: from the system, or in the space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("out of memory")
    }
}

impl core::error::Error for OutOfMemory {}

/// A heap or a space. Its blocks live until they are given back or it ends. Not to be named outside.
pub trait Place {
    fn take(&self, layout: Layout) -> Result<NonNull<u8>, OutOfMemory>;

    /// # Safety
    /// `block` is a live block of this place, and nothing refers to what is in it.
    unsafe fn give(&self, block: NonNull<u8>);

    /// As realloc; of the alignment only what [`keeps_alignment`](crate::global::keeps_alignment) says stays.
    ///
    /// # Safety
    /// As `give`.
    unsafe fn resize(&self, block: NonNull<u8>, size: usize) -> Result<NonNull<u8>, OutOfMemory>;
}

/// Room for a T; none is taken for what has no size.
pub fn room_for<T>(place: &impl Place, layout: Layout) -> Result<NonNull<T>, OutOfMemory> {
    match layout.size() {
        0 => Ok(NonNull::dangling()),
        _ => Ok(place.take(layout)?.cast()),
    }
}

/// Gives a place the methods that move values into it, and makes it an `Allocator`.
macro_rules! holds_values {
    ($place:ident, $word:literal) => {
        impl $place {
            #[doc = concat!("Moves `value` into the ", $word, ", where it stays until the ", $word, " ends.")]
            /// It is not dropped: what it owns elsewhere is not freed then. See `boxed`.
            #[allow(clippy::mut_from_ref)] // every call has a block of its own
            pub fn alloc<T>(&self, value: T) -> Result<&mut T, $crate::OutOfMemory> {
                Ok(self.boxed(value)?.leak())
            }

            #[doc = concat!("Copies a slice into the ", $word, ", where it stays until the ", $word, " ends.")]
            #[allow(clippy::mut_from_ref)] // every call has a block of its own
            pub fn alloc_slice<T: Copy>(&self, items: &[T]) -> Result<&mut [T], $crate::OutOfMemory> {
                let room = $crate::place::room_for::<T>(self, core::alloc::Layout::for_value(items))?;
                // SAFETY: fresh room for as many, which lives as long as the place is borrowed.
                unsafe {
                    core::ptr::copy_nonoverlapping(items.as_ptr(), room.as_ptr(), items.len());
                    Ok(core::slice::from_raw_parts_mut(room.as_ptr(), items.len()))
                }
            }

            #[doc = concat!("Copies a string into the ", $word, ", where it stays until the ", $word, " ends.")]
            #[allow(clippy::mut_from_ref)] // every call has a block of its own
            pub fn alloc_str(&self, text: &str) -> Result<&mut str, $crate::OutOfMemory> {
                let bytes = self.alloc_slice(text.as_bytes())?;
                // SAFETY: a copy of a str.
                Ok(unsafe { core::str::from_utf8_unchecked_mut(bytes) })
            }

            #[doc = concat!("Moves `value` into the ", $word, " and gives its owner, which drops it and frees its block.")]
            pub fn boxed<T>(&self, value: T) -> Result<$crate::Owned<'_, T, $place>, $crate::OutOfMemory> {
                $crate::Owned::new(value, self)
            }
        }

        /// `Vec::new_in(&place)` and the like, of the crate `allocator_api2`.
        #[cfg(feature = "allocator-api2")]
        // SAFETY: blocks are the place's own, live until freed or until the place ends, which the reference
        // outlives; a copy of the reference is the same place.
        unsafe impl allocator_api2::alloc::Allocator for &$place {
            fn allocate(
                &self,
                layout: core::alloc::Layout,
            ) -> Result<core::ptr::NonNull<[u8]>, allocator_api2::alloc::AllocError> {
                $crate::place::allocator::allocate(*self, layout)
            }

            unsafe fn deallocate(&self, block: core::ptr::NonNull<u8>, layout: core::alloc::Layout) {
                $crate::place::allocator::deallocate(*self, block, layout);
            }

            unsafe fn grow(
                &self,
                block: core::ptr::NonNull<u8>,
                old: core::alloc::Layout,
                new: core::alloc::Layout,
            ) -> Result<core::ptr::NonNull<[u8]>, allocator_api2::alloc::AllocError> {
                $crate::place::allocator::grow(*self, block, old, new)
            }
        }
    };
}
pub(crate) use holds_values;

/// The owner of a value in a heap or a space: a box that cannot outlive it.
pub struct Owned<'place, T, P: Place> {
    value: NonNull<T>,
    place: &'place P,
    owns: PhantomData<T>,
}

// SAFETY: an owner of a T, beside a reference to a place.
unsafe impl<T: Send, P: Place + Sync> Send for Owned<'_, T, P> {}
// SAFETY: as above.
unsafe impl<T: Sync, P: Place + Sync> Sync for Owned<'_, T, P> {}

impl<'place, T, P: Place> Owned<'place, T, P> {
    pub(crate) fn new(value: T, place: &'place P) -> Result<Self, OutOfMemory> {
        let room = room_for::<T>(place, Layout::new::<T>())?;
        // SAFETY: fresh room for a T.
        unsafe { room.as_ptr().write(value) };
        Ok(Owned { value: room, place, owns: PhantomData })
    }

    /// Takes the value out and frees its block.
    pub fn into_inner(self) -> T {
        let this = ManuallyDrop::new(self);
        // SAFETY: read once; the block is freed, the value is not dropped.
        unsafe {
            let value = this.value.as_ptr().read();
            this.free();
            value
        }
    }

    /// Leaves the value where it is until the heap or space ends; it will not be dropped.
    pub fn leak(self) -> &'place mut T {
        let this = ManuallyDrop::new(self);
        // SAFETY: nobody else owns it, and the place keeps the block.
        unsafe { &mut *this.value.as_ptr() }
    }

    /// SAFETY: once, and the value is not used after it.
    unsafe fn free(&self) {
        if mem::size_of::<T>() != 0 {
            self.place.give(self.value.cast());
        }
    }
}

impl<T, P: Place> Drop for Owned<'_, T, P> {
    fn drop(&mut self) {
        // SAFETY: the only owner.
        unsafe {
            ptr::drop_in_place(self.value.as_ptr());
            self.free();
        }
    }
}

impl<T, P: Place> Deref for Owned<'_, T, P> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the owner's own value.
        unsafe { self.value.as_ref() }
    }
}

impl<T, P: Place> DerefMut for Owned<'_, T, P> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the owner's own value.
        unsafe { self.value.as_mut() }
    }
}

impl<T: fmt::Debug, P: Place> fmt::Debug for Owned<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Display, P: Place> fmt::Display for Owned<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// `Allocator` of the crate `allocator_api2`, for any place.
#[cfg(feature = "allocator-api2")]
pub mod allocator {
    use core::alloc::Layout;
    use core::ptr::{self, NonNull};

    use allocator_api2::alloc::AllocError;

    use super::Place;
    use crate::global::keeps_alignment;

    pub fn allocate(place: &impl Place, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let block = match layout.size() {
            0 => NonNull::new(layout.align() as *mut u8).expect("no alignment is 0"),
            _ => place.take(layout).map_err(|_| AllocError)?,
        };
        Ok(NonNull::slice_from_raw_parts(block, layout.size()))
    }

    /// SAFETY: as `Allocator::deallocate`.
    pub unsafe fn deallocate(place: &impl Place, block: NonNull<u8>, layout: Layout) {
        if layout.size() != 0 {
            place.give(block);
        }
    }

    /// SAFETY: as `Allocator::grow`.
    pub unsafe fn grow(
        place: &impl Place,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        if old.size() != 0 && new.align() <= old.align() && keeps_alignment(new, new.size()) {
            let moved = place.resize(block, new.size()).map_err(|_| AllocError)?;
            return Ok(NonNull::slice_from_raw_parts(moved, new.size()));
        }
        let moved = allocate(place, new)?;
        ptr::copy_nonoverlapping(block.as_ptr(), moved.as_ptr().cast(), old.size());
        deallocate(place, block, old);
        Ok(moved)
    }
}
