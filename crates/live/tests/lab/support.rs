//! What the cases share.

use link::hop;
use link::preset::Pair;
use live::daemon::{self, BackEnd, Control, DaemonConfig, Forwarding};
use live::io::inline::Devices;
use live::lab::{Amount, Direction, Lab, LabRun, Program, RunSetup, Sender, Stopped, Traffic};
use live::radio;
use sansio::{BitRate, Duration, Instant};
use std::net::TcpStream;
use std::process::ExitCode;
use trace::Observer;

/// This program as the daemon.
pub(crate) fn daemon(arguments: &[String]) -> ExitCode {
    let value = |name: &str| {
        let place = arguments.iter().position(|argument| argument == name);
        place.and_then(|place| arguments.get(place + 1)).unwrap_or_else(|| panic!("{name}")).clone()
    };
    let flag = |name: &str| arguments.iter().any(|argument| argument == name);
    let devices = Devices {
        wired: value("--wired"),
        radio: value("--radio"),
        radio_high: (!flag("--one-radio-device")).then(|| value("--radio-high")),
    };
    assert_eq!(value("--control"), "-", "the lab gives orders on the standard input");
    let mobile = value("--mobile");
    let mobile = mobile.split(',').map(|prefix| prefix.parse().expect("a prefix")).collect();
    let config = DaemonConfig {
        scheme: value("--scheme"),
        control: Control::Standard,
        forwarding: if flag("--bridge") { Forwarding::Bridge } else { Forwarding::Routed },
        back_end: match (flag("--fast"), flag("--auto")) {
            (true, _) => BackEnd::Fast,
            (false, true) => BackEnd::Auto,
            (false, false) => BackEnd::Inline,
        },
        ..DaemonConfig::base_station(devices, mobile)
    };
    match daemon::run(&config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// A lab whose daemon is this program.
pub(crate) fn lab() -> Lab {
    lab_in(0)
}

/// The same in a lane of its own.
pub(crate) fn lab_in(lane: u32) -> Lab {
    Lab::open(lane, program(&["daemon"])).unwrap_or_else(|error| panic!("{error:#}"))
}

/// This program with these arguments first.
pub(crate) fn program(arguments: &[&str]) -> Program {
    let path = std::env::current_exe().expect("the path of this program");
    Program { path, arguments: arguments.iter().map(Into::into).collect() }
}

/// A program in the lab: knocks at the fixed host, where nobody listens, and takes its time.
pub(crate) fn visit() -> ExitCode {
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is set"));
    for name in ["LH_MOBILE_HOST", "LH_NS_FIXED", "LH_NS_BASE", "LH_NS_MOBILE"] {
        assert!(!variable(name).is_empty());
    }
    let clock = live::sys::Clock::starting_now();
    let refused = TcpStream::connect(format!("{}:9", variable("LH_FIXED_HOST")));
    let error = refused.expect_err("nobody listens");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused, "{error}");
    let took = clock.now().since(Instant::ZERO);
    assert!(took >= Duration::from_millis(20), "two hops there and back: {took}");
    ExitCode::from(VISITED)
}

/// How [`visit`] ends.
pub(crate) const VISITED: u8 = 7;

/// A lab that somebody will end: it says `running`, and exits as the command line would.
pub(crate) fn long_run() -> ExitCode {
    let mut lab = lab();
    let mut setup = setup("snoop-modern");
    setup.amount = Amount::Duration(Duration::from_secs(60));
    println!("running");
    match lab.run_one(&setup, &mut trace::Nothing) {
        Err(error) if error.downcast_ref() == Some(&Stopped::Interrupted) => ExitCode::from(130),
        other => panic!("{other:?}"),
    }
}

/// 10 Mbit/s and 5 ms, behind 100 Mbit/s and 5 ms; 2 MB down, cubic.
pub(crate) fn setup(scheme: &str) -> RunSetup {
    let wired = hop::Config::clean(BitRate::from_mbps(100), Duration::from_millis(5));
    let radio = hop::Config::clean(BitRate::from_mbps(10), Duration::from_millis(5));
    RunSetup {
        air: radio::Config {
            wired: Pair::symmetric(wired),
            radio: Pair::symmetric(radio),
            seed: 1,
        },
        scheme: scheme.to_owned(),
        sender: Sender::Cubic,
        sack: true,
        timestamps: true,
        direction: Direction::Down,
        traffic: Traffic::Bulk,
        amount: Amount::Size(2_000_000),
        mobiles: 1,
        serves_first: false,
        mss: None,
        window_bytes: None,
        patience: Duration::from_secs(30),
        drill: Vec::new(),
    }
}

/// Runs it and sees that every byte arrived. Where others use the machine, too, the radio is late
/// and nothing can be said of speed: then it runs again.
pub(crate) fn run(lab: &mut Lab, setup: &RunSetup) -> LabRun {
    for _ in 1..ATTEMPTS {
        let run = run_shown(lab, setup, &mut trace::Nothing);
        if run.lateness.p99 <= LATE {
            return run;
        }
    }
    run_shown(lab, setup, &mut trace::Nothing)
}

/// Runs, at most.
const ATTEMPTS: u32 = 4;
/// Calm machines: below 1 ms.
const LATE: Duration = Duration::from_millis(5);

/// The same, with somebody who sees the records.
pub(crate) fn run_shown(lab: &mut Lab, setup: &RunSetup, observer: &mut impl Observer) -> LabRun {
    let run = lab.run_one(setup, observer).unwrap_or_else(|error| panic!("{error:#}"));
    println!("  {}: {}, {}", setup.scheme, summary(&run), run.lateness);
    assert_eq!(run.failure, None);
    for stream in &run.streams {
        assert!(stream.intact, "{stream:?}");
        if let (Amount::Size(size), None) = (setup.amount, stream.messages_late) {
            assert_eq!((stream.sent_bytes, stream.received_bytes), (size, size));
        }
    }
    run
}

fn summary(run: &LabRun) -> String {
    let transfer = &run.measures.transfers[0];
    format!(
        "{:.2} Mbit/s, stall {}, end-to-end {}, local {}, probes {}, lost {}, full {}, timeouts {}",
        goodput(run) / 1e6,
        transfer.stall,
        run.measures.retransmissions_end_to_end,
        run.measures.retransmissions_local,
        run.measures.probes,
        run.measures.lost,
        run.measures.queue_full,
        run.measures.timeouts
    )
}

/// Payload bits per second of the first transfer.
pub(crate) fn goodput(run: &LabRun) -> f64 {
    let transfer = &run.measures.transfers[0];
    transfer.delivered_bytes as f64 * 8.0 / transfer.last_delivered_at.as_secs_f64()
}
