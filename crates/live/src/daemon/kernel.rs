//! What the kernel is set to do in this network namespace, as `ip` says it: its addresses, and the
//! bridge between two devices.

use crate::io::inline::Devices;
use anyhow::{Context, Result, bail, ensure};
use sansio::Duration;
use serde_json::Value;
use std::net::IpAddr;
use std::process::Command;
use wire::ethernet::Mac;

/// The devices of a network namespace.
#[derive(Clone, Debug)]
pub struct Kernel {
    devices: Vec<Value>,
}

/// A bridge of the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// Its name.
    pub name: String,
    /// How long it remembers a station without seeing a frame of it.
    pub ageing: Duration,
}

impl Kernel {
    /// As it is now.
    ///
    /// # Errors
    /// If `ip` is missing or says nothing.
    pub fn now() -> Result<Self> {
        let mut ip = Command::new("ip");
        let output = ip.args(["-json", "-details", "address", "show"]).output();
        let output = output.context("run ip address: install iproute2")?;
        let devices =
            serde_json::from_slice(&output.stdout).context("read what ip address says")?;
        Ok(Kernel { devices })
    }

    /// The IP addresses of all devices.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let addresses = self.devices.iter().filter_map(|device| device["addr_info"].as_array());
        addresses.flatten().filter_map(|address| address["local"].as_str()?.parse().ok()).collect()
    }

    /// The link-layer addresses of all devices, each once.
    pub fn stations(&self) -> Vec<Mac> {
        let addresses = self.devices.iter().filter_map(|device| mac(device["address"].as_str()?));
        let mut addresses: Vec<Mac> = addresses.collect();
        addresses.sort();
        addresses.dedup();
        addresses
    }

    /// The bridge that joins two devices and nothing else.
    ///
    /// # Errors
    /// What keeps the daemon from doing what this bridge does, with the way out.
    pub fn bridge(&self, devices: &Devices) -> Result<Bridge> {
        let Devices { wired, radio, radio_high } = devices;
        ensure!(
            radio_high.is_none(),
            "a bridge has one device toward the mobile hosts: leave radio-high out"
        );
        let master = |name: &str| {
            let device = self.device(name)?;
            let master = device["master"].as_str().with_context(|| {
                format!("{name} is in no bridge: ip link set {name} master BRIDGE")
            })?;
            anyhow::Ok(master.to_owned())
        };
        let bridge = master(wired)?;
        let other = master(radio)?;
        ensure!(bridge == other, "{wired} is in {bridge}, {radio} in {other}: join them in one");
        let kind = &self.device(&bridge)?["linkinfo"];
        ensure!(kind["info_kind"] == "bridge", "{bridge}, which joins them, is not a bridge");
        if kind["info_data"]["vlan_filtering"] == 1 {
            bail!(
                "{bridge} filters VLANs, which the daemon would not: switch it off (ip link set \
                 {bridge} type bridge vlan_filtering 0), or join the VLAN's own devices"
            );
        }
        for port in self.devices.iter().filter(|device| device["master"] == *bridge) {
            self.check_port(port, &bridge, [wired, radio])?;
        }
        // In USER_HZ, which is 100 everywhere.
        let ageing = kind["info_data"]["ageing_time"].as_u64().unwrap_or(30_000);
        Ok(Bridge { name: bridge, ageing: Duration::from_millis(ageing.saturating_mul(10)) })
    }

    fn check_port(&self, port: &Value, bridge: &str, ours: [&String; 2]) -> Result<()> {
        let name = port["ifname"].as_str().unwrap_or_default();
        ensure!(
            ours.iter().any(|own| *own == name),
            "{bridge} has a third port, {name}: the daemon bridges two"
        );
        let data = &port["linkinfo"]["info_slave_data"];
        let state = data["state"].as_str().unwrap_or_default();
        ensure!(
            state == "forwarding",
            "{bridge} does not forward through {name} (it is {state}): wait, or look for a loop"
        );
        for restriction in ["isolated", "locked"] {
            ensure!(
                data[restriction] != true,
                "{name} is {restriction} in {bridge}, which the daemon would not heed: bridge link \
                 set dev {name} {restriction} off"
            );
        }
        Ok(())
    }

    fn device(&self, name: &str) -> Result<&Value> {
        let found = self.devices.iter().find(|device| device["ifname"] == name);
        found.with_context(|| format!("there is no device {name}"))
    }
}

fn mac(text: &str) -> Option<Mac> {
    let mut octets = [0; 6];
    let mut parts = text.split(':');
    for octet in &mut octets {
        *octet = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    parts.next().is_none().then_some(Mac(octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(change: impl FnOnce(&mut Value)) -> Kernel {
        let port = |name: &str| {
            serde_json::json!({
                "ifname": name, "master": "br0", "address": "02:00:00:00:00:01",
                "addr_info": [{"local": "10.0.0.1"}, {"local": "fe80::1"}],
                "linkinfo": {"info_slave_data": {
                    "state": "forwarding", "isolated": false, "locked": false,
                }},
            })
        };
        let mut devices = serde_json::json!([
            port("w"),
            port("r"),
            {"ifname": "x", "address": "02:00:00:00:00:03"},
            {"ifname": "br0", "address": "02:00:00:00:00:01",
             "linkinfo": {"info_kind": "bridge",
                          "info_data": {"vlan_filtering": 0, "ageing_time": 500}}},
        ]);
        change(&mut devices);
        Kernel { devices: serde_json::from_value(devices).expect("a list") }
    }

    fn bridge(change: impl FnOnce(&mut Value)) -> Result<Bridge, String> {
        let (wired, radio) = ("w".to_owned(), "r".to_owned());
        let devices = Devices { wired, radio, radio_high: None };
        kernel(change).bridge(&devices).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn a_bridge_of_two_ports_that_forwards_is_found() {
        let ageing = Duration::from_secs(5);
        assert_eq!(bridge(|_| {}), Ok(Bridge { name: "br0".to_owned(), ageing }));
        let kernel = kernel(|_| {});
        assert_eq!(kernel.stations(), [Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 3])]);
        assert_eq!(kernel.addresses().len(), 4);
    }

    #[test]
    fn what_the_daemon_would_do_otherwise_is_refused_with_the_way_out() {
        type Change = fn(&mut Value);
        let cases: [(Change, &str); 6] = [
            (|all| all[1]["master"] = Value::Null, "ip link set r master"),
            (|all| all[1]["master"] = "br1".into(), "w is in br0, r in br1"),
            (|all| all[2]["master"] = "br0".into(), "a third port, x"),
            (|all| all[3]["linkinfo"]["info_data"]["vlan_filtering"] = 1.into(), "filters VLANs"),
            (
                |all| all[0]["linkinfo"]["info_slave_data"]["state"] = "blocking".into(),
                "through w (it is blocking)",
            ),
            (
                |all| all[1]["linkinfo"]["info_slave_data"]["isolated"] = true.into(),
                "dev r isolated off",
            ),
        ];
        for (change, expected) in cases {
            let message = bridge(change).expect_err(expected);
            assert!(message.contains(expected), "{message}");
        }
    }
}
