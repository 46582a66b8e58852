//! Frames that leave by a packet socket: some in each system call, some as one super-packet.
//!
//! sendmmsg(2) takes messages one after the other and stops at the first that fails. It says what
//! was wrong only if that was the first of the call; otherwise the caller comes again with it. A
//! frame that failed has not left. Of a super-packet some segments may have: the kernel cuts it for
//! a device that does not, and an error then tells of the last segment. So a super-packet is the
//! first of its call, and if there was no room for it, it counts as refused and does not come
//! again, whole or in parts. What a queue drops of it without a word is the queue's to count, as
//! with what the kernel forwards.

use super::packet_socket::{BATCH, Joined, Outgoing, PacketSocket};
use rustix::fd::{AsFd, AsRawFd};
use std::io;
use std::ops::Range;

/// What one system call takes.
#[derive(Clone, Debug)]
enum Call<'a> {
    /// Frames in one message.
    Joined(&'a Joined),
    /// A message for each of these frames; only the first may be a super-packet of its sender's.
    Each(Range<usize>),
}

/// Errors after which there is no sense in trying the parts of a super-packet: a full queue or a
/// device that stopped, which may have taken some; no room in the socket.
const WHOLLY: [i32; 3] = [libc::ENOBUFS, libc::ENETDOWN, libc::EAGAIN];

impl PacketSocket {
    /// Sends frames in order; calls `refused` with the index of each that the device refused.
    /// Those of a `joined` leave as one super-packet; one by one if the system does not take such.
    /// Returns how many left in super-packets.
    pub fn send(
        &self,
        frames: &[Outgoing],
        joined: &[Joined],
        refused: impl FnMut(usize, io::Error),
    ) -> usize {
        send(frames, joined, |call| self.submit(frames, call), refused)
    }

