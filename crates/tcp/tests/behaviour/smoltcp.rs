//! The second outside oracle: smoltcp as the peer, byte for byte over a path with faults.

use crate::pair::{End, Fate, Log, flow, ms};
use crate::properties::{Faults, config, faults, isn};
use ::smoltcp::iface::{Interface, SocketHandle, SocketSet};
use ::smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use ::smoltcp::socket::tcp as peer;
use ::smoltcp::time::Instant as PeerInstant;
use ::smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use bytes::Bytes;
use proptest::prelude::*;
use sansio::{
    Duration, Engine, Input, Instant, Packet, PacketId, PacketRef, Payload, Side, StreamId,
};
use std::collections::{BTreeMap, VecDeque};
use tcp::{Config, Endpoint, State};
use wire::datagram::{self, Checksums};
use wire::tcp::Seq;

/// What smoltcp takes for a network card: two queues of datagrams.
#[derive(Default)]
struct Card {
    inbox: VecDeque<Vec<u8>>,
    outbox: Vec<Vec<u8>>,
}

struct Received(Vec<u8>);

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

struct Sending<'a>(&'a mut Vec<Vec<u8>>);

impl phy::TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut bytes = vec![0; length];
        let result = write(&mut bytes);
        self.0.push(bytes);
        result
    }
}

impl Device for Card {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _: PeerInstant) -> Option<(Received, Sending<'_>)> {
        let datagram = self.inbox.pop_front()?;
        Some((Received(datagram), Sending(&mut self.outbox)))
    }

    fn transmit(&mut self, _: PeerInstant) -> Option<Sending<'_>> {
        Some(Sending(&mut self.outbox))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = 1500;
        capabilities
    }
}

/// Who opens the connection.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Opens {
    We,
    Smoltcp,
}

#[derive(Clone, Debug)]
struct Plan {
    config: Config,
    isn: Seq,
    opens: Opens,
    /// Bytes of smoltcp's receive and send buffers.
    buffers: (usize, usize),
    /// Bytes we send and bytes smoltcp sends.
    lengths: (u32, u32),
    faults: Faults,
}

struct Exchange {
    now: Instant,
    ours: Endpoint,
    log: Log,
    card: Card,
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    in_flight: BTreeMap<(Instant, u64), (End, Vec<u8>)>,
    order: u64,
    to_send: Vec<u8>,
    received: Vec<u8>,
}

const ONE_WAY: Duration = Duration::from_millis(5);

/// `length` bytes of a stream's pattern.
fn pattern(stream: u32, length: u32) -> Vec<u8> {
    (0..u64::from(length)).map(|offset| StreamId(stream).pattern(offset)).collect()
}

fn peer_time(now: Instant) -> PeerInstant {
    PeerInstant::from_micros((now.as_nanos() / 1_000) as i64)
}

impl Exchange {
    fn new(plan: &Plan) -> Self {
        let mut card = Card::default();
        let configuration = ::smoltcp::iface::Config::new(HardwareAddress::Ip);
        let mut interface = Interface::new(configuration, &mut card, PeerInstant::ZERO);
        interface.update_ip_addrs(|addresses| {
            let address = IpCidr::new(IpAddress::v4(10, 0, 0, 2), 24);
            addresses.push(address).expect("one address fits");
        });
        let buffer = |bytes| peer::SocketBuffer::new(vec![0; bytes]);
        let mut socket = peer::Socket::new(buffer(plan.buffers.0), buffer(plan.buffers.1));
        let (here, there) = (flow().source, flow().destination);
        let ours = match plan.opens {
            Opens::We => {
                socket.listen(there.port).expect("a fresh socket listens");
                Endpoint::client(plan.config, flow(), plan.isn)
            }
            Opens::Smoltcp => {
                let remote = (IpAddress::v4(10, 0, 0, 1), here.port);
                socket.connect(interface.context(), remote, there.port).expect("it connects");
                Endpoint::server(plan.config, flow(), plan.isn)
            }
        };
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        Exchange {
            now: Instant::ZERO,
            ours,
            log: Log::default(),
            card,
            interface,
            sockets,
            handle,
            in_flight: BTreeMap::new(),
            order: 0,
            to_send: pattern(2, plan.lengths.1),
            received: Vec::new(),
        }
    }

