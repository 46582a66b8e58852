//! A fixed host, a box and a mobile host, each a kernel of its own, and the daemon in the box.

use crate::variant::Variant;
use anyhow::{Context, Result, bail, ensure};
use link::channel::{Config as Channel, packet_loss};
use link::hop;
use link::preset::Pair;
use live::daemon::Forwarding;
use live::lab::agent::{Agent, Line};
use live::lab::network::{self, FIXED_HOST, MOBILE_HOST, Names, Network, RADIO, WIRED};
use live::radio::{self, Radio};
use live::sys::packet_socket::find;
use live::sys::{Clock, namespace};
use sansio::{BitRate, Duration};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    Fixed,
    Mobile,
}

impl Host {
    pub(crate) const BOTH: [Host; 2] = [Host::Fixed, Host::Mobile];

    pub(crate) fn other(self) -> Host {
        if self == Host::Fixed { Host::Mobile } else { Host::Fixed }
    }
}

/// The version of IP that an exchange uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

/// What joins the hosts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Path {
    /// Devices end to end, with the hosts' offloads on: super-packets, open checksums.
    Direct,
    /// The lab's hops, offloads off.
    Radio(Box<radio::Config>),
}

impl Path {
    /// 20 Mbit/s and 5 ms behind 100 Mbit/s and 5 ms; each packet is lost on the air with this
    /// probability, both ways.
    pub(crate) fn lossy(probability: f64, seed: u64) -> Path {
        let delay = Duration::from_millis(5);
        let wired = hop::Config::clean(BitRate::from_mbps(100), delay);
        let mut radio = hop::Config::clean(BitRate::from_mbps(20), delay);
        radio.channels.push(Channel::PacketLoss(packet_loss::Config { probability }));
        let (wired, radio) = (Pair::symmetric(wired), Pair::symmetric(radio));
        Path::Radio(Box::new(radio::Config { wired, radio, seed }))
    }
}

/// The network; dropping it takes it down.
pub(crate) struct Net {
    names: Names,
    path: Path,
    pub(crate) forwarding: Forwarding,
    /// Where the daemon's configuration is.
    file: PathBuf,
    lab: Option<Network>,
    radio: Option<Radio>,
    /// How orders reach the daemon.
    pub(crate) line: Line,
}

const FIXED_V6: Ipv6Addr = Ipv6Addr::new(0xfd78, 1, 0, 0, 0, 0, 0, 1);
const MOBILE_V6: Ipv6Addr = Ipv6Addr::new(0xfd78, 2, 0, 0, 0, 0, 0, 1);
pub(crate) const MOBILE_PREFIX_V6: &str = "fd78:2::/64";

impl Net {
    /// Builds it, with a box that routes; networks of different `lane`s stand side by side.
    pub(crate) fn new(lane: u32, path: &Path) -> Result<Net> {
        Net::with_box(Forwarding::Routed, lane, path)
    }

    /// The same, with a box that routes, or that bridges the same hosts.
    pub(crate) fn with_box(forwarding: Forwarding, lane: u32, path: &Path) -> Result<Net> {
        let names = Names::new(lane);
        let name = format!("lasthop-{}-{lane}.toml", std::process::id());
        let file = std::env::temp_dir().join(name);
        let (path, line) = (path.clone(), Line::default());
        let mut net = Net { names, path, forwarding, file, lab: None, radio: None, line };
        match net.path.clone() {
            Path::Direct => net.build()?,
            Path::Radio(config) => {
                let lab = Network::build(&net.names)?;
                lab.use_congestion_control("cubic")?;
                let devices = lab.air_devices();
                net.lab = Some(lab);
                net.number_v6()?;
                let line = net.line.clone();
                let told: radio::Told = Box::new(move |notice| line.notice(notice));
                let mut radio = Radio::start(&net.names.air, devices, *config, Some(told))?;
                radio.begin(Clock::starting_now())?;
                net.radio = Some(radio);
            }
        }
        if forwarding == Forwarding::Bridge {
            net.join()?;
        }
        Ok(net)
    }

