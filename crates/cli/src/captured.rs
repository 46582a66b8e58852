//! Runs of the lab once more. Real kernels cannot be played again, but what their machines saw was
//! kept, with `--pcap`: three captures, from which the radio's log is made again, and from that the
//! same records that the lab's own report shows.
//!
//! Captures do not say why a packet was lost, nor when the link was away; the latter the manifest
//! says.

use crate::error::Error;
use crate::kept::{Kept, Run};
use crate::lab;
use crate::rundir::{self, MANIFEST};
use ::assess::capture::{Captured, Reader};
use ::assess::decode::{Decoded, decode};
use link::outage::State;
use live::lab::run as lab_run;
use live::radio::log::{Log, Segment};
use live::radio::replay::{self, BASE_STATION, FIXED_HOST, MOBILE_HOST, Stream};
use live::radio::sighted::{self, Seen, Sighting};
use live::radio::{Lateness, Report};
use node::{Case, Scenario};
use sansio::{Duration, Host, Instant};
use std::fs::File;
use std::io::{BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use study::World;
use trace::NodeId;
use trace::captures::QUEUE_FULL;
use trace::metrics::TransferSpec;
use trace::timeline::Timeline;

/// Runs of the lab under the same channel, as their captures show them.
#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) timelines: Vec<(Case, Timeline)>,
    /// Schemes whose runs cannot be shown, and why.
    pub(crate) without: Vec<String>,
}

/// A run of the lab, and the other schemes of its scenario beside it.
///
/// # Errors
/// If the run itself cannot be shown, in a sentence that says what was kept and what to do.
pub(crate) fn of_run(folder: &Path, run: &Run) -> Result<Measured, Error> {
    if !has_captures(folder) {
        return Err(not_kept(folder, run));
    }
    let mut measured = Measured::default();
    measured.timelines.push((run.case.clone(), timeline(folder, run)?));
    let Some(all) = folder.canonicalize().ok().and_then(|own| Some(own.parent()?.to_owned()))
    else {
        return Ok(measured);
    };
    let others = run.scenario.cases();
    let beside = others.iter().filter(|case| {
        **case != run.case
            && Case { scheme: run.case.scheme.clone(), ..(*case).clone() } == run.case
    });
    for case in beside {
        let name = rundir::run_name(World::Lab, &run.scenario, case, run.manifest.seed);
        measured.add(&all.join(name), case);
    }
    Ok(measured)
}

/// The runs that a comparison of the lab shows in time: these cases with this seed.
///
/// # Errors
/// If none of them has captures.
pub(crate) fn of_comparison(
    folder: &Path,
    scenario: &Scenario,
    cases: &[Case],
) -> Result<Measured, Error> {
    let mut measured = Measured::default();
    for case in cases {
        let name = rundir::run_name(World::Lab, scenario, case, scenario.seed);
        measured.add(&folder.join(name), case);
    }
    if measured.timelines.is_empty() {
        return Err(Error::Usage(format!(
            "{}: runs of real kernels cannot be played again, and none can be drawn from its \
             packets, which `lasthop lab ... --pcap` keeps. {}",
            folder.display(),
            measured.remark().unwrap_or_default()
        )));
    }
    Ok(measured)
}

impl Measured {
    fn add(&mut self, folder: &Path, case: &Case) {
        let shown = match Kept::read(folder) {
            Ok(Kept::Run(run)) if has_captures(folder) => timeline(folder, &run),
            Ok(_) => Err(Error::usage("no captures were kept")),
            Err(_) if !folder.exists() => Err(Error::usage("its run was not kept")),
            Err(error) => Err(error),
        };
        match shown {
            Ok(timeline) => self.timelines.push((case.clone(), timeline)),
            Err(error) => {
                let why = error.message().unwrap_or("interrupted");
                self.without.push(format!("{} ({why})", case.scheme));
            }
        }
    }

    /// What is not shown, in a sentence.
    pub(crate) fn remark(&self) -> Option<String> {
        let names = self.without.join("; ");
        (!names.is_empty()).then(|| format!("Not shown: {names}."))
    }
}

const MACHINES: [NodeId; 3] = [FIXED_HOST, BASE_STATION, MOBILE_HOST];

