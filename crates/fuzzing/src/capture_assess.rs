//! Any bytes as a capture: the reader refuses or ends, and what is said of the rest adds up.

use assess::decode::Class;
use assess::{Options, assess};

/// The invariants: no panic; traffic adds up to the packets and bytes of the capture, shares to
/// one; nothing saved is longer than what was stalled, and no bound crosses the other.
pub fn capture_assess(bytes: &[u8]) {
    let Ok(of) = assess(bytes, Options::default(), |_| true) else { return };
    let packets: u64 = of.traffic.iter().map(|it| it.packets).sum();
    let total: u64 = of.traffic.iter().map(|it| it.bytes).sum();
    assert_eq!((packets, total), (of.capture.packets, of.capture.bytes), "traffic adds up");
    let shares: f64 = of.traffic.iter().map(|it| it.share).sum();
    let once = of.traffic.iter().any(|it| it.class != Class::SeenTwice && it.bytes > 0);
    assert!(!once || (shares - 1.0).abs() < 1e-6, "shares add up to {shares}");
    for connection in &of.connections {
        for stall in &connection.stalls {
            for [least, most] in &stall.saved_s {
                assert!(least <= most, "at least {least}, at most {most}");
                assert!(*most <= stall.length_s, "{most} of {}", stall.length_s);
            }
        }
    }
    let stalled: f64 = of.causes.iter().map(|it| it.stalled_s).sum();
    for scheme in &of.schemes {
        assert!(scheme.saved_s_min <= scheme.saved_s_max + 1e-9, "{scheme:?}");
        assert!(scheme.saved_s_max <= stalled * (1.0 + 1e-9) + 1e-9, "{scheme:?}");
    }
}