    /// The lab's hosts speak IPv4 only; here both. The radio loses nothing that is asked for before
    /// it begins, so neighbours are told.
    fn number_v6(&self) -> Result<()> {
        let Names { fixed, base, mobile, .. } = &self.names;
        let mut script = "set -e\n".to_owned();
        for name in [fixed, base, mobile] {
            network::set(name, "net/ipv6/conf/all/disable_ipv6", "0")?;
        }
        network::set(base, "net/ipv6/conf/all/forwarding", "1")?;
        // A device that was down has its addresses again, as with IPv4.
        for device in ["all", WIRED, RADIO] {
            network::set(base, &format!("net/ipv6/conf/{device}/keep_addr_on_down"), "1")?;
        }
        let ends =
            [(fixed, WIRED, FIXED_V6, "fd78:1::fe"), (mobile, RADIO, MOBILE_V6, "fd78:2::fe")];
        for (host, device, address, gateway) in ends {
            let at_host = mac_of(host, "net0")?;
            let at_base = mac_of(base, device)?;
            script += &format!(
                "ip -n {host} addr add {address}/64 dev net0 nodad
                ip -n {base} addr add {gateway}/64 dev {device} nodad
                ip -n {host} neigh replace {gateway} lladdr {at_base} dev net0 nud permanent
                ip -n {base} neigh replace {address} lladdr {at_host} dev {device} nud permanent
                ip -n {host} -6 route add default via {gateway} congctl cubic\n"
            );
        }
        run(&script)
    }

