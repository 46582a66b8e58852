//! Namespaces, devices, addresses and settings of the lab; made and unmade with `ip`.

use crate::radio::Port;
use crate::sys::namespace::{self, within};
use crate::sys::offload;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The fixed host's address.
pub const FIXED_HOST: Ipv4Addr = Ipv4Addr::new(10, 78, 1, 1);
/// The mobile host's address.
pub const MOBILE_HOST: Ipv4Addr = Ipv4Addr::new(10, 78, 2, 1);
/// Where the mobile hosts are.
pub const MOBILE_PREFIX: &str = "10.78.2.0/24";
/// The first of them alone.
pub const FIRST_MOBILE: &str = "10.78.2.1/32";
/// So many mobile hosts have an address in the lab.
pub const MOBILES_MAX: u32 = 200;

/// The address of a mobile host, counted from 0. All are one kernel's.
pub fn mobile_host(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(MOBILE_HOST) + number)
}
/// The base station's device toward the fixed host.
pub const WIRED: &str = "wired";
/// Its device toward the mobile host.
pub const RADIO: &str = "radio";
/// Its device for packets that shall overtake others on the radio.
pub const RADIO_HIGH: &str = "radio-high";

/// The beginning of every name.
const PREFIX: &str = "lh-";
/// The hosts' only device.
const HOST: &str = "net0";

/// The names of a lab's namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The fixed host's.
    pub fixed: String,
    /// The base station's.
    pub base: String,
    /// The mobile host's.
    pub mobile: String,
    /// The emulated hops'.
    pub air: String,
}

impl Names {
    /// The names of a lane of this process.
    pub fn new(lane: u32) -> Self {
        let process = std::process::id();
        let name = |host: &str| match lane {
            0 => format!("{PREFIX}{process}-{host}"),
            _ => format!("{PREFIX}{process}-{lane}-{host}"),
        };
        Names { fixed: name("fh"), base: name("bs"), mobile: name("mh"), air: name("air") }
    }

    /// All four.
    pub fn all(&self) -> [&str; 4] {
        [&self.fixed, &self.base, &self.mobile, &self.air]
    }
}

/// The lab's network; dropping it takes it down.
#[derive(Debug)]
pub struct Network {
    names: Names,
    /// Mobile hosts that have their addresses.
    mobiles: u32,
}

/// One end of a veth pair that is not the radio's.
struct End<'a> {
    namespace: &'a str,
    device: &'static str,
    mac: &'static str,
    port: Port,
}

impl Network {
    /// Builds it.
    ///
    /// # Errors
    /// Whatever `ip` says; what was built is then taken down.
    pub fn build(names: &Names) -> Result<Self> {
        let network = Network { names: names.clone(), mobiles: 1 };
        let mut batch = String::new();
        for name in names.all() {
            batch += &format!("netns add {name}\n");
        }
        for End { namespace, device, mac, port } in network.ends() {
            let (air, at_air) = (&names.air, air_device(port));
            batch += &format!(
                "link add {device} netns {namespace} address {mac} type veth \
                 peer name {at_air} netns {air}\n"
            );
        }
        ip(None, &batch)?;
        for name in names.all() {
            settle(name)?;
        }
        for (namespace, batch) in network.addresses() {
            ip(Some(namespace), &batch)?;
        }
        for End { namespace, device, port, .. } in network.ends() {
            within(namespace, || offload::switch_off(device))?;
            within(&names.air, || offload::switch_off(&air_device(port)))?;
        }
        Ok(network)
    }

    /// Its namespaces.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The radio's devices, in the order of [`Port::ALL`].
    pub fn air_devices(&self) -> [String; Port::ALL.len()] {
        Port::ALL.map(air_device)
    }

    /// Makes a congestion control the default of whatever runs at the hosts. A namespace's own
    /// default cannot be set freely; a route's can.
    ///
    /// # Errors
    /// If the kernel does not have it.
    pub fn use_congestion_control(&self, name: &str) -> Result<()> {
        for (namespace, gateway) in
            [(&self.names.fixed, WIRED_GATEWAY), (&self.names.mobile, RADIO_GATEWAY)]
        {
            let batch = format!("route replace default via {gateway} congctl {name}\n");
            ip(Some(namespace), &batch)?;
        }
        Ok(())
    }

