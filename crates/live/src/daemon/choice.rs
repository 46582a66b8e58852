//! Which back end: all packets through the daemon, or data through the kernel and ACKs through the
//! daemon (the fast path).
//!
//! What speaks for the fast path is measured at the start, with frames that nobody else listens to
//! on the loopback device: what the daemon spends on a data packet to look at it in the ring, and
//! what to send it on as well. Inline can do more (SNOOP-DATA-4), so the fast path has to save at
//! least half of that.
//!
//! The kernel's own forwarding comes on top of the fast path, and is not measured here.

use super::{BackEnd, DaemonConfig, Forwarding};
use crate::sys::Clock;
use crate::sys::packet_ring::Ring;
use crate::sys::packet_socket::{BATCH, Head, Leave, Listen, Outgoing, PacketSocket, Prefix};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use wire::ethernet::EtherType;

/// The back end of a daemon, and why it is that one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Chosen {
    /// Never [`BackEnd::Auto`].
    pub name: BackEnd,
    /// In one sentence.
    pub reason: String,
}

/// Chooses.
///
/// # Errors
/// If [`BackEnd::Fast`] is asked for where the kernel does not forward.
pub fn choose(config: &DaemonConfig) -> Result<Chosen> {
    let chosen = |name, reason| Ok(Chosen { name, reason });
    match config.back_end {
        BackEnd::Inline => chosen(BackEnd::Inline, "as configured".to_owned()),
        BackEnd::Fast => {
            kernel_forwards(config)?;
            chosen(BackEnd::Fast, "as configured".to_owned())
        }
        BackEnd::Auto => match kernel_forwards(config).and_then(|()| measure()) {
            Err(error) => chosen(BackEnd::Inline, format!("{error:#}")),
            Ok(Costs { inline, tapped }) => {
                let name = if tapped * 2 <= inline { BackEnd::Fast } else { BackEnd::Inline };
                let reason = format!(
                    "measured on lo at the start: {tapped} ns to look at a data packet, {inline} \
                     ns to send it on as well"
                );
                chosen(name, reason)
            }
        },
    }
}

/// With the fast path the kernel forwards, so it has to be set to.
fn kernel_forwards(config: &DaemonConfig) -> Result<()> {
    if config.forwarding == Forwarding::Bridge {
        // It was looked at as a bridge.
        return Ok(());
    }
    for (is_v4, setting) in [(true, "net/ipv4/ip_forward"), (false, "net/ipv6/conf/all/forwarding")]
    {
        if config.mobile.iter().any(|prefix| prefix.network().is_ipv4() == is_v4) {
            let name = setting.replace('/', ".");
            let value = std::fs::read_to_string(format!("/proc/sys/{setting}"));
            let value = value.with_context(|| format!("read the setting {name}"))?;
            ensure!(
                value.trim() == "1",
                "the fast path needs the kernel to forward, and {name} is {}: sysctl -w {name}=1",
                value.trim()
            );
        }
    }
    Ok(())
}

/// Nanoseconds of the daemon for a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Costs {
    tapped: u64,
    inline: u64,
}

/// Times each is measured; the least counts, since other programs only add to it.
const TIMES: usize = 7;
/// Batches at a time.
const BATCHES: usize = 8;
/// A full frame of Ethernet.
const FRAME_BYTES: usize = 1514;
/// IEEE 802, local experimental types: no protocol of the kernel's, nor of anybody's.
const TYPES: [EtherType; 2] = [EtherType(0x88b5), EtherType(0x88b6)];

fn measure() -> Result<Costs> {
    let attempt = || "the back ends cannot be measured".to_owned();
    let [received_type, sent_type] = TYPES;
    let frame = |ether_type: EtherType| {
        let mut bytes = vec![0; 10 + FRAME_BYTES];
        bytes[22..24].copy_from_slice(&ether_type.0.to_be_bytes());
        vec![Outgoing::new(Head::EMPTY, bytes); BATCH]
    };
    let (arriving, leaving) = (frame(received_type), frame(sent_type));
    let sender = PacketSocket::open("lo", Prefix::Virtio, Listen::Nothing, Leave::Direct);
    let sender = sender.with_context(attempt)?;
    let clock = Clock::starting_now();
    let per_packet = |act: &mut dyn FnMut() -> Result<()>| -> Result<u64> {
        let mut least = u64::MAX;
        for _ in 0..TIMES {
            let mut spent = 0;
            for _ in 0..BATCHES {
                let mut refused = None;
                sender.send(&arriving, &[], |_, error| refused = Some(error));
                refused.map_or(Ok(()), Err).context("send on lo: ip link set lo up")?;
                let begun = clock.now();
                act()?;
                spent += clock.now().since(begun).as_nanos();
            }
            least = least.min(spent / (BATCHES * BATCH) as u64);
        }
        Ok(least)
    };
    let mut ring = Ring::open("lo", Listen::Only(received_type)).with_context(attempt)?;
    let mut frames = Vec::with_capacity(BATCH);
    let mut look = || {
        frames.clear();
        ring.drain(BATCH, |tapped| frames.push(tapped));
        ensure!(frames.len() == BATCH, "the ring lost frames");
        Ok(())
    };
    let tapped = per_packet(&mut look).with_context(attempt)?;
    let inline = per_packet(&mut || {
        look()?;
        let mut refused = None;
        sender.send(&leaving, &[], |_, error| refused = Some(error));
        Ok(refused.map_or(Ok(()), Err)?)
    });
    Ok(Costs { tapped, inline: inline.with_context(attempt)? })
}