    /// Has the box bridge what it routed; the hosts then find each other at once.
    pub(crate) fn join(&self) -> Result<()> {
        let Names { fixed, base, mobile, .. } = &self.names;
        let behind = Net::BEHIND;
        let mut script = format!(
            "set -e
            ip -n {base} addr flush dev {WIRED}; ip -n {base} addr flush dev {RADIO}
            ip -n {base} link add br0 type bridge; ip -n {base} link set br0 up
            for d in {WIRED} {RADIO}; do ip -n {base} link set $d master br0; done\n"
        );
        let ends = [(fixed, mobile, MOBILE_HOST, MOBILE_V6), (mobile, fixed, FIXED_HOST, FIXED_V6)];
        for (host, other, v4, v6) in ends {
            let mac = mac_of(other, "net0")?;
            script += &format!(
                "ip -n {host} route replace default dev net0 congctl cubic
                ip -n {host} -6 route del default
                ip -n {host} -6 route add default dev net0 congctl cubic
                ip -n {host} neigh replace {v4} lladdr {mac} dev net0 nud permanent
                ip -n {host} neigh replace {v6} lladdr {mac} dev net0 nud permanent\n"
            );
        }
        if self.lab.is_none() {
            script +=
                &format!("ip -n {fixed} route add {behind} via {MOBILE_HOST} onlink dev net0\n");
        }
        run(&script)?;
        let forwards = || {
            let shown = Command::new("bridge").args(["-n", base, "link"]).output();
            let shown = shown.context("run bridge: install iproute2")?;
            Ok::<_, anyhow::Error>(
                String::from_utf8_lossy(&shown.stdout).matches("state forwarding").count() == 2,
            )
        };
        for _ in 0..500 {
            if forwards()? {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        bail!("the bridge does not forward");
    }

    /// Behind the mobile host, by a way that carries 1200 bytes. Only with [`Path::Direct`].
    pub(crate) const BEHIND: Ipv4Addr = Ipv4Addr::new(10, 78, 2, 9);

    /// The namespace of that host.
    pub(crate) fn behind(&self) -> &str {
        &self.names.air
    }

    fn build(&self) -> Result<()> {
        let Names { fixed, base, mobile, air: behind } = &self.names;
        let behind_host = Net::BEHIND;
        run(&format!(
            "set -e
            for n in {fixed} {base} {mobile} {behind}; do
              ip netns add $n; ip -n $n link set lo up
            done
            ip link add net0 netns {fixed} type veth peer name {WIRED} netns {base}
            ip link add net0 netns {mobile} type veth peer name {RADIO} netns {base}
            ip -n {fixed} addr add {FIXED_HOST}/24 dev net0
            ip -n {mobile} addr add {MOBILE_HOST}/24 dev net0
            ip -n {base} addr add 10.78.1.254/24 dev {WIRED}
            ip -n {base} addr add 10.78.2.254/24 dev {RADIO}
            ip -n {fixed} addr add {FIXED_V6}/64 dev net0 nodad
            ip -n {mobile} addr add {MOBILE_V6}/64 dev net0 nodad
            ip -n {base} addr add fd78:1::fe/64 dev {WIRED} nodad
            ip -n {base} addr add fd78:2::fe/64 dev {RADIO} nodad
            ip link add net1 netns {mobile} type veth peer name net0 netns {behind}
            ip -n {mobile} link set net1 up; ip -n {behind} link set net0 up
            ip -n {behind} addr add {behind_host}/32 dev net0
            ip -n {behind} route add default dev net0
            for d in {WIRED} {RADIO}; do ip -n {base} link set $d up; done
            for n in {fixed} {mobile}; do ip -n $n link set net0 up; done
            ip -n {fixed} route add default via 10.78.1.254 congctl cubic
            ip -n {mobile} route add default via 10.78.2.254 congctl cubic
            ip -n {fixed} -6 route add default via fd78:1::fe congctl cubic
            ip -n {mobile} -6 route add default via fd78:2::fe congctl cubic
            ip -n {mobile} route add {behind_host} dev net1 mtu lock 1200
            ip -n {base} route add {behind_host} via {MOBILE_HOST}"
        ))?;
        network::set(base, "net/ipv4/ip_forward", "1")?;
        network::set(mobile, "net/ipv4/ip_forward", "1")?;
        network::set(mobile, "net/ipv4/conf/net1/proxy_arp", "1")?;
        network::set(base, "net/ipv6/conf/all/forwarding", "1")?;
        for host in Host::BOTH {
            self.set(host, "net/ipv4/tcp_no_metrics_save", "1")?;
        }
        Ok(())
    }

    pub(crate) fn namespace(&self, host: Host) -> &str {
        if host == Host::Fixed { &self.names.fixed } else { &self.names.mobile }
    }

    pub(crate) fn base(&self) -> &str {
        &self.names.base
    }

    pub(crate) fn address(host: Host, family: Family) -> IpAddr {
        match (host, family) {
            (Host::Fixed, Family::V4) => FIXED_HOST.into(),
            (Host::Mobile, Family::V4) => MOBILE_HOST.into(),
            (Host::Fixed, Family::V6) => FIXED_V6.into(),
            (Host::Mobile, Family::V6) => MOBILE_V6.into(),
        }
    }

    /// Sets a host's setting; returns what it was.
    pub(crate) fn set(&self, host: Host, setting: &str, value: &str) -> Result<String> {
        network::set(self.namespace(host), setting, value)
    }

    /// Runs something in a host's namespace.
    pub(crate) fn at<T: Send>(
        &self,
        host: Host,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> Result<T> {
        namespace::within(self.namespace(host), work)
    }

    /// Has nft(8) read commands in a namespace; the tables are the caller's to remove.
    pub(crate) fn nft(&self, namespace: &str, commands: &str) -> Result<()> {
        run(&format!("ip netns exec {namespace} nft -f - <<'END'\n{commands}\nEND"))
    }

    /// Runs `ip` in a namespace.
    pub(crate) fn ip(&self, namespace: &str, arguments: &str) -> Result<()> {
        run(&format!("ip -n {namespace} {arguments}"))
    }

    /// Starts a daemon in the box.
    pub(crate) fn daemon(&self, variant: &Variant, family: Family) -> Result<Agent> {
        ensure!(variant.forwarding == self.forwarding, "{} cannot run here", variant.name);
        variant.start(self, &self.line, family)
    }

    /// Where the daemon's configuration is, if it has a file.
    pub(crate) fn file(&self) -> &std::path::Path {
        &self.file
    }

    /// True if there is a device whose packets overtake others on the radio.
    pub(crate) fn has_high_device(&self) -> bool {
        self.lab.is_some()
    }

    /// True if no rule of the daemon is in the box.
    pub(crate) fn is_clear(&self) -> Result<bool> {
        let list = ["netns", "exec", self.base(), "nft", "list", "ruleset"];
        let output = Command::new("ip").args(list).output().context("run nft")?;
        ensure!(output.status.success(), "nft list ruleset: {output:?}");
        Ok(!String::from_utf8_lossy(&output.stdout).contains("lasthop"))
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        // Not every daemon has a file.
        let _removed = std::fs::remove_file(&self.file);
        if let Some(radio) = self.radio.take() {
            let _report = radio.finish();
        }
        if self.path == Path::Direct {
            for name in self.names.all() {
                let _removed = run(&format!("ip netns del {name} 2>/dev/null"));
            }
        }
    }
}

/// Runs a script of the shell.
pub(crate) fn run(script: &str) -> Result<()> {
    let output = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).output();
    let output = output.context("run sh")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{script}\n{said}");
    Ok(())
}

/// The link-layer address of a device.
fn mac_of(namespace: &str, device: &str) -> Result<String> {
    let mac = namespace::within(namespace, || Ok(find(device)?.mac))?;
    Ok(mac.0.map(|octet| format!("{octet:02x}")).join(":"))
}
