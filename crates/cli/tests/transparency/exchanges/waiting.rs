//! What happens when nothing happens: keep-alives, and peers that are gone.

use super::{Exchange, Handler};
use crate::load::Stopwatch;
use crate::net::Host;
use crate::stage::{Stage, bound, outcome, write_pattern};
use anyhow::{Context, Result};
use rustix::fd::OwnedFd;
use rustix::net::sockopt;
use std::net::TcpStream;
use std::time::Duration;

pub(super) const ALL: &[Exchange] = &[
    Exchange::new("keep-alives of an idle connection", keep_alive).clean_only(),
    Exchange::new("keep-alives of a peer that is gone", keep_alive_of_the_dead).clean_only(),
    Exchange::new("a user timeout", user_timeout).clean_only(),
    Exchange::new("a host that is not there", unreachable)
        .clean_only()
        .handled_by(Handler::NobodyOnABridge),
];

/// Sends a keep-alive each second.
fn often(socket: &OwnedFd) -> Result<()> {
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, Duration::from_secs(1))?;
    sockopt::set_tcp_keepintvl(socket, Duration::from_secs(1))?;
    sockopt::set_tcp_keepcnt(socket, 2)?;
    Ok(())
}

/// Both ends ask and are answered; then data still flows.
fn keep_alive(stage: &Stage<'_>) -> Result<()> {
    let pair = stage.connect(Host::Fixed, often)?;
    stage.bulk_both(&pair, 50_000)?;
    // A connection without answers would be dead after 3 s.
    std::thread::sleep(Duration::from_millis(3_500));
    stage.bulk_both(&pair, 50_000)?;
    stage.close(pair)
}

/// Lets nothing pass at a host.
fn cut(stage: &Stage<'_>, host: Host) -> Result<()> {
    let rules = "table ip cut { chain in { type filter hook input priority 0; drop; };
         chain out { type filter hook output priority 0; drop; }; }";
    stage.net.nft(stage.net.namespace(host), rules)
}

fn join_again(stage: &Stage<'_>, host: Host) -> Result<()> {
    stage.net.nft(stage.net.namespace(host), "delete table ip cut")
}

fn keep_alive_of_the_dead(stage: &Stage<'_>) -> Result<()> {
    let pair = stage.connect(Host::Fixed, often)?;
    stage.bulk_both(&pair, 50_000)?;
    cut(stage, Host::Mobile)?;
    let began = Stopwatch::start();
    stage.say(format!("reads: {}", outcome(&pair.fixed)));
    let took = began.elapsed();
    stage.say(format!("after some 3 s: {}", (2_500..5_500).contains(&took.as_millis())));
    join_again(stage, Host::Mobile)
}

/// Data that nobody acknowledges ends the connection after TCP_USER_TIMEOUT (RFC 5482).
fn user_timeout(stage: &Stage<'_>) -> Result<()> {
    for gone in Host::BOTH {
        let hasty = |socket: &OwnedFd| Ok(sockopt::set_tcp_user_timeout(socket, 800)?);
        let pair = stage.connect(Host::Fixed, hasty)?;
        stage.bulk_both(&pair, 50_000)?;
        cut(stage, gone)?;
        let began = Stopwatch::start();
        write_pattern(pair.at(gone.other()), 0, 20_000)?;
        stage.say(format!("{:?} reads: {}", gone.other(), outcome(pair.at(gone.other()))));
        let took = began.elapsed();
        let in_time = (700..4_000).contains(&took.as_millis());
        stage.say(format!("after 0.8 s and a retransmission: {in_time}"));
        join_again(stage, gone)?;
    }
    Ok(())
}

/// The box itself says that there is no such host.
fn unreachable(stage: &Stage<'_>) -> Result<()> {
    let stream = TcpStream::from(stage.socket(Host::Fixed)?);
    bound(&stream)?;
    let to: std::net::SocketAddr = "10.78.2.77:80".parse().context("an address")?;
    let began = Stopwatch::start();
    let result = rustix::net::connect(&stream, &to);
    let soon = began.elapsed() < Duration::from_secs(8);
    stage.say(format!("{result:?}, before anybody gives up: {soon}"));
    Ok(())
}