    /// Gives so many mobile hosts their addresses, at most [`MOBILES_MAX`].
    ///
    /// # Errors
    /// Whatever `ip` says.
    pub fn house(&mut self, mobiles: u32) -> Result<()> {
        let (mut base, mut mobile) = (String::new(), String::new());
        for address in (self.mobiles..mobiles.min(MOBILES_MAX)).map(mobile_host) {
            mobile += &format!("address add {address}/24 dev {HOST}\n");
            base += &format!(
                "neighbour replace {address} lladdr {MOBILE_MAC} dev {RADIO} nud permanent\n"
            );
        }
        if !mobile.is_empty() {
            ip(Some(&self.names.mobile), &mobile)?;
            ip(Some(&self.names.base), &base)?;
            self.mobiles = mobiles;
        }
        Ok(())
    }

    fn ends(&self) -> [End<'_>; Port::ALL.len()] {
        let Names { fixed, base, mobile, .. } = &self.names;
        Port::ALL.map(|port| match port {
            Port::Fixed => End { namespace: fixed, device: HOST, mac: FIXED_MAC, port },
            Port::BaseWired => End { namespace: base, device: WIRED, mac: WIRED_MAC, port },
            Port::BaseRadio => End { namespace: base, device: RADIO, mac: RADIO_MAC, port },
            Port::BaseRadioHigh => End { namespace: base, device: RADIO_HIGH, mac: HIGH_MAC, port },
            Port::Mobile => End { namespace: mobile, device: HOST, mac: MOBILE_MAC, port },
        })
    }

    /// The `ip` commands of each namespace. Neighbours are fixed, so that no ARP is needed.
    fn addresses(&self) -> [(&str, String); 4] {
        let host = |address: Ipv4Addr, gateway: Ipv4Addr, mac: &str| {
            format!(
                "link set lo up\nlink set {HOST} up\naddress add {address}/24 dev {HOST}\n\
                 neighbour replace {gateway} lladdr {mac} dev {HOST} nud permanent\n\
                 route replace default via {gateway}\n"
            )
        };
        let base = format!(
            "link set lo up\nlink set {WIRED} up\nlink set {RADIO} up\nlink set {RADIO_HIGH} up\n\
             address add {WIRED_GATEWAY}/24 dev {WIRED}\n\
             address add {RADIO_GATEWAY}/24 dev {RADIO}\n\
             neighbour replace {FIXED_HOST} lladdr {FIXED_MAC} dev {WIRED} nud permanent\n\
             neighbour replace {MOBILE_HOST} lladdr {MOBILE_MAC} dev {RADIO} nud permanent\n"
        );
        let air =
            Port::ALL.iter().map(|port| format!("link set {} up\n", air_device(*port))).collect();
        [
            (self.names.air.as_str(), air),
            (self.names.fixed.as_str(), host(FIXED_HOST, WIRED_GATEWAY, WIRED_MAC)),
            (self.names.mobile.as_str(), host(MOBILE_HOST, RADIO_GATEWAY, RADIO_MAC)),
            (self.names.base.as_str(), base),
        ]
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in self.names.all() {
            let _removed = remove(name);
        }
    }
}

/// What [`clean`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Namespaces that are gone now.
    pub removed: Vec<String>,
    /// Namespaces of the lab that are in use: their names, and by which process.
    pub kept: Vec<(String, String)>,
}

/// Removes what killed runs left: namespaces of the lab whose process is gone and in which none
/// runs.
///
/// # Errors
/// If one of them cannot be removed.
pub fn clean() -> Result<Cleaned> {
    let mut cleaned = Cleaned::default();
    let Ok(entries) = fs::read_dir(namespace::DIRECTORY) else { return Ok(cleaned) };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.context("list the network namespaces")?.file_name().into_string());
    }
    names.sort();
    for name in names {
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        let Some(process) = process.and_then(|process| process.parse::<u32>().ok()) else {
            continue;
        };
        if let Some(why) = in_use(&name, process) {
            cleaned.kept.push((name, why));
        } else {
            remove(&name)?;
            cleaned.removed.push(name);
        }
    }
    Ok(cleaned)
}

