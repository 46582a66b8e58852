//! A fixed host, a box and a mobile host, each a kernel of its own, and the daemon in the box.

use anyhow::{Context, Result, ensure};
use link::channel::{Config as Channel, packet_loss};
use link::hop;
use link::preset::Pair;
use live::lab::Program;
use live::lab::agent::{Agent, Line};
use live::lab::network::{
    self, FIXED_HOST, MOBILE_HOST, MOBILE_PREFIX, Names, Network, RADIO, RADIO_HIGH, WIRED,
};
use live::radio::{self, Radio};
use live::sys::{Clock, namespace};
use sansio::{BitRate, Duration};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
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

/// A way to run the daemon: everything here has to leave connections as they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    /// Added to what [`Net::arguments`] says.
    more: &'static [&'static str],
}

/// The variants that every exchange runs in.
pub(crate) const VARIANTS: &[Variant] = &[
    Variant { name: "snoop-modern", more: &["--scheme", "snoop-modern"] },
    Variant { name: "snoop", more: &["--scheme", "snoop"] },
];

/// The network; dropping it takes it down.
pub(crate) struct Net {
    names: Names,
    path: Path,
    lab: Option<Network>,
    radio: Option<Radio>,
    /// How orders reach the daemon.
    pub(crate) line: Line,
}

const FIXED_V6: Ipv6Addr = Ipv6Addr::new(0xfd78, 1, 0, 0, 0, 0, 0, 1);
const MOBILE_V6: Ipv6Addr = Ipv6Addr::new(0xfd78, 2, 0, 0, 0, 0, 0, 1);
const MOBILE_PREFIX_V6: &str = "fd78:2::/64";

impl Net {
    /// Builds it; networks of different `lane`s stand side by side.
    pub(crate) fn new(lane: u32, path: &Path) -> Result<Net> {
        let names = Names::new(lane);
        let line = Line::default();
        let mut net = Net { names, path: path.clone(), lab: None, radio: None, line };
        match path {
            Path::Direct => net.build()?,
            Path::Radio(config) => {
                let lab = Network::build(&net.names)?;
                lab.use_congestion_control("cubic")?;
                let devices = lab.air_devices();
                let line = net.line.clone();
                let told: radio::Told = Box::new(move |notice| line.notice(notice));
                let mut radio = Radio::start(&net.names.air, devices, *config.clone(), Some(told))?;
                radio.begin(Clock::starting_now())?;
                (net.lab, net.radio) = (Some(lab), Some(radio));
            }
        }
        Ok(net)
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
        self.daemon_on(&self.line, variant, family)
    }

    /// The same, with orders of its own.
    pub(crate) fn daemon_on(
        &self,
        line: &Line,
        variant: &Variant,
        family: Family,
    ) -> Result<Agent> {
        let mut arguments = self.arguments(family);
        arguments.extend(variant.more);
        let path = env!("CARGO_BIN_EXE_lasthop").into();
        let program = Program { path, arguments: arguments.iter().map(Into::into).collect() };
        Agent::spawn(&program, self.base(), line)
    }

    /// The daemon's arguments on this network.
    fn arguments(&self, family: Family) -> Vec<&'static str> {
        let mobile = if family == Family::V4 { MOBILE_PREFIX } else { MOBILE_PREFIX_V6 };
        let mut arguments = vec!["daemon", "base-station", "--wired", WIRED, "--radio", RADIO];
        if self.lab.is_some() {
            arguments.extend(["--radio-high", RADIO_HIGH]);
        }
        arguments.extend(["--mobile", mobile, "--control", "-"]);
        arguments
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
