//! Super-packets for which there is no room: in a queue, in the socket. Each frame arrives once and
//! in its place, or is counted as refused.

use crate::joining::{Sink, batch, between, forwarded};
use live::io::joining::{Limits, SUPER_PACKET_BYTES_MAX, join};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_send_buffer_size;
use sansio::Random;
use std::collections::BTreeSet;
use std::time::Duration;

/// Slower than frames come, with room for a super-packet at least.
const RATE: &str = "tbf rate 20mbit burst 100000";

pub(crate) fn frames_that_find_no_room_are_refused_and_none_comes_twice() {
    let cases = [
        ("queue", 150_000, None, Errno::NOBUFS),
        ("socket", 100_000_000, Some(40_000), Errno::AGAIN),
    ];
    for (what, limit, buffer, wanted) in cases {
        let slow = format!("tc -n {{near}} qdisc add dev out root {RATE} limit {limit}");
        between(&slow, |Sink { sender, ring }| {
            if let Some(bytes) = buffer {
                set_socket_send_buffer_size(sender, bytes).expect("another size");
            }
            let (mut expected, mut received) = (Vec::new(), Vec::new());
            let (mut sent, mut joined_in_all, mut refused_in_all) = (0, 0, 0);
            for seed in 0..100 {
                let frames = batch(&mut Random::new(seed, "refusals"));
                let outgoing: Vec<_> = frames.iter().map(|frame| forwarded(frame)).collect();
                let (mut joined, mut refused) = (Vec::new(), BTreeSet::new());
                join(&outgoing, Limits { mtu: 1_500, bytes: SUPER_PACKET_BYTES_MAX }, &mut joined);
                joined_in_all += sender.send(&outgoing, &joined, |index, error| {
                    assert_eq!(error.raw_os_error(), Some(wanted.raw_os_error()), "{what}");
                    assert!(refused.insert(index), "seed {seed}: {index} is refused twice");
                });
                (sent, refused_in_all) = (sent + frames.len(), refused_in_all + refused.len());
                let left = frames.iter().enumerate().filter(|(index, _)| !refused.contains(index));
                expected.extend(left.map(|(_, frame)| frame[10..].to_vec()));
                ring.drain(usize::MAX, |tapped| received.push(tapped.frame[10..].to_vec()));
            }
            for look in 0.. {
                ring.drain(usize::MAX, |tapped| received.push(tapped.frame[10..].to_vec()));
                if received.len() >= expected.len() || look > 1_000 {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            // And nothing more.
            std::thread::sleep(Duration::from_millis(100));
            ring.drain(usize::MAX, |tapped| received.push(tapped.frame[10..].to_vec()));
            println!(
                "  {what}: of {sent} frames {joined_in_all} left joined, {refused_in_all} refused"
            );
            let other = expected.iter().zip(&received).position(|(one, other)| one != other);
            assert_eq!((other, received.len()), (None, expected.len()), "{what}");
            assert!(joined_in_all > 0 && refused_in_all > 0, "{what}");
        });
    }
}