/// Who uses a namespace that a process has made: itself, or what it left running there.
fn in_use(name: &str, process: u32) -> Option<String> {
    let shown = |process: u32| {
        let command = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        format!("process {process} ({}) runs", command.trim())
    };
    if Path::new(&format!("/proc/{process}")).exists() {
        return Some(shown(process));
    }
    let inside = namespace::processes(name).ok()?;
    inside.first().map(|process| format!("{} in it", shown(*process)))
}

/// Sets a setting of a namespace, by its path below `/proc/sys`; returns what it was.
///
/// # Errors
/// If there is no such setting, or the kernel refuses the value.
pub fn set(namespace: &str, setting: &str, value: &str) -> Result<String> {
    within(namespace, || write_setting(setting, value)).with_context(|| format!("in {namespace}"))
}

fn write_setting(setting: &str, value: &str) -> Result<String> {
    let file = format!("/proc/sys/{setting}");
    let before = fs::read_to_string(&file).with_context(|| format!("read {setting}"))?;
    fs::write(&file, value).with_context(|| format!("set {setting} to {value}"))?;
    Ok(before.trim().to_owned())
}

/// The settings that hold for all runs.
fn settle(namespace: &str) -> Result<()> {
    within(namespace, || {
        for (setting, value) in SETTINGS {
            write_setting(setting, value)?;
        }
        // Each device has its own switch beside the one for all.
        for entry in fs::read_dir("/proc/sys/net/ipv4/conf").context("list the devices")? {
            let name = entry.context("list the devices")?.file_name();
            write_setting(&format!("net/ipv4/conf/{}/rp_filter", name.to_string_lossy()), "0")?;
        }
        // Without IPv6 there is nothing to switch off.
        let _quiet = write_setting("net/ipv6/conf/all/disable_ipv6", "1");
        Ok(())
    })
    .with_context(|| format!("in {namespace}"))
}

/// Forwarding without redirects; hosts that remember nothing of earlier runs and may fill any path.
const SETTINGS: [(&str, &str); 5] = [
    ("net/ipv4/ip_forward", "1"),
    ("net/ipv4/conf/all/send_redirects", "0"),
    ("net/ipv4/tcp_no_metrics_save", "1"),
    // Memory for a window of 6 MiB (`Scenario::WINDOW_MODERN`): 160 bytes in 256 are payload.
    ("net/ipv4/tcp_rmem", "4096 131072 10066329"),
    // The application is ahead of the sender: what it writes late is sent when it is written, not
    // when an ACK lets it out.
    ("net/ipv4/tcp_wmem", "4096 16777216 16777216"),
];

fn remove(name: &str) -> Result<()> {
    let path = Path::new(namespace::DIRECTORY).join(name);
    if !path.exists() {
        return Ok(());
    }
    match ip(None, &format!("netns delete {name}\n")) {
        // Another lab was faster.
        Err(_) if !path.exists() => Ok(()),
        result => result,
    }
}

/// Runs `ip` commands, in a namespace if one is named.
fn ip(namespace: Option<&str>, batch: &str) -> Result<()> {
    let mut command = Command::new("ip");
    if let Some(namespace) = namespace {
        command.args(["-n", namespace]);
    }
    // A process group of its own, so that Ctrl-C does not stop it halfway.
    let child = command
        .args(["-batch", "-"])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.context("run ip")?;
    let input = child.stdin.take();
    input.context("write to ip")?.write_all(batch.as_bytes()).context("write to ip")?;
    let output = child.wait_with_output().context("wait for ip")?;
    if !output.status.success() {
        let place = namespace.map_or(String::new(), |name| format!(" in {name}"));
        let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        bail!("ip{place}: {said}\n{batch}");
    }
    Ok(())
}

fn air_device(port: Port) -> String {
    match port {
        Port::Fixed => "fixed",
        Port::BaseWired => "base-wired",
        Port::BaseRadio => "base-radio",
        Port::BaseRadioHigh => "base-high",
        Port::Mobile => "mobile",
    }
    .to_owned()
}

const WIRED_GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 78, 1, 254);
const RADIO_GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 78, 2, 254);
const FIXED_MAC: &str = "02:00:00:00:01:01";
const WIRED_MAC: &str = "02:00:00:00:01:fe";
const RADIO_MAC: &str = "02:00:00:00:02:fe";
const HIGH_MAC: &str = "02:00:00:00:02:fd";
const MOBILE_MAC: &str = "02:00:00:00:02:01";
