//! Bytes in order, kept as the payloads they came in: unacknowledged and unsent bytes of a sender,
//! unread bytes of a receiver.
//!
//! A bulk sender writes one payload by name and its segments are slices of it. Where a slice
//! crosses from one piece of real bytes into the next it is copied; where it cannot be put
//! together at all it is cut short.

use bytes::BytesMut;
use sansio::Payload;
use std::collections::VecDeque;

/// A queue of bytes: appended at the back, read anywhere, taken from the front.
#[derive(Clone, Debug, Default, PartialEq)]
#[repr(C)]
pub(crate) struct Buffer {
    bytes: u64,
    /// Bytes of the first chunk that are taken already.
    taken: u64,
    /// The chunk read last, and where it begins, counted from the first chunk's first byte:
    /// reading goes forward most of the time.
    cursor: (usize, u64),
    chunks: VecDeque<Payload>,
}

impl Buffer {
    /// Number of bytes.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.bytes
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Appends a payload that is not a tunnelled datagram.
    pub(crate) fn push(&mut self, payload: Payload) {
        if payload.is_empty() {
            return;
        }
        self.bytes += u64::from(payload.len());
        if let Some(back) = self.chunks.back_mut()
            && extend(back, &payload)
        {
            return;
        }
        if self.chunks.is_empty() {
            // Most often there is no second one: payload by name that follows is one piece.
            self.chunks.reserve_exact(1);
        }
        self.chunks.push_back(payload);
    }

    /// Up to `length` bytes from `offset`; fewer only at the end or where pieces cannot be joined.
    #[inline]
    pub(crate) fn slice(&mut self, offset: u64, length: u32) -> Payload {
        let at = self.taken + offset;
        let (mut index, mut start) = if at >= self.cursor.1 { self.cursor } else { (0, 0) };
        while let Some(chunk) = self.chunks.get(index) {
            let from = at - start;
            let chunk_bytes = u64::from(chunk.len());
            if from < chunk_bytes {
                self.cursor = (index, start);
                let to = from + u64::from(length);
                if to <= chunk_bytes {
                    return chunk.slice(from as u32, to as u32);
                }
                return self.gather(index, from as u32, length);
            }
            start += chunk_bytes;
            index += 1;
        }
        Payload::EMPTY
    }

    /// Takes `count` bytes, at most all, from the front.
    #[inline]
    pub(crate) fn take(&mut self, count: u64) {
        let count = count.min(self.bytes);
        self.bytes -= count;
        self.taken += count;
        if self.chunks.front().is_some_and(|front| self.taken >= front.len().into()) {
            self.drop_taken();
        }
    }

    /// Lets go of the chunks that are taken whole.
    #[inline(never)]
    fn drop_taken(&mut self) {
        while let Some(front) = self.chunks.front() {
            let front_bytes = u64::from(front.len());
            if self.taken < front_bytes {
                break;
            }
            self.taken -= front_bytes;
            self.chunks.pop_front();
            self.cursor = match self.cursor {
                (0, _) => (0, 0),
                (index, start) => (index - 1, start - front_bytes),
            };
        }
    }

    /// A slice that crosses chunks: real bytes are put together, anything else is cut.
    #[inline(never)]
    fn gather(&self, index: usize, from: u32, length: u32) -> Payload {
        let first = &self.chunks[index];
        let mut joined = BytesMut::new();
        for (number, chunk) in self.chunks.range(index..).enumerate() {
            let Payload::Bytes(bytes) = chunk else { break };
            let bytes = if number == 0 { &bytes[from as usize..] } else { &bytes[..] };
            let room = length as usize - joined.len();
            joined.extend_from_slice(&bytes[..bytes.len().min(room)]);
            if joined.len() == length as usize {
                break;
            }
        }
        if joined.is_empty() {
            return first.slice(from, first.len());
        }
        Payload::Bytes(joined.freeze())
    }
}

/// Appends by name what follows by name; false if it does not follow.
fn extend(back: &mut Payload, next: &Payload) -> bool {
    let Payload::Virtual { stream, offset, length } = back else { return false };
    let Payload::Virtual { stream: next_stream, offset: next_offset, length: more } = next else {
        return false;
    };
    let follows = stream == next_stream && *offset + u64::from(*length) == *next_offset;
    let Some(sum) = length.checked_add(*more).filter(|_| follows) else { return false };
    *length = sum;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;
    use sansio::StreamId;

    #[test]
    fn payload_by_name_that_follows_is_one_piece() {
        let mut buffer = Buffer::default();
        let part = |offset| Payload::Virtual { stream: StreamId(1), offset, length: 10 };
        buffer.push(part(0));
        buffer.push(part(10));
        assert_eq!(
            buffer.slice(5, 10),
            Payload::Virtual { stream: StreamId(1), offset: 5, length: 10 }
        );
        buffer.push(part(40));
        assert_eq!(buffer.slice(15, 10).len(), 5, "cut where the stream is not the same");
    }

    proptest! {
        /// Differential: against one plain vector, under any mix of push, take and read.
        #[test]
        fn a_buffer_agrees_with_a_vector(
            steps in prop::collection::vec((0u8..3, 0u32..40, 0u32..40), 1..200)
        ) {
            let mut buffer = Buffer::default();
            let mut model: Vec<u8> = Vec::new();
            let mut next = 0u8;
            for (verb, a, b) in steps {
                match verb {
                    0 => {
                        let bytes: Vec<u8> = (0..a).map(|_| { next = next.wrapping_add(1); next })
                            .collect();
                        model.extend(&bytes);
                        buffer.push(Payload::Bytes(Bytes::from(bytes)));
                    }
                    1 => {
                        let count = (a as usize).min(model.len());
                        model.drain(..count);
                        buffer.take(u64::from(a));
                    }
                    _ => {
                        let from = (a as usize).min(model.len());
                        let to = (from + b as usize).min(model.len());
                        let got = buffer.slice(from as u64, (to - from) as u32);
                        let got = got.to_bytes().expect("no tunnel was pushed");
                        prop_assert_eq!(&got[..], &model[from..to]);
                    }
                }
                prop_assert_eq!(buffer.len(), model.len() as u64);
            }
        }
    }
}