fn has_captures(folder: &Path) -> bool {
    MACHINES.iter().all(|machine| folder.join(rundir::capture_name(*machine)).is_file())
}

/// What was kept instead, and what keeps more.
fn not_kept(folder: &Path, run: &Run) -> Error {
    let machines = MACHINES.map(rundir::capture_name);
    let names = [MANIFEST, "trace.txt"].into_iter().chain(machines.iter().map(String::as_str));
    let kept: Vec<&str> = names.filter(|name| folder.join(name).is_file()).collect();
    let all = folder
        .canonicalize()
        .ok()
        .and_then(|own| Some(own.parent()?.join(rundir::REPORT)).filter(|page| page.is_file()));
    let all = all.map(|page| format!("; the page of all runs is {}", page.display()));
    Error::Usage(format!(
        "{}: a run of real kernels cannot be played again, and its packets, from which its page is \
         drawn, were not kept, only {}. With --pcap they are: {} --pcap{}",
        folder.display(),
        kept.join(", "),
        run.manifest.command,
        all.unwrap_or_default()
    ))
}

/// What the captures of a run show of its first transfer.
fn timeline(folder: &Path, run: &Run) -> Result<Timeline, Error> {
    let refuse = |why: &str| {
        let command = &run.manifest.command;
        Error::Usage(format!("{}: {why}; run it again: {command} --pcap", folder.display()))
    };
    let setup = lab::setup(&run.scenario, &run.case, run.manifest.seed)?;
    let specs = lab_run::transfers(&setup);
    let ports: Option<Vec<_>> = run.manifest.streams.iter().map(|one| one.accepted_at).collect();
    let ports = ports.filter(|ports| ports.len() == specs.len()).ok_or_else(|| {
        refuse("the manifest does not name the port of each transfer, as that of a kept run does")
    })?;
    let stream = |(spec, accepted_at): (&TransferSpec, SocketAddr)| {
        let accepted_at = Host { address: accepted_at.ip(), port: accepted_at.port() };
        let (sender, receiver) = (spec.sender, spec.receiver);
        Stream { stream: spec.stream, sender, receiver, accepted_at }
    };
    let streams: Vec<Stream> = specs.iter().zip(ports).map(stream).collect();
    let mut sightings = Vec::new();
    for machine in MACHINES {
        let path = folder.join(rundir::capture_name(machine));
        let file = File::open(path).map_err(|error| error.to_string());
        file.and_then(|file| read(BufReader::new(file), machine, &mut sightings))
            .map_err(|why| refuse(&format!("{}: {why}", rundir::capture_name(machine))))?;
    }
    let log = sighted::log(sightings);
    if log.cut {
        return Err(refuse(&format!("more than {} packets", Log::PACKETS_MAX)));
    }
    let spec = specs.first().copied();
    let mut timeline = Timeline::new(spec.ok_or_else(|| refuse("no transfer to show"))?);
    let transitions = transitions(&run.manifest.outages_s);
    let report = Report { log, transitions, lateness: Lateness::default(), mishaps: 0 };
    replay::replay(&report, &streams, &mut timeline);
    Ok(timeline)
}

/// Appends what a machine saw.
fn read(capture: impl Read, machine: NodeId, into: &mut Vec<Sighting>) -> Result<(), String> {
    let mut reader = Reader::new(capture).map_err(|error| error.to_string())?;
    while let Some(sighting) =
        reader.next(|packet| sighting(machine, &packet)).map_err(|error| error.to_string())?
    {
        into.push(sighting.ok_or("a packet that is no TCP, or has no number and direction")?);
        if into.len() > SIGHTINGS_MAX {
            return Err(format!("more than {SIGHTINGS_MAX} packets"));
        }
    }
    match reader.cut_bytes() {
        Some(bytes) => Err(format!("half-written: {bytes} bytes at the end are no whole packet")),
        None => Ok(()),
    }
}

/// Each packet of a log is seen at both ends of its hop.
const SIGHTINGS_MAX: usize = 2 * Log::PACKETS_MAX;

