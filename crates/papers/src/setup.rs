//! The set-up of a study, complete, from the plan that is run: what is printed is what was run.

use crate::paper::Study;
use crate::runs::Outcome;
use link::Limit;
use link::hop;
use node::Scenario;
use node::plan::Transfer;
use node::roaming::Pace;
use node::scenario::{Channel, Departures, Size, Time};
use tcp::config::{DelayedAck, IdleRestart, RepeatedFastRetransmit, TimerModel};

/// Name and value of everything that makes the runs of a study what they are.
pub fn setup(
    study: &Study,
    scenario: &Scenario,
    outcomes: &[Outcome],
) -> Vec<(&'static str, String)> {
    let Some(Outcome { plan, .. }) = outcomes.first() else { return Vec::new() };
    let radio = &plan.radio.down;
    let duplex = if plan.radio.half_duplex { "half duplex" } else { "full duplex" };
    let list = |name: fn(&Outcome) -> String| {
        let mut names: Vec<String> = Vec::new();
        for name in outcomes.iter().map(name) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(", ")
    };
    let seeds = outcomes.iter().map(|one| one.row.seeds).max().unwrap_or(0) as u64;
    let mut setup = vec![
        ("study", study.file.to_owned()),
        ("radio", format!("{}; {duplex}", hop(radio))),
        ("wired path", hop(&plan.wired.down)),
        ("base station told of", told(plan.departures)),
        ("schemes", list(|one| one.case.scheme.clone())),
        ("senders", list(|one| one.case.sender.name().to_owned())),
        ("hosts", hosts(&plan.tcp)),
        ("timers", timers(&plan.tcp)),
        ("bit errors, both ways", list(|one| one.case.ber.to_string())),
        ("losses, both ways", list(|one| one.case.loss.to_string())),
        ("transfer", plan.transfers.iter().map(transfer).collect::<Vec<_>>().join(", ")),
        ("given up after", format!("{:.0} s", plan.until.as_secs_f64())),
        ("seeds", format!("{} to {}", scenario.seed, scenario.seed + seeds.saturating_sub(1))),
    ];
    if outcomes.iter().any(|one| one.case.scheme.contains("snoop")) {
        setup.insert(5, ("snoop", agent()));
    }
    if let Some(roaming) = &plan.roaming {
        let channel = match plan.channel {
            Channel::PerCell => "each its own channel",
            Channel::Shared => "one channel",
        };
        let daemons = match roaming.pace {
            Pace::Strict => "50 ms for a greeting, 100 ms for a notice",
            Pace::Modern => "no time for a message",
        };
        let cells = roaming.cells;
        setup.push(("cells", format!("{cells}, {channel}; daemons take {daemons}")));
        setup.push(("handoffs", list(|one| format!("`{}`", one.case.handoff))));
        setup.push(("directions", list(|one| one.case.direction.to_string())));
    }
    if !study.adjusted.is_empty() {
        setup.push(("set beside the file", study.adjusted.to_owned()));
    }
    if !study.calibrated.is_empty() {
        setup.push(("calibrated", study.calibrated.join("; ")));
    }
    setup
}

fn hop(hop: &hop::Config) -> String {
    let queue = match hop.queue {
        Limit::Packets(packets) => format!("{packets} packets"),
        Limit::Bytes(bytes) => Size(bytes).to_string(),
    };
    format!(
        "{}, MAC efficiency {:.4}, so {:.6} Mbit/s of IP packets; {} each way; host cost {} a \
         packet; queue {queue}",
        hop.rate,
        hop.mac_efficiency,
        hop.service_rate().as_bps() as f64 / 1e6,
        Time(hop.delay),
        Time(hop.host_cost),
    )
}

fn told(departures: Departures) -> String {
    match departures {
        Departures::Air => "packets going onto the air".into(),
        Departures::Device => "packets handed to its device".into(),
    }
}

/// The parameters of the strict agent that the paper gives or leaves open.
fn agent() -> String {
    let agent = schemes::snoop::Config::strict();
    format!(
        "cache of {} segments or {} a flow, mark at {} %; resends on duplicate ACK {}, at {} \
         priority, at most {} times; round-trip timer at least {}, persist timer {}",
        agent.cache_segments_max,
        Size(agent.cache_bytes_max.into()),
        agent.cache_mark_percent,
        agent.dupack_threshold,
        if agent.retransmission_priority == sansio::Priority::High { "high" } else { "normal" },
        agent.retransmissions_max,
        Time(agent.round_trip_floor),
        Time(agent.persist),
    )
}

fn hosts(tcp: &tcp::Config) -> String {
    let delayed = match tcp.delayed_ack {
        DelayedAck::None => "an ACK for each segment".to_owned(),
        DelayedAck::Within(time) => {
            format!("an ACK for every second segment or after {}", Time(time))
        }
    };
    let again = match tcp.repeated_fast_retransmit {
        RepeatedFastRetransmit::Careful => "one fast retransmit for what was sent before it",
        RepeatedFastRetransmit::Allowed => "fast retransmit again at any third duplicate ACK",
    };
    let idle = match tcp.idle_restart {
        IdleRestart::Keep => "keeps cwnd when idle",
        IdleRestart::InitialWindow => "initial window after idleness",
        IdleRestart::Decay => "cwnd halved for each timeout of idleness",
    };
    format!(
        "MSS {} B, window {} B, initial window {} segment(s), first ssthresh {} B; {delayed}; \
         {again}; {idle}; timestamps {}",
        tcp.mss,
        tcp.receive_buffer_bytes,
        tcp.initial_window_segments,
        tcp.initial_ssthresh_bytes,
        if tcp.timestamps { "on" } else { "off" },
    )
}

fn timers(tcp: &tcp::Config) -> String {
    let model = match tcp.rto.model {
        TimerModel::Ideal { .. } => "exact".to_owned(),
        TimerModel::Ticks { tick } => {
            format!("ticks of {} at a phase drawn per host and seed", Time(tick))
        }
    };
    format!(
        "RTO mean + {} deviations, {} to {}, at first {}; {model}",
        tcp.rto.deviations,
        Time(tcp.rto.minimum),
        Time(tcp.rto.maximum),
        Time(tcp.rto.initial),
    )
}

fn transfer(transfer: &Transfer) -> String {
    let way = match transfer.direction {
        node::plan::Way::Down => "fixed to mobile host",
        node::plan::Way::Up => "mobile to fixed host",
    };
    match transfer.application {
        node::host::Application::Bulk { size } => format!("{} bulk, {way}", Size(size)),
        other => format!("{other:?}, {way}"),
    }
}
