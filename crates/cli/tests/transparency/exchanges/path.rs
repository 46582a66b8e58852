//! What the network does to packets: shorter paths, marks of congestion, IP options.

use super::{Exchange, Handler};
use crate::net::{Host, Net};
use crate::stage::{Lacking, Pair, Stage, info};
use anyhow::{Context, Result, ensure};
use live::sys::{namespace, socket_option};
use rustix::fd::OwnedFd;
use std::net::TcpListener;

const ECN: &str = "net/ipv4/tcp_ecn";

pub(super) const ALL: &[Exchange] = &[
    // A SYN that is lost shall be sent again as it was.
    Exchange::new("ECN", marked).with(&[(ECN, "1"), ("net/ipv4/tcp_ecn_fallback", "0")]),
    Exchange::new("Accurate ECN", accurate_ecn)
        .with(&[(ECN, "1"), ("net/ipv4/tcp_ecn_fallback", "0")]),
    Exchange::new("a shorter path behind the mobile host", shorter_path).clean_only(),
    Exchange::new("a shorter path that tells nobody", black_hole)
        .with(&[("net/ipv4/tcp_mtu_probing", "1")])
        .clean_only(),
    Exchange::new("path MTU probes", probes)
        .with(&[("net/ipv4/tcp_mtu_probing", "2"), ("net/ipv4/tcp_base_mss", "512")]),
    Exchange::new("IP options", ip_options).clean_only().handled_by(Handler::Kernel),
    Exchange::new("expired on the way", expired).clean_only().handled_by(Handler::Router),
];

/// Marks some packets as having met congestion, at both hosts' ends of the path.
fn mark(stage: &Stage<'_>) -> Result<()> {
    for host in Host::BOTH {
        stage.net.nft(
            stage.net.namespace(host),
            "table ip congested { chain out { type filter hook output priority 0; \
             ip ecn != not-ect numgen inc mod 20 == 0 ip ecn set ce; }; }",
        )?;
    }
    Ok(())
}

fn unmark(stage: &Stage<'_>) -> Result<()> {
    for host in Host::BOTH {
        stage.net.nft(stage.net.namespace(host), "delete table ip congested")?;
    }
    Ok(())
}

fn marked(stage: &Stage<'_>) -> Result<()> {
    let pair = stage.pair()?;
    // TCPI_OPT_ECN of linux/tcp.h.
    ensure!(info(&pair.fixed)?[5] & 8 != 0, "ECN is not negotiated");
    mark(stage)?;
    let passed = stage.bulk_both(&pair, 500_000);
    unmark(stage)?;
    passed?;
    stage.facts(&pair)?;
    stage.close(pair)
}

/// RFC 9768; both hosts ask for it.
fn accurate_ecn(stage: &Stage<'_>) -> Result<()> {
    for host in Host::BOTH {
        if stage.net.set(host, ECN, "3").is_err() {
            return Err(Lacking("Accurate ECN (tcp_ecn = 3)".to_owned()).into());
        }
    }
    let played = marked(stage);
    for host in Host::BOTH {
        stage.net.set(host, ECN, "1")?;
    }
    played
}

/// The mobile host is a router, and the way on carries 1200 bytes only: it tells the sender.
fn shorter_path(stage: &Stage<'_>) -> Result<()> {
    let pair = behind(stage)?;
    stage.bulk_both(&pair, 500_000)?;
    stage.facts(&pair)?;
    stage.close(pair)
}

/// The same, and what it tells is lost: the sender finds out (RFC 4821).
fn black_hole(stage: &Stage<'_>) -> Result<()> {
    // What the exchange before was told.
    stage.net.ip(stage.net.namespace(Host::Fixed), "route flush cache")?;
    stage.net.nft(
        stage.net.namespace(Host::Mobile),
        "table ip mute { chain out { type filter hook output priority 0; \
         ip protocol icmp drop; }; }",
    )?;
    let played = behind(stage).and_then(|pair| {
        stage.bulk_both(&pair, 100_000)?;
        stage.close(pair)
    });
    stage.net.nft(stage.net.namespace(Host::Mobile), "delete table ip mute")?;
    played
}

/// A connection to the host behind the mobile host.
fn behind(stage: &Stage<'_>) -> Result<Pair> {
    let listener = namespace::within(stage.net.behind(), || {
        TcpListener::bind((Net::BEHIND, 0)).context("listen behind the mobile host")
    })?;
    stage.connect_to(&listener, Host::Fixed, stage.socket(Host::Fixed)?)
}

/// Each segment is as long as a probe has shown the path to carry.
fn probes(stage: &Stage<'_>) -> Result<()> {
    let pair = stage.pair()?;
    stage.bulk_both(&pair, 500_000)?;
    stage.close(pair)
}

/// Record route (RFC 791, 3.1): routers on the way write their address into the packet.
fn ip_options(stage: &Stage<'_>) -> Result<()> {
    // Type 7, 15 bytes, pointer to the first of three slots; padding.
    let mut option = [0; 16];
    option[..3].copy_from_slice(&[7, 15, 4]);
    // IPPROTO_IP and IP_OPTIONS of linux/in.h.
    let recorded = |socket: &OwnedFd| socket_option::set(socket, 0, 4, &option);
    let pair = stage.connect(Host::Fixed, recorded)?;
    let seen = socket_option::get(&pair.mobile, 0, 4, (&[], 40)).context("read the options")?;
    stage.say(format!("the mobile host would answer with {seen:?}"));
    stage.bulk_both(&pair, 100_000)?;
    stage.close(pair)
}

/// One hop is not enough for a router: it says so, and the connection is not made.
fn expired(stage: &Stage<'_>) -> Result<()> {
    let stream = std::net::TcpStream::from(stage.socket(Host::Fixed)?);
    rustix::net::sockopt::set_ip_ttl(&stream, 1).context("set the hops")?;
    // IP_RECVERR of linux/in.h: errors on the way are told.
    socket_option::set(&stream, 0, 11, &1_u32.to_ne_bytes())?;
    crate::stage::bound(&stream)?;
    let listener = stage.listen(Host::Mobile, 0, |_| Ok(()))?;
    let to = listener.local_addr().context("look up a port")?;
    stage.say(format!("{:?}", rustix::net::connect(&stream, &to)));
    Ok(())
}