fn sighting(machine: NodeId, packet: &Captured<'_>) -> Option<Sighting> {
    let (Decoded::Tcp(seen), _) = decode(packet) else { return None };
    let notes = packet.notes;
    let is_refused = notes.comment.is_some_and(|comment| comment.contains(QUEUE_FULL));
    let what = match notes.is_outbound? {
        true if is_refused => Seen::QueueFull,
        true => Seen::Sent,
        false => Seen::Received,
    };
    let segment = Segment { ip: seen.ip, tcp: seen.tcp, payload_bytes: seen.payload_bytes };
    Some(Sighting { machine, at: packet.at, packet: notes.packet_id?, segment, what })
}

fn transitions(outages_s: &[(f64, Option<f64>)]) -> Vec<(Instant, State)> {
    let at = |seconds: f64| Instant::ZERO + Duration::from_secs_f64(seconds);
    let mut transitions = Vec::new();
    for (from, until) in outages_s {
        transitions.push((at(*from), State::Down));
        transitions.extend(until.map(|until| (at(until), State::Up)));
    }
    transitions
}

#[cfg(test)]
mod tests {
    use super::*;
    use live::lab::network;
    use live::radio::log::{Happened, Happening, HopName};
    use sansio::{Priority, StreamId};
    use std::cell::RefCell;
    use std::io::Write;
    use std::net::IpAddr;
    use std::rc::Rc;
    use trace::captures::Captures;
    use wire::ip::{self, Protocol};
    use wire::tcp::{self, Flags, Seq};

    const PORT: u16 = 5001;
    const BYTES: u32 = 1_000;

    /// What a radio wrote down.
    #[derive(Default)]
    struct Script(Log);

    impl Script {
        fn packet(&mut self, hop: HopName, at: u64, segment: Segment, outcome: (Happened, u64)) {
            let packet = self.0.packets.len() as u32;
            self.0.packets.push(Some(segment));
            for (what, at) in [(Happened::Sent(Priority::Normal), at), outcome] {
                let at = Instant::ZERO + Duration::from_millis(at);
                self.0.happenings.push(Happening { at, packet, hop, what });
            }
        }

        /// A segment that takes 10 ms on each hop.
        fn passes(&mut self, at: u64, segment: Segment) {
            let down = segment.tcp.destination_port == PORT;
            let hops = match down {
                true => [HopName::WiredDown, HopName::RadioDown],
                false => [HopName::RadioUp, HopName::WiredUp],
            };
            for (hop, at) in hops.into_iter().zip([at, at + 11]) {
                self.packet(hop, at, segment, (Happened::Arrived, at + 10));
            }
        }
    }

    /// The number of a segment is its place in the stream; 0 has no payload.
    fn data(number: u32, flags: Flags) -> Segment {
        let (source, destination) = (network::FIXED_HOST, network::MOBILE_HOST);
        let mut ip = ip::Header::new(source.into(), destination.into(), Protocol::TCP);
        ip.identification = number as u16;
        let mut tcp = tcp::Header::new(40_000, PORT);
        (tcp.seq, tcp.flags) = (Seq(u32::MAX - 500), flags);
        if number > 0 {
            tcp.seq = tcp.seq + 1 + (number - 1) * BYTES;
        }
        Segment { ip, tcp, payload_bytes: if number > 0 { BYTES } else { 0 } }
    }

    fn ack(delivered: u32, flags: Flags) -> Segment {
        let Segment { ip, tcp, .. } = data(0, flags);
        let ip = ip::Header { source: ip.destination, destination: ip.source, ..ip };
        let mut back = tcp::Header::new(PORT, 40_000);
        (back.flags, back.ack) = (flags, tcp.seq + 1 + delivered * BYTES);
        Segment { ip, tcp: back, payload_bytes: 0 }
    }