    fn socket(&mut self) -> &mut peer::Socket<'static> {
        self.sockets.get_mut(self.handle)
    }

    /// smoltcp's side: its stack, and an application that writes all, reads all and closes.
    fn poll_peer(&mut self) {
        let now = peer_time(self.now);
        self.interface.poll(now, &mut self.card, &mut self.sockets);
        let mut to_send = core::mem::take(&mut self.to_send);
        let mut received = core::mem::take(&mut self.received);
        let socket = self.socket();
        if socket.can_send() && !to_send.is_empty() {
            let sent = socket.send_slice(&to_send).expect("it can send");
            to_send.drain(..sent);
        }
        if to_send.is_empty() && socket.may_send() {
            socket.close();
        }
        while socket.can_recv() {
            let taken = socket.recv(|bytes| (bytes.len(), bytes.to_vec()));
            received.extend(taken.expect("it can receive"));
        }
        (self.to_send, self.received) = (to_send, received);
        self.interface.poll(now, &mut self.card, &mut self.sockets);
    }

    fn collect(&mut self, fate: &mut impl FnMut(End, &Packet) -> Fate) {
        let mut sent: Vec<(End, PacketRef)> = Vec::new();
        sent.extend(self.log.sent.drain(..).map(|packet| (End::Client, packet)));
        sent.extend(self.card.outbox.drain(..).map(|bytes| (End::Server, decode(&bytes))));
        for (end, packet) in sent {
            let mut put = |at| {
                self.in_flight.insert((at, self.order), (end, encode(&packet)));
                self.order += 1;
            };
            match fate(end, &packet) {
                Fate::Arrives => put(self.now + ONE_WAY),
                Fate::Late(more) => put(self.now + ONE_WAY + more),
                Fate::Lost => {}
                Fate::Twice => {
                    put(self.now + ONE_WAY);
                    put(self.now + ONE_WAY);
                }
            }
        }
    }

    fn next_at(&mut self) -> Option<Instant> {
        let peer = self.interface.poll_at(peer_time(self.now), &self.sockets);
        let soon = self.now + Duration::from_micros(1);
        let peer = peer.map(|at| Instant::from_nanos(at.total_micros() as u64 * 1_000).max(soon));
        let ours = self.ours.next_deadline().map(|deadline| deadline.at);
        let packets = self.in_flight.keys().next().map(|key| key.0);
        [peer, ours, packets].into_iter().flatten().min()
    }

    fn step(&mut self) {
        while let Some(entry) = self.in_flight.first_entry().filter(|e| e.key().0 <= self.now) {
            let (from, bytes) = entry.remove();
            match from {
                End::Client => self.card.inbox.push_back(bytes),
                End::Server => {
                    let input = Input::Arrival { side: Side::NETWORK, packet: decode(&bytes) };
                    self.ours.handle(input, &mut self.log, self.now);
                }
            }
        }
        self.ours.handle(Input::Timer, &mut self.log, self.now);
        self.poll_peer();
    }
}

fn encode(packet: &Packet) -> Vec<u8> {
    let header = packet.as_tcp().expect("endpoints send TCP");
    let payload = packet.payload.to_bytes().expect("no tunnels here");
    let mut bytes = Vec::new();
    datagram::emit_tcp(&packet.ip, header, &payload, &mut bytes).expect("it fits a datagram");
    bytes
}

fn decode(bytes: &[u8]) -> PacketRef {
    let parsed = datagram::parse(bytes, Checksums::Verify).expect("a whole datagram");
    let datagram::Transport::Tcp(header) = parsed.transport else { panic!("not TCP") };
    let payload = Payload::Bytes(Bytes::copy_from_slice(&bytes[parsed.payload]));
    PacketRef::new(Packet::tcp(PacketId::FIRST, parsed.ip, header, payload))
}

/// Runs until both have everything; returns what we and what smoltcp received.
fn exchange(plan: &Plan) -> (Vec<u8>, Vec<u8>) {
    let mut run = Exchange::new(plan);
    let mut judge = plan.faults.judge();
    let bytes = Payload::Bytes(Bytes::from(pattern(1, plan.lengths.0)));
    assert_eq!(run.ours.write(bytes, &mut run.log, run.now), plan.lengths.0);
    run.ours.open(&mut run.log, run.now);
    run.poll_peer();
    let end = Instant::ZERO + Duration::from_secs(1_000_000);
    let mut closed = false;
    loop {
        run.collect(&mut judge);
        if run.ours.state().is_synchronized() && !closed {
            run.ours.close(&mut run.log, run.now);
            closed = true;
            continue;
        }
        if closed && matches!(run.ours.state(), State::Closed | State::TimeWait) {
            break;
        }
        let Some(next) = run.next_at().filter(|at| *at < end) else { break };
        run.now = next;
        run.step();
    }
    let received = run.log.delivered.iter().map(|payload| payload.to_bytes().expect("bytes"));
    (received.collect::<Vec<_>>().concat(), run.received)
}

fn plan() -> impl Strategy<Value = Plan> {
    let opens = prop::sample::select(vec![Opens::We, Opens::Smoltcp]);
    let buffer = || prop_oneof![1usize..100, 1usize..20_000];
    let buffers = (buffer(), buffer());
    let lengths = (0u32..20_000, 0u32..20_000);
    (config(), isn(), opens, buffers, lengths, faults()).prop_map(
        |(config, isn, opens, buffers, lengths, faults)| {
            // An end that answers the last FIN of a peer who has not heard it yet must stay.
            let config = Config { time_wait: ms(60_000), ..config };
            Plan { config, isn, opens, buffers, lengths, faults }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60, failure_persistence: None, ..Default::default()
    })]

    #[test]
    fn smoltcp_and_we_receive_each_others_bytes_under_any_faults(plan in plan()) {
        let (ours, theirs) = exchange(&plan);
        prop_assert_eq!(theirs, pattern(1, plan.lengths.0));
        prop_assert_eq!(ours, pattern(2, plan.lengths.1));
    }
}

/// RFC 9293, section 3.10.7.4: found by the property above. The FIN left for the first time with a
/// segment that was sent again, did not count as sent, and its ACK was refused for ever.
#[test]
fn a_fin_that_goes_with_a_retransmission_counts_as_sent() {
    let config = Config {
        mss: 557,
        receive_buffer_bytes: 1,
        timeouts_max: 100,
        time_wait: ms(60_000),
        ..Config::bsd_1995(tcp::Congestion::LinuxReno)
    };
    let seed = 6_103_501_957_296_673_305;
    let faults =
        Faults { seed, loss: 0.069_143_373_445_886_15, twice: 0.059_478_419_883_999_26, late: 0.0 };
    let (isn, opens) = (Seq(0), Opens::We);
    let plan = Plan { config, isn, opens, buffers: (558, 1), lengths: (1, 25), faults };
    assert_eq!(exchange(&plan), (pattern(2, 25), pattern(1, 1)));
}
