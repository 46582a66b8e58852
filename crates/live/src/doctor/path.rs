//! What defeats a daemon between two devices, or is to be known of it: looked at, nothing changed.

use crate::daemon::ruleset::{Kind, Ruleset};
use crate::sys::{device, offload};
use serde::Serialize;
use std::fmt;
use std::fs;
use std::process::Command;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What.
    pub name: String,
    /// How it is.
    pub found: String,
    /// What that is for a daemon here.
    pub judgement: Judgement,
    /// What it means, and the fix; empty if it is fine.
    pub means: String,
}

/// What something is for a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// No matter.
    Fine,
    /// To be known.
    Mind,
    /// It can do nothing, or harm.
    Defeats,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.judgement {
            Judgement::Fine => "ok",
            Judgement::Mind => "mind",
            Judgement::Defeats => "DEFEATS",
        };
        write!(f, "{word:<8} {}: {}", self.name, self.found)?;
        if self.means.is_empty() { Ok(()) } else { write!(f, "\n         {}", self.means) }
    }
}

/// Looks at everything between the two devices of the calling thread's network namespace.
pub fn examine(wired: &str, radio: &str) -> Vec<Finding> {
    let devices = [wired, radio];
    let mut found = links(devices);
    for name in devices {
        found.extend(receive_offloads(name));
        found.extend(hardware_forwarding(name));
        found.push(reverse_path(name));
    }
    found.extend(of_rules(&Ruleset::read(), devices));
    found.push(bridge_calls());
    found.push(helpers(&fs::read_to_string("/proc/modules").unwrap_or_default()));
    found
}

fn fine(name: impl Into<String>, found: impl Into<String>) -> Finding {
    let (name, found) = (name.into(), found.into());
    Finding { name, found, judgement: Judgement::Fine, means: String::new() }
}

impl Finding {
    fn but(self, judgement: Judgement, means: impl Into<String>) -> Finding {
        Finding { judgement, means: means.into(), ..self }
    }
}

/// Both there, up, and with one MTU.
fn links(devices: [&str; 2]) -> Vec<Finding> {
    let states = devices.map(|name| (name, device::state(name)));
    let mut found = Vec::new();
    for (name, state) in &states {
        found.push(match state {
            Ok(state) if state.running => {
                fine(format!("{name}: link"), format!("up, {} bytes MTU", state.interface.mtu))
            }
            Ok(_) => fine(format!("{name}: link"), "down")
                .but(Judgement::Mind, format!("nothing passes; ip link set {name} up")),
            Err(error) => fine(format!("{name}: link"), format!("{error:#}"))
                .but(Judgement::Defeats, "name a device that `ip link` lists, of type Ethernet"),
        });
    }
    if let [(_, Ok(wired)), (_, Ok(radio))] = &states
        && wired.interface.mtu != radio.interface.mtu
    {
        let both = format!("{} and {} bytes", wired.interface.mtu, radio.interface.mtu);
        found.push(fine("MTU", both).but(
            Judgement::Defeats,
            "nobody would tell a sender that a packet is too long; ip link set DEVICE mtu BYTES",
        ));
    }
    found
}

fn receive_offloads(name: &str) -> Option<Finding> {
    let features = offload::features(name).ok()?;
    let on = |is_on| if is_on { "on" } else { "off" };
    let shown = fine(
        format!("{name}: offloads"),
        format!(
            "GRO {}, LRO {}, TSO {}",
            on(features.generic_receive),
            on(features.large_receive),
            on(features.segmentation)
        ),
    );
    Some(match features {
        offload::Features { large_receive: true, .. } => shown.but(
            Judgement::Defeats,
            format!(
                "LRO joins segments and forgets where they began: a router must not use it, and \
                 the daemon could not cut them again; ethtool -K {name} lro off"
            ),
        ),
        offload::Features { generic_receive: true, .. } => shown.but(
            Judgement::Fine,
            "super-packets are taken whole and cut again only for repairs: faster, nothing to do",
        ),
        _ => shown,
    })
}

