//! Memory for frames of about an MTU, used again and again by the thread that lets go of it.
//!
//! A base station copies, keeps and drops such frames at the rate of the network. The allocator has
//! quick lists for pieces of up to a kilobyte only; with larger ones it was a sixth of the daemon's
//! own time (measured on the fast path).

use bytes::Bytes;
use std::cell::RefCell;

/// A piece of memory that goes back to the thread's store when it is dropped.
struct Buffer(Vec<u8>);

/// What a buffer holds.
const BUFFER_BYTES: usize = 2048;
/// Frames up to this size are left to the allocator.
const SMALL_BYTES: usize = 1024;
/// Buffers in store at most: 8 MB.
const STORED_MAX: usize = 4096;

thread_local! {
    static STORE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A copy of a frame. It keeps at most twice the memory that it counts.
pub fn copy(frame: &[u8]) -> Bytes {
    if frame.len() <= SMALL_BYTES || frame.len() > BUFFER_BYTES {
        return Bytes::copy_from_slice(frame);
    }
    let stored = STORE.with_borrow_mut(Vec::pop);
    let mut buffer = stored.unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES));
    buffer.clear();
    buffer.extend_from_slice(frame);
    Bytes::from_owner(Buffer(buffer))
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.0);
        // A thread that ends has no store any more.
        let _stored = STORE.try_with(|store| {
            if let Ok(mut store) = store.try_borrow_mut()
                && store.len() < STORED_MAX
            {
                store.push(buffer);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_copied_whatever_its_length_and_its_memory_used_again() {
        let frame = |length: usize| (0..length).map(|at| at as u8).collect::<Vec<u8>>();
        for length in [0, 1, SMALL_BYTES, SMALL_BYTES + 1, 1_524, BUFFER_BYTES, BUFFER_BYTES + 1] {
            assert_eq!(copy(&frame(length)), frame(length), "{length}");
        }
        let first = copy(&frame(1_524));
        let (place, part) = (first.as_ptr(), first.slice(1_000..1_010));
        drop(first);
        let second = copy(&frame(1_100));
        assert_ne!(second.as_ptr(), place, "a part of the first is still in use");
        assert_eq!(part, frame(1_524)[1_000..1_010]);
        drop(part);
        assert_eq!(copy(&frame(1_300)).as_ptr(), place);
    }
}
