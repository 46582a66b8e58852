//! What a hop is like.

use super::frame_arq;
use crate::channel;
use crate::outage;
use crate::queue::Limit;
use crate::recorded::Capacity;
use sansio::{BitRate, Duration};
use std::sync::Arc;

/// What a hop is like. Plain data.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The nominal rate on the air.
    pub rate: BitRate,
    /// Share of the rate that carries IP packets, above 0 up to 1; the rest is preambles, medium
    /// access, link headers.
    pub mac_efficiency: f64,
    /// What each packet costs before its first bit, whatever its size.
    pub host_cost: Duration,
    /// From the last bit sent to the last bit received.
    pub delay: Duration,
    /// Room for packets of normal priority that wait.
    pub queue: Limit,
    /// Room for packets of high priority that wait.
    pub queue_high: Limit,
    /// When packets may leave; it replaces rate, MAC efficiency and host cost.
    pub capacity: Option<Arc<Capacity>>,
    /// A link layer that repeats lost frames on the air, and tells what became of each; not with a
    /// recorded capacity, which is what a link layer left over.
    pub frame_arq: Option<frame_arq::Config>,
    /// What the air does to packets; all of it at once.
    pub channels: Vec<channel::Config>,
    /// When the link is away. Both directions of a link take the same value.
    pub outages: outage::Spec,
    /// True if [`What::Departed`](super::What::Departed) is wanted. Each packet is then cloned
    /// once.
    pub report_departures: bool,
}

impl Config {
    /// Linux's default queue length (`txqueuelen` is 1000) is meant for Ethernet; radios and the
    /// papers' machines hold far less.
    const QUEUE_PACKETS: u32 = 100;
    /// Enough for every segment of a 64 KB window at 1460 bytes to be sent again at once.
    const QUEUE_HIGH_PACKETS: u32 = 64;

    /// A clean hop: 100 packets of normal and 64 of high priority may wait.
    pub fn clean(rate: BitRate, delay: Duration) -> Self {
        Config {
            rate,
            mac_efficiency: 1.0,
            host_cost: Duration::ZERO,
            delay,
            queue: Limit::Packets(Self::QUEUE_PACKETS),
            queue_high: Limit::Packets(Self::QUEUE_HIGH_PACKETS),
            capacity: None,
            frame_arq: None,
            channels: Vec::new(),
            outages: outage::Spec::default(),
            report_departures: false,
        }
    }

    /// The rate at which the bits of IP packets are served: nominal rate times MAC efficiency, to
    /// the nearest bit per second; of a recorded capacity its average.
    pub fn service_rate(&self) -> BitRate {
        if let Some(capacity) = &self.capacity {
            return capacity.average(Duration::ZERO);
        }
        let share = self.mac_efficiency;
        if share > 0.0 && share < 1.0 {
            BitRate::from_bps((self.rate.as_bps() as f64 * share + 0.5) as u64)
        } else {
            self.rate
        }
    }

    /// What an idle hop takes for a packet: the rate of its bits, and what is the same for all. Of
    /// what is recorded, what it adds counts as waiting.
    pub fn unloaded(&self) -> (BitRate, Duration) {
        let delay = channel::delay(&self.channels).unwrap_or(self.delay);
        match &self.capacity {
            Some(_) => (BitRate::from_bps(u64::MAX), delay),
            None => (self.service_rate(), self.host_cost + delay),
        }
    }
}