    /// Has the system take the messages of a call, and returns how many it took.
    fn submit(&self, frames: &[Outgoing], call: &Call<'_>) -> io::Result<usize> {
        let nothing = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let piece = |bytes: &[u8]| libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        };
        let mut pieces = [nothing; 2 * BATCH];
        // SAFETY: all zero is a valid mmsghdr.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        let count = match call {
            Call::Joined(joined) => {
                let frames = &frames[joined.first..][..joined.count];
                pieces[0] = piece(joined.head.as_bytes());
                for (own, frame) in pieces[1..].iter_mut().zip(frames) {
                    let before = joined.headers - frame.head.as_bytes().len();
                    *own = piece(&frame.rest[before..]);
                }
                messages[0].msg_hdr.msg_iov = pieces.as_mut_ptr();
                messages[0].msg_hdr.msg_iovlen = 1 + joined.count;
                1
            }
            Call::Each(range) => {
                let own = messages.iter_mut().zip(pieces.chunks_exact_mut(2));
                for ((message, own), frame) in own.zip(&frames[range.clone()]) {
                    own.copy_from_slice(&[piece(frame.head.as_bytes()), piece(&frame.rest)]);
                    message.msg_hdr.msg_iov = own.as_mut_ptr();
                    message.msg_hdr.msg_iovlen = own.len();
                }
                range.len()
            }
        };
        // SAFETY: every message points to iovecs of its own, which describe bytes borrowed from
        // `frames` and `call`; sendmmsg only reads them.
        let sent = unsafe {
            libc::sendmmsg(
                self.as_fd().as_raw_fd(),
                messages.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

fn send(
    frames: &[Outgoing],
    mut joined: &[Joined],
    mut submit: impl FnMut(&Call<'_>) -> io::Result<usize>,
    mut refused: impl FnMut(usize, io::Error),
) -> usize {
    let (mut done, mut left_joined) = (0, 0);
    while done < frames.len() {
        let call = Call::next(frames, joined, done);
        let result = match submit(&call) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            result => result,
        };
        let Call::Joined(&Joined { count, .. }) = call else {
            let error = match result {
                Ok(taken) => {
                    done += taken;
                    continue;
                }
                Err(error) => error,
            };
            refused(done, error);
            done += 1;
            continue;
        };
        joined = &joined[1..];
        match result.map_err(|error| error.raw_os_error().unwrap_or(0)) {
            Ok(_) => (done, left_joined) = (done + count, left_joined + count),
            Err(code) if WHOLLY.contains(&code) => {
                let all = done..done + count;
                all.for_each(|index| refused(index, io::Error::from_raw_os_error(code)));
                done += count;
            }
            // One by one.
            Err(_) => {}
        }
    }
    left_joined
}

impl<'a> Call<'a> {
    /// The next call for frames from the one with the index `from` on, of which those in `joined`
    /// leave together.
    fn next(frames: &[Outgoing], joined: &'a [Joined], from: usize) -> Call<'a> {
        let end = match joined.first() {
            Some(joined) if joined.first == from => return Call::Joined(joined),
            Some(joined) => joined.first,
            None => frames.len(),
        };
        let others = frames[from + 1..end].iter().take(BATCH - 1);
        let count = 1 + others.take_while(|frame| !is_super_packet(frame)).count();
        Call::Each(from..from + count)
    }
}

/// True if the host that sent it left it to a device to cut it: the prefix says so.
fn is_super_packet(frame: &Outgoing) -> bool {
    frame.head.as_bytes().get(1).is_some_and(|kind| *kind != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::packet_socket::Head;

    /// A device that takes so many segments in each system call, drops the others, and complains as
    /// sendmmsg(2) does: of the last segment of a message, and of the first message only.
    struct Device {
        room: usize,
        complains: i32,
        arrived: Vec<usize>,
    }

    impl Device {
        fn take(&mut self, frames: &[Outgoing], call: &Call<'_>) -> io::Result<usize> {
            // First frame and number of frames.
            let messages: Vec<(usize, usize)> = match call {
                Call::Joined(joined) => vec![(joined.first, joined.count)],
                Call::Each(range) => range.clone().map(|index| (index, 1)).collect(),
            };
            let mut room = self.room;
            for (number, (first, count)) in messages.iter().enumerate() {
                let mut is_in = true;
                for index in (*first..).take(*count) {
                    for _ in 0..segments(&frames[index]) {
                        is_in = room > 0;
                        room -= usize::from(is_in);
                        self.arrived.extend(is_in.then_some(index));
                    }
                }
                match (is_in, number) {
                    (true, _) => {}
                    (false, 0) => return Err(io::Error::from_raw_os_error(self.complains)),
                    (false, _) => return Ok(number),
                }
            }
            Ok(messages.len())
        }
    }

    /// What a host left to be cut stands for three.
    fn segments(frame: &Outgoing) -> usize {
        if is_super_packet(frame) { 3 } else { 1 }
    }

    fn frame(kind: u8) -> Outgoing {
        let mut head = Head::EMPTY;
        head.push(&[0, kind]);
        Outgoing::new(head, vec![0; 60])
    }

    fn joined(first: usize, count: usize) -> Joined {
        Joined { first, count, headers: 2, head: Head::EMPTY }
    }

    /// What arrived, what was refused, and how many left joined.
    fn sent(
        (frames, joined): (&[Outgoing], &[Joined]),
        (room, complains): (usize, i32),
    ) -> (Vec<usize>, Vec<usize>, usize) {
        let (mut device, mut refused) = (Device { room, complains, arrived: vec![] }, vec![]);
        let submit = |call: &Call<'_>| device.take(frames, call);
        let left = send(frames, joined, submit, |index, error| {
            assert_eq!(error.raw_os_error(), Some(complains));
            refused.push(index);
        });
        (device.arrived, refused, left)
    }

    #[test]
    fn a_super_packet_of_which_some_left_does_not_come_again() {
        let frames: Vec<Outgoing> = (0..20).map(|_| frame(0)).collect();
        let all = [joined(3, 5), joined(8, 2), joined(12, 8)];
        for code in WHOLLY {
            for room in 1..30 {
                let (arrived, refused, left) = sent((&frames, &all), (room, code));
                assert!(arrived.is_sorted_by(|a, b| a < b), "{room}: once, in order: {arrived:?}");
                let lost: Vec<usize> = (0..20).filter(|index| !arrived.contains(index)).collect();
                assert!(lost.iter().all(|index| refused.contains(index)), "{room}: {refused:?}");
                let fit = all.iter().filter(|joined| joined.count <= room);
                assert_eq!(left, fit.map(|joined| joined.count).sum::<usize>(), "{room}");
            }
        }
    }

    #[test]
    fn a_super_packet_of_a_host_of_which_some_left_does_not_come_again() {
        let kinds = [0, 0, 1, 4, 0, 1, 0, 0];
        let frames = kinds.map(frame);
        for room in 1..12 {
            let (arrived, refused, _) = sent((&frames, &[]), (room, libc::ENOBUFS));
            for (index, frame) in frames.iter().enumerate() {
                let segments = segments(frame);
                let times = arrived.iter().filter(|one| **one == index).count();
                assert!(times <= segments, "{room}: number {index} came {times} times");
                assert!(times == segments || refused.contains(&index), "{room}: {refused:?}");
            }
        }
    }

    #[test]
    fn what_the_system_does_not_take_joined_leaves_one_by_one() {
        let frames: Vec<Outgoing> = (0..9).map(|_| frame(0)).collect();
        let (mut arrived, all) = (Vec::new(), [joined(1, 3), joined(4, 3)]);
        let submit = |call: &Call<'_>| {
            let Call::Each(range) = call else {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            };
            arrived.extend(range.clone());
            Ok(range.len())
        };
        let left = send(&frames, &all, submit, |index, error| panic!("{index}: {error}"));
        assert_eq!((arrived, left), ((0..9).collect(), 0));
    }

    #[test]
    fn a_call_takes_a_batch_at_most() {
        let frames: Vec<Outgoing> = (0..200).map(|_| frame(0)).collect();
        let mut calls = Vec::new();
        let submit = |call: &Call<'_>| {
            let (range, messages) = match call {
                Call::Joined(joined) => (joined.first..joined.first + joined.count, 1),
                Call::Each(range) => (range.clone(), range.len()),
            };
            calls.push((range.start, messages));
            Ok(messages)
        };
        send(&frames, &[joined(130, 64)], submit, |index, error| panic!("{index}: {error}"));
        assert_eq!(calls, [(0, 64), (64, 64), (128, 2), (130, 1), (194, 6)]);
    }
}