    /// Segments 2 and 3 are lost, by the air and by the queue; the base station repeats 2, and the
    /// sender repeats 3.
    fn script() -> Log {
        let mut script = Script::default();
        script.passes(0, data(0, Flags::SYN));
        script.passes(30, ack(0, Flags::SYN.with(Flags::ACK)));
        for number in 1..=4 {
            let at = 60 + u64::from(number);
            let segment = data(number, Flags::ACK);
            script.packet(HopName::WiredDown, at, segment, (Happened::Arrived, at + 10));
            let outcome = match number {
                2 => (Happened::Lost(link::Loss::Packet), at + 21),
                3 => (Happened::QueueFull, at + 11),
                _ => (Happened::Arrived, at + 21),
            };
            script.packet(HopName::RadioDown, at + 11, segment, outcome);
        }
        for (at, delivered) in [(83, 1), (86, 1), (112, 2)] {
            script.passes(at, ack(delivered, Flags::ACK));
        }
        let copy = data(2, Flags::ACK);
        script.packet(HopName::RadioDown, 100, copy, (Happened::Arrived, 110));
        script.passes(140, data(3, Flags::ACK));
        script.passes(162, ack(4, Flags::ACK));
        script.0
    }

    /// A writer that others read.
    #[derive(Clone, Default)]
    struct Shared(Rc<RefCell<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn replayed(log: Log, observer: &mut impl trace::Observer) {
        let accepted_at = Host { address: IpAddr::V4(network::MOBILE_HOST), port: PORT };
        let (sender, receiver) = (FIXED_HOST, MOBILE_HOST);
        let stream = Stream { stream: StreamId(0), sender, receiver, accepted_at };
        let transitions = transitions(&[(0.065, Some(0.066)), (0.2, None)]);
        let report = Report { log, transitions, lateness: Lateness::default(), mishaps: 0 };
        replay::replay(&report, &[stream], observer);
    }

    fn spec() -> TransferSpec {
        let (stream, base) = (StreamId(0), BASE_STATION);
        let (sender, receiver) = (FIXED_HOST, MOBILE_HOST);
        TransferSpec { stream, sender, receiver, base, size: None, messages: None }
    }

    #[test]
    fn captures_of_a_run_show_what_its_radio_showed_but_why_and_when_it_lost() {
        let files = [(); 3].map(|()| Shared::default());
        let mut captures = Captures::new(|machine: NodeId| Ok(files[machine.0 as usize].clone()));
        let mut seen = Timeline::new(spec());
        replayed(script(), &mut (&mut seen, &mut captures));
        captures.finish().expect("memory");
        let mut sightings = Vec::new();
        for (file, machine) in files.iter().zip(MACHINES) {
            read(&file.0.borrow()[..], machine, &mut sightings).expect("a capture");
        }
        let mut again = Timeline::new(spec());
        replayed(sighted::log(sightings), &mut again);

        let points = |one: &Timeline| {
            [&one.data, &one.end_to_end, &one.local, &one.acks, &one.delivered].map(Vec::clone)
        };
        assert_eq!(points(&again), points(&seen));
        assert_eq!(points(&seen).map(|all| all.len()), [4, 1, 1, 5, 3], "the script is told whole");
        assert_eq!(again.outages, seen.outages);
        let lost: Vec<u64> = again.lost.iter().map(|point| point.offset).collect();
        assert_eq!(lost, [3_000, 2_000], "the queue refuses at once, the air loses later");
        let causes: Vec<&str> = again.radio_losses.iter().map(|loss| loss.cause).collect();
        assert_eq!(causes, [trace::timeline::QUEUE_FULL, replay::MISSING]);
    }

    #[test]
    fn a_capture_without_numbers_or_cut_short_is_refused_with_the_reason() {
        let file = Shared::default();
        let of = |machine| if machine == FIXED_HOST { file.clone() } else { Shared::default() };
        let mut captures = Captures::new(|machine: NodeId| Ok(of(machine)));
        replayed(script(), &mut captures);
        captures.finish().expect("memory");
        let whole = file.0.borrow().clone();
        let refused =
            |bytes: &[u8]| read(bytes, FIXED_HOST, &mut Vec::new()).expect_err("it is refused");
        assert!(refused(&whole[..whole.len() - 5]).contains("half-written"));
        assert!(refused(b"<!doctype html>").contains("expected a capture"));
        // The option with the number, renamed.
        let mut unnumbered = whole.clone();
        let place = whole.windows(4).rposition(|bytes| bytes == [5, 0, 8, 0]).expect("a number");
        unnumbered[place] = 77;
        assert!(refused(&unnumbered).contains("has no number and direction"));
    }
}
