//! Whether this machine can do what a configuration asks for, found out without changing anything.

use super::config::{DaemonConfig, Forwarding, Mode};
use super::control::{self, Control};
use super::kernel::Kernel;
use super::ruleset::{Hooked, Ruleset};
use super::{rules, server};
use crate::sys::device;
use crate::sys::packet_socket::Interface;
use anyhow::{Result, bail};
use std::fs;
use std::process::Command;

/// What stands in the way, a sentence for each with the fix; empty if nothing does. What a running
/// daemon holds counts as in the way.
pub fn problems(config: &DaemonConfig) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(devices(config).err().map(|error| format!("{error:#}")));
    found.extend(rights());
    if config.mode == Mode::Help && !has_nft() {
        found.push("nft is missing: apt install nftables".to_owned());
    }
    found.extend(forwarding(config));
    if config.forwarding == Forwarding::Bridge {
        let bridge = Kernel::now().and_then(|kernel| kernel.bridge(&config.devices));
        found.extend(bridge.err().map(|error| format!("forwarding = bridge: {error:#}")));
    }
    if let Some(at) = config.metrics {
        found.extend(server::bind(at).err().map(|error| format!("{error:#}")));
    }
    if let Control::Socket(path) = &config.control {
        found.extend(control::check_place(path).err().map(|error| format!("{error:#}")));
    }
    found
}

/// The same, and whether another daemon's rules are there; what is worth knowing comes second.
pub fn survey(config: &DaemonConfig) -> (Vec<String>, Vec<String>) {
    let mut found = problems(config);
    let ruleset = Ruleset::read();
    if ruleset.tables.contains(&("netdev".to_owned(), rules::TABLE.to_owned())) {
        found.push(format!(
            "the nft table netdev {} is there: another daemon runs here; stop it first",
            rules::TABLE
        ));
    }
    let devices = [&config.devices.wired, &config.devices.radio];
    let mut remarks = Vec::new();
    for one in ruleset.hooked.iter().filter(|one| one.table != rules::TABLE) {
        let Hooked { family, table, name, hook, priority, .. } = one;
        let on = devices.into_iter().find(|device| one.is_on(device));
        if let Some(device) = on
            && family == "netdev"
            && hook == "ingress"
            && *priority <= PRIORITY
        {
            found.push(format!(
                "the nft chain {table} {name} looks at {device} before the daemon's rules do \
                 (priority {priority}, theirs {PRIORITY}): packets it takes would be sent twice; \
                 give it a higher number"
            ));
        }
        if hook == "forward" && config.forwarding == Forwarding::Routed {
            remarks.push(format!(
                "the nft chain {family} {table} {name} filters what is forwarded: it does not see \
                 the TCP that the daemon forwards in mode help; filter that at ingress, or on \
                 another machine"
            ));
        }
    }
    (found, remarks)
}

/// The devices, both there and with one MTU.
///
/// # Errors
/// If a device is missing, is not Ethernet, or the MTUs differ.
pub(super) fn devices(config: &DaemonConfig) -> Result<(Interface, Interface)> {
    let look = |key: &str, name: &str| match device::state(name) {
        Ok(state) => Ok(state.interface),
        Err(error) => bail!("{key} = {name}: {error:#}; `ip link` lists the devices there are"),
    };
    let wired = look("wired", &config.devices.wired)?;
    let radio = look("radio", &config.devices.radio)?;
    if let Some(high) = &config.devices.radio_high {
        look("radio-high", high)?;
    }
    if wired.mtu != radio.mtu {
        bail!(
            "{} has an MTU of {} bytes, {} of {}: set them alike (ip link set DEVICE mtu BYTES), \
             since nobody here would tell a sender that its packets are too long",
            wired.name,
            wired.mtu,
            radio.name,
            radio.mtu
        );
    }
    Ok((wired, radio))
}

/// The rights that are missing (capabilities(7)).
fn rights() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let held = u64::from_str_radix(line.trim(), 16).ok()?;
    let missing: Vec<&str> = NEEDED
        .into_iter()
        .filter(|(bit, _)| held & (1 << bit) == 0)
        .map(|(_, name)| name)
        .collect();
    (!missing.is_empty()).then(|| {
        format!(
            "the right {} is missing: run as root, or by the systemd unit that comes along",
            missing.join(" and ")
        )
    })
}

/// linux/capability.h.
const NEEDED: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (13, "CAP_NET_RAW")];

fn has_nft() -> bool {
    Command::new("nft").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Whether the kernel would forward alone: what the daemon leaves to it, and all if it is killed.
fn forwarding(config: &DaemonConfig) -> Vec<String> {
    if config.forwarding != Forwarding::Routed {
        return Vec::new();
    }
    let has = |v4: bool| config.mobile.iter().any(|prefix| prefix.network().is_ipv4() == v4);
    let settings = [
        (has(true), "net/ipv4/ip_forward", "net.ipv4.ip_forward"),
        (has(false), "net/ipv6/conf/all/forwarding", "net.ipv6.conf.all.forwarding"),
    ];
    let is_off = |file: &str| {
        fs::read_to_string(format!("/proc/sys/{file}")).is_ok_and(|value| value.trim() == "0")
    };
    let off = settings.into_iter().filter(|(needed, file, _)| *needed && is_off(file));
    off.map(|(_, _, name)| {
        format!(
            "{name} is 0: without the daemon nothing would be forwarded; sysctl -w {name}=1, or \
             put the daemon where packets are routed"
        )
    })
    .collect()
}

/// The priority of the daemon's own rules ([`super::selection`]).
const PRIORITY: i64 = -500;