/// Forwarding in the device itself, as ethtool(8) tells.
fn hardware_forwarding(name: &str) -> Option<Finding> {
    let shown = format!("{name}: hw-tc-offload");
    let Ok(output) = Command::new("ethtool").args(["-k", name]).output() else {
        return Some(
            fine(shown, "unknown: ethtool is missing")
                .but(Judgement::Mind, "apt install ethtool, and look again"),
        );
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let value = text.lines().find_map(|line| line.trim().strip_prefix("hw-tc-offload:"))?.trim();
    let is_on = value.starts_with("on");
    let found = fine(shown, value.to_owned());
    Some(match is_on {
        false => found,
        true => found.but(
            Judgement::Mind,
            format!(
                "flows that tc or a flowtable gives to the device pass without this machine seeing \
                 them; ethtool -K {name} hw-tc-offload off"
            ),
        ),
    })
}

fn reverse_path(name: &str) -> Finding {
    let read = |of: &str| {
        let file = format!("/proc/sys/net/ipv4/conf/{of}/rp_filter");
        fs::read_to_string(file).ok().and_then(|value| value.trim().parse::<u8>().ok())
    };
    // The kernel takes the larger of the two (Documentation/networking/ip-sysctl.rst).
    let value = read("all").max(read(name));
    let shown = format!("{name}: rp_filter");
    match value {
        None => fine(shown, "unknown"),
        Some(1) => fine(shown, "1, strict").but(
            Judgement::Mind,
            format!(
                "the kernel drops packets whose answers would leave elsewhere: with asymmetric \
                 paths those are lost here; sysctl -w net.ipv4.conf.{name}.rp_filter=2"
            ),
        ),
        Some(value) => fine(shown, value.to_string()),
    }
}

/// Flow offload, translation and filters of others.
fn of_rules(ruleset: &Ruleset, devices: [&str; 2]) -> Vec<Finding> {
    let mut found = Vec::new();
    for one in &ruleset.hooked {
        let on = devices.into_iter().any(|device| one.is_on(device));
        let name = format!("nft {} {} {}", one.family, one.table, one.name);
        if one.kind == Kind::Flowtable && on && one.in_hardware {
            found.push(fine(name, "flow offload in hardware").but(
                Judgement::Defeats,
                "the devices forward established flows by themselves, and the daemon sees nothing \
                 of them; take `flags offload` out of the flowtable, or these devices",
            ));
        } else if one.kind == Kind::Flowtable && on {
            found.push(fine(name, "flow offload").but(
                Judgement::Mind,
                "in mode help the daemon takes its packets before the flowtable does; in mode \
                 observe it sees them, too; only its own share is not offloaded",
            ));
        } else if one.purpose == "nat" && matches!(one.hook.as_str(), "postrouting" | "prerouting")
        {
            found.push(fine(name, "translates addresses").but(
                Judgement::Mind,
                "what the daemon takes is not translated: between these devices nothing may have \
                 to be; put the daemon on the side where addresses are the mobile hosts' own",
            ));
        } else if one.hook == "forward" && one.purpose == "filter" {
            found.push(fine(name, "filters what is forwarded").but(
                Judgement::Mind,
                "in mode help it does not see the TCP that the daemon forwards; filter that at \
                 ingress, or on another machine",
            ));
        }
    }
    if found.is_empty() {
        found.push(fine("nft", "no flow offload, translation or filter in the way"));
    }
    found
}

fn bridge_calls() -> Finding {
    let value = fs::read_to_string("/proc/sys/net/bridge/bridge-nf-call-iptables");
    match value.as_deref().map(str::trim) {
        Ok("1") => fine("bridge-nf-call-iptables", "1").but(
            Judgement::Mind,
            "bridged frames pass the filters for routed ones, too; if this machine bridges: \
             sysctl -w net.bridge.bridge-nf-call-iptables=0",
        ),
        Ok(value) => fine("bridge-nf-call-iptables", value),
        Err(_) => fine("bridge-nf-call-iptables", "not loaded"),
    }
}

/// Modules that read or rewrite the payload of TCP.
fn helpers(modules: &str) -> Finding {
    let names = modules.lines().filter_map(|line| line.split(' ').next());
    let found: Vec<&str> = names
        .filter(|name| {
            let of = name.strip_prefix("nf_conntrack_").or_else(|| name.strip_prefix("nf_nat_"));
            of.is_some_and(|of| HELPERS.contains(&of))
        })
        .collect();
    let shown = "conntrack helpers";
    match found.is_empty() {
        true => fine(shown, "none"),
        false => fine(shown, found.join(", ")).but(
            Judgement::Mind,
            "in mode help they do not see the TCP that the daemon forwards, and open no ports for \
             it; without them: rmmod",
        ),
    }
}

/// Helpers for protocols over TCP.
const HELPERS: [&str; 6] = ["ftp", "h323", "irc", "pptp", "sane", "sip"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_others_are_judged_by_what_they_do_to_these_devices() {
        let ruleset = Ruleset::parse(
            "table inet f {\n\tflowtable ft {\n\t\thook ingress priority 0\n\t\tdevices = { eth0, \
             eth9 }\n\t\tflags offload\n\t}\n\tchain fw {\n\t\ttype filter hook forward priority \
             0; policy drop;\n\t}\n}\ntable ip n {\n\tchain out {\n\t\ttype nat hook postrouting \
             priority 100; policy accept;\n\t}\n}\n",
        );
        let judged = |devices| -> Vec<(String, Judgement)> {
            let found = of_rules(&ruleset, devices);
            found.into_iter().map(|one| (one.name, one.judgement)).collect()
        };
        let filter = ("nft inet f fw".to_owned(), Judgement::Mind);
        let nat = ("nft ip n out".to_owned(), Judgement::Mind);
        let offload = ("nft inet f ft".to_owned(), Judgement::Defeats);
        assert_eq!(judged(["eth0", "eth1"]), [offload, filter.clone(), nat.clone()]);
        assert_eq!(judged(["eth2", "eth1"]), [filter, nat]);
        assert_eq!(of_rules(&Ruleset::default(), ["a", "b"])[0].judgement, Judgement::Fine);
    }

    #[test]
    fn helpers_are_known_by_name() {
        let none = helpers("nf_conntrack 172032 1 - Live 0x0\nnf_nat 1 1 - Live 0x0\n");
        assert_eq!(none.judgement, Judgement::Fine);
        let ftp = helpers("nf_conntrack_ftp 24576 0 - Live 0x0\n");
        assert_eq!((ftp.judgement, ftp.found.as_str()), (Judgement::Mind, "nf_conntrack_ftp"));
    }
}
