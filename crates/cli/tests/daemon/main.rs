//! The daemon as operators meet it: its file, its orders, its modes, its metrics, its rights, and
//! that nothing of it stays. Needs root, and what the lab needs.

mod net;

use net::{BASE, MOBILE, Net, isolated, sh, transfer, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::net::IpAddr;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Output};
use std::time::Duration;

const MOBILE_V4: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 79, 2, 1));

const MOBILE_V6: IpAddr = IpAddr::V6(std::net::Ipv6Addr::new(0xfd79, 2, 0, 0, 0, 0, 0, 1));

fn pause(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

#[test]
fn a_transfer_survives_twenty_switches_of_mode() {
    isolated("a_transfer_survives_twenty_switches_of_mode", || {
        switches("mode = \"observe\"\nback-end = \"inline\"\n", MOBILE_V4);
    });
}

#[test]
fn so_it_does_on_the_fast_path_and_with_ipv6() {
    isolated("so_it_does_on_the_fast_path_and_with_ipv6", || {
        switches("mode = \"observe\"\nback-end = \"fast\"\n", MOBILE_V4);
        switches("mode = \"observe\"\n", MOBILE_V6);
    });
}

fn switches(lines: &str, mobile: IpAddr) {
    let net = Net::new("switches");
    net.configure(lines);
    let daemon = net.daemon(&[], &[]);
    let bytes = transfer(mobile, || {
        let modes = ["help", "observe", "off", "help", "off", "observe"];
        for mode in modes.iter().cycle().take(20) {
            daemon.order(&format!("mode {mode}"));
            let is_taken = net.tables().contains("lasthop");
            assert_eq!(is_taken, *mode == "help", "{mode}: {}", daemon.log());
            pause(100);
        }
        // What stands in the statistics is what the modes say.
        daemon.order("mode observe");
        let sent = daemon.count("/packets/sent");
        let looked_at = || daemon.count("/packets/taken") + daemon.count("/packets/seen");
        let before = looked_at();
        pause(200);
        assert_eq!(daemon.count("/packets/sent"), sent, "observing sends nothing");
        assert!(looked_at() > before, "observing looks on");
        daemon.order("mode off");
        let before = looked_at();
        pause(200);
        assert_eq!(looked_at(), before, "off sees nothing");
        daemon.order("mode help");
        pause(200);
        assert!(daemon.count("/packets/sent") > sent, "helping sends");
    });
    // What the switches cost: segments sent again, and those that came twice.
    let counters = "TcpOutSegs TcpRetransSegs TcpExtTCPDSACKRecv TcpExtTCPTimeouts";
    let counted = sh(&format!("ip netns exec {} nstat -az {counters}", net::FIXED));
    println!("{} MB, daemon sent {}\n{counted}", bytes / 1_000_000, daemon.count("/packets/sent"));
}

#[test]
fn a_changed_file_is_read_on_sighup_and_a_bad_one_changes_nothing() {
    isolated("a_changed_file_is_read_on_sighup_and_a_bad_one_changes_nothing", || {
        let net = Net::new("reload");
        net.configure("mode = \"observe\"\n");
        // As systemd would listen to it.
        let manager = UnixDatagram::bind(net.file("manager")).expect("a socket");
        let heard = std::thread::spawn(move || {
            let mut said = Vec::new();
            while said.last().is_none_or(|last| last != "STOPPING=1") {
                let mut bytes = [0; 256];
                let count = manager.recv(&mut bytes).expect("it is a socket");
                said.push(String::from_utf8_lossy(&bytes[..count]).into_owned());
            }
            said
        });
        let notify = format!("NOTIFY_SOCKET={}", net.file("manager").display());
        let mut daemon = net.daemon(&["env", &notify, "WATCHDOG_USEC=30000000"], &[]);
        transfer(MOBILE_V4, || {
            net.configure("mode = \"help\"\n[log]\nlevel = \"debug\"\n");
            daemon.signal(Signal::HUP);
            wait_until("it helps", || daemon.ask("stats")["mode"] == "help");
            let file = net.configure("mode = \"observe\"\nscheme = \"snop\"\n");
            daemon.signal(Signal::HUP);
            wait_until("it refuses", || daemon.log().contains("event=reload-refused"));
            let said = format!("{}:7: `snop` is not a scheme; expected plain", file.display());
            assert!(daemon.log().contains(&said), "{}", daemon.log());
            assert!(daemon.ask("reload")["error"].is_string());
            assert_eq!(daemon.ask("stats")["mode"], "help");
            // Another scheme begins with nothing; the mode that an order set stays.
            daemon.order("mode observe");
            net.configure("mode = \"help\"\nscheme = \"plain\"\n");
            daemon.order("reload");
            let statistics = daemon.ask("stats");
            assert_eq!(
                (&statistics["mode"], statistics["scheme"].is_null()),
                (&"observe".into(), true)
            );
        });
        assert_eq!(daemon.stop(), Some(0), "{}", daemon.log());
        assert!(daemon.log().ends_with("event=stopped\n"), "{}", daemon.log());
        let said = heard.join().expect("no panic");
        assert_eq!(said.first().map(String::as_str), Some("READY=1\nSTATUS=mode observe"));
        assert!(said.iter().any(|one| one.starts_with("RELOADING=1\nMONOTONIC_USEC=")));
        assert!(said.iter().any(|one| one.starts_with("READY=1\nSTATUS=mode help")), "{said:?}");
        assert!(said.iter().any(|one| one == "WATCHDOG=1"), "{said:?}");
        assert!(!net.tables().contains("lasthop"));
        assert!(!net.file("control").exists());
    });
}

#[test]
fn a_device_that_goes_and_returns_is_waited_for() {
    isolated("a_device_that_goes_and_returns_is_waited_for", || {
        let net = Net::new("device");
        net.configure("mode = \"help\"\n[metrics]\nlisten = \"127.0.0.1:9464\"\n");
        let daemon = net.daemon(&[], &[]);
        transfer(MOBILE_V4, || pause(100));
        wait_until("it is well", || net.get("/health") == (200, "ok: mode help\n".into()));
        sh(&format!("ip -n {BASE} link set radio down"));
        wait_until("health says so", || net.get("/health") == (503, "radio is down\n".into()));
        sh(&format!("ip -n {BASE} link set radio up"));
        wait_until("it is well", || net.get("/health").0 == 200);
        sh(&format!("ip -n {BASE} link del radio"));
        wait_until("health says so", || net.get("/health").0 == 503);
        assert!(!net.tables().contains("lasthop"), "the kernel has its packets");
        net.attach(MOBILE, "radio", 2);
        wait_until("it is well", || net.get("/health").0 == 200);
        let before = daemon.count("/packets/sent");
        transfer(MOBILE_V4, || pause(300));
        assert!(daemon.count("/packets/sent") > before, "it helps again");
        sh(&format!("ip -n {BASE} addr add 10.79.2.77/24 dev radio"));
        let rules = || sh(&format!("ip netns exec {BASE} nft list ruleset"));
        wait_until("its own address is not taken", || rules().contains("10.79.2.77"));
        for event in ["event=device-lost why=\"radio is gone\"", "event=device-back mode=help"] {
            assert!(daemon.log().contains(event), "{event} in {}", daemon.log());
        }
    });
}

#[test]
fn the_radios_carrier_is_a_notice_that_the_link_is_gone_or_back() {
    isolated("the_radios_carrier_is_a_notice_that_the_link_is_gone_or_back", || {
        let net = Net::new("carrier");
        net.configure("mode = \"help\"\n[log]\nlevel = \"debug\"\n");
        let daemon = net.daemon(&[], &[]);
        transfer(MOBILE_V4, || {
            pause(300);
            let at = |what: &str| sh(&format!("ip -n {MOBILE} {what}"));
            at("link set net0 down");
            wait_until("it is gone", || daemon.log().contains("event=carrier is=false"));
            pause(500);
            at("link set net0 up");
            at("route add default via 10.79.2.254");
            wait_until("it is back", || daemon.log().contains("event=carrier is=true"));
            wait_until("it restarts", || daemon.log().contains("link is back"));
        });
        // While it is gone nobody probes but once a second.
        assert!(daemon.count("/scheme/probes") <= 2, "{}", daemon.ask("stats"));
    });
}

/// Half of the flows are left alone: they are told of, too, and what a class gains is measured.
#[test]
fn worth_a_control_group_passes_untouched_and_is_compared_with() {
    isolated("worth_a_control_group_passes_untouched_and_is_compared_with", || {
        let net = Net::new("worth");
        net.configure("mode = \"help\"\n");
        let file = net.file("lasthop.toml");
        let text = std::fs::read_to_string(&file).expect("the file");
        assert!(text.contains("\"0%\""), "{text}");
        std::fs::write(&file, text.replace("\"0%\"", "\"50%\"")).expect("written");
        let daemon = net.daemon(&[], &[]);
        let mut untouched = 0;
        for _ in 0..24 {
            transfer(MOBILE_V4, || {
                // What is shorter than 64 KiB tells nothing, and is not counted.
                let mut flow = serde_json::Value::Null;
                wait_until("so much of the flow is known", || {
                    flow = daemon.ask("flows")["flows"][0].clone();
                    flow["bytes"].as_u64() > Some(64 << 10)
                });
                untouched += u32::from(flow["left_alone"] == "without help, to compare with");
            });
        }
        assert!((4..=20).contains(&untouched), "{untouched} of 24");
        // What the kernel forwards is seen up to a millisecond later.
        wait_until("all are counted", || {
            let class = &daemon.ask("stats")["classes"][0];
            let counted = |key: &str| class[key].as_u64().expect("a number");
            assert_eq!(class["name"], "others", "{class}");
            counted("flows_helped") + counted("flows_control") == 24
        });
    });
}

#[test]
fn metrics_count_what_happens_and_flows_tell_of_each() {
    isolated("metrics_count_what_happens_and_flows_tell_of_each", || {
        let net = Net::new("metrics");
        net.configure("mode = \"help\"\n[metrics]\nlisten = \"127.0.0.1:9464\"\n");
        let daemon = net.daemon(&[], &[]);
        // One packet in fifty is lost on the way to the mobile host.
        sh(&format!(
            "ip netns exec {MOBILE} nft 'add table netdev lossy; add chain netdev lossy in {{ type \
             filter hook ingress device \"net0\" priority 0; }}; add rule netdev lossy in ip \
             protocol tcp numgen random mod 50 == 0 drop'"
        ));
        transfer(MOBILE_V4, || {
            pause(1_500);
            let flows = daemon.ask("flows");
            let flow = &flows["flows"][0];
            assert!(flow["to"].as_str().is_some_and(|to| to.starts_with("10.79.2.1:")), "{flows}");
            assert_eq!(flow["heading"], "down", "{flows}");
            assert!(flow["interventions"].as_u64() > Some(0), "{flows}");
            assert!(flow["age_s"].as_f64() > Some(0.5), "{flows}");
            let mut top = lasthop(&["top", "--once", "--control"]);
            let output = top.arg(net.file("control")).output().expect("it runs");
            let table = String::from_utf8(output.stdout).expect("UTF-8");
            assert!(
                table.contains("lasthop: mode help") && table.contains("10.79.2.1:"),
                "{table}"
            );
        });
        let repaired = daemon.count("/scheme/retransmissions");
        assert!(repaired > 0);
        let value = |name: &str| -> u64 {
            let (status, text) = net.get("/metrics");
            assert_eq!(status, 200);
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            let line = line.unwrap_or_else(|| panic!("{name} in {text}"));
            line.parse().expect("a number")
        };
        wait_until("the page has it", || value("lasthop_local_retransmissions_total") == repaired);
        assert_eq!(value("lasthop_healthy"), 1);
        assert!(net.get("/metrics").1.contains("lasthop_interventions_total{rule=\"MOD-1\""));
        assert_eq!(net.get("/nothing").0, 404);
        let mut ctl = lasthop(&["daemon", "ctl", "--control"]);
        let output = ctl.arg(net.file("control")).args(["mode", "off"]).output();
        assert_eq!(output.expect("it runs").stdout, b"{\"ok\":true}\n");
        assert!(!net.tables().contains("lasthop"));
    });
}

#[test]
fn two_rights_are_enough() {
    isolated("two_rights_are_enough", || {
        let net = Net::new("rights");
        net.configure("mode = \"help\"\n[metrics]\nlisten = \"127.0.0.1:9464\"\n");
        let folder = net.folder.display();
        sh(&format!("chown -R 65534:65534 {folder}"));
        let unprivileged = [
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all,+net_raw,+net_admin",
            "--ambient-caps=-all,+net_raw,+net_admin",
            "--bounding-set=-all,+net_raw,+net_admin",
            "--no-new-privs",
        ];
        let mut daemon = net.daemon(&unprivileged, &[]);
        let status = format!("/proc/{}/status", daemon.child.id());
        let status = std::fs::read_to_string(status).expect("it runs");
        assert!(status.contains("CapEff:\t0000000000003000"), "{status}");
        transfer(MOBILE_V4, || {
            pause(200);
            daemon.order("mode observe");
            assert!(!net.tables().contains("lasthop"));
            daemon.order("mode help");
            assert!(net.tables().contains("lasthop"), "its nft has the right, too");
            pause(200);
        });
        assert!(daemon.count("/packets/sent") > 0);
        assert_eq!(daemon.stop(), Some(0), "{}", daemon.log());
        assert!(!net.tables().contains("lasthop"));
    });
}

#[test]
fn bad_input_is_told_with_the_fix_before_anything_is_changed() {
    isolated("bad_input_is_told_with_the_fix_before_anything_is_changed", || {
        let net = Net::new("check");
        let file = net.configure("mode = \"help\"\n[metrics]\nlisten = \"127.0.0.1:9464\"\n");
        let run = |option: &str| -> (Option<i32>, String) {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", BASE, env!("CARGO_BIN_EXE_lasthop")]);
            command.args(["daemon", "gateway", "--config"]).arg(&file).arg(option);
            said(&command.output().expect("it runs"))
        };
        let (code, text) = run("--check");
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("fine: gateway between wired and radio, mode help"), "{text}");

        let expect = |prepare: &str, restore: &str, message: &str| {
            let nothing = net.tables();
            sh(prepare);
            let before = net.tables();
            let (code, text) = run("--check");
            assert_eq!(code, Some(3), "{message}: {text}");
            assert!(text.contains(message), "{message}: {text}");
            assert_eq!(net.tables(), before);
            sh(restore);
            assert_eq!(net.tables(), nothing);
        };
        let base = |what: &str| format!("ip netns exec {BASE} {what}");
        expect(
            &format!("ip -n {BASE} link set radio name other"),
            &format!("ip -n {BASE} link set other name radio; ip -n {BASE} link set radio up"),
            "radio = radio: look up the device radio: No such device (os error 19); `ip link`",
        );
        expect(
            &base("ip link set radio mtu 1400"),
            &base("ip link set radio mtu 1500"),
            "radio of 1400: set them alike (ip link set DEVICE mtu BYTES)",
        );
        expect(
            &base("sysctl -qw net.ipv4.ip_forward=0"),
            &base("sysctl -qw net.ipv4.ip_forward=1"),
            "net.ipv4.ip_forward is 0: without the daemon nothing would be forwarded; sysctl -w",
        );
        expect(
            &base(
                "nft 'add table netdev theirs; add chain netdev theirs first { type filter hook \
                   ingress device \"wired\" priority -600; }'",
            ),
            &base("nft delete table netdev theirs"),
            "the nft chain theirs first looks at wired before the daemon's rules do",
        );

        // What a running daemon holds is in the way of another; that one changes nothing.
        let mut daemon = net.daemon(&[], &[]);
        let (code, text) = run("--check");
        assert_eq!(code, Some(3), "{text}");
        for message in [
            "metrics.listen = 127.0.0.1:9464: choose another port",
            "a daemon answers there: stop it, or choose another path",
            "the nft table netdev lasthop is there: another daemon runs here",
        ] {
            assert!(text.contains(message), "{message}: {text}");
        }
        let mut second = Command::new("ip");
        second.args(["netns", "exec", BASE, env!("CARGO_BIN_EXE_lasthop"), "daemon", "gateway"]);
        let (code, text) = said(&second.arg("--config").arg(&file).output().expect("it runs"));
        assert_eq!(code, Some(3), "{text}");
        transfer(MOBILE_V4, || pause(100));
        assert!(daemon.count("/packets/sent") > 0, "the first goes on");
        assert_eq!(daemon.stop(), Some(0));
        std::fs::write(&file, "wired = \"wired\"\nradio = \"wired\"\nmobile = \"10.0.0.0/8\"\n")
            .expect("written");
        let (code, text) = run("--check");
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("lasthop.toml:2: radio = wired: expected another device"), "{text}");
    });
}

#[test]
fn doctor_says_what_defeats_a_daemon_and_what_can_be_helped() {
    isolated("doctor_says_what_defeats_a_daemon_and_what_can_be_helped", || {
        let _net = Net::new("doctor");
        sh(&format!(
            "ip netns exec {BASE} sysctl -qw net.ipv4.conf.radio.rp_filter=1
            ip netns exec {BASE} nft 'add table ip n; add chain ip n out {{ type nat hook \
            postrouting priority 100; }}'"
        ));
        let doctor = |more: &[&str]| {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", BASE, env!("CARGO_BIN_EXE_lasthop"), "doctor"]);
            command.args(["--wired", "wired", "--radio", "radio"]).args(more);
            command.output().expect("it runs")
        };
        transfer(MOBILE_V4, || {
            let output = doctor(&["--watch", "1s", "--json"]);
            let (code, text) = said(&output);
            assert_eq!(code, Some(0), "{text}");
            let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let finding = |name: &str| {
                let all = document["path"].as_array().into_iter().flatten();
                let found = all.into_iter().find(|finding| finding["name"] == name);
                found.unwrap_or_else(|| panic!("{name} in {document}")).clone()
            };
            assert_eq!(finding("radio: rp_filter")["judgement"], "mind");
            assert_eq!(finding("wired: link")["judgement"], "fine");
            assert_eq!(finding("nft ip n out")["judgement"], "mind");
            let traffic = &document["traffic"];
            let (all, helped) = (&traffic["bytes"]["tcp"], &traffic["helpable_bytes"]);
            assert_eq!(traffic["one_way_flows"], 0, "{traffic}");
            let share = helped.as_f64().expect("bytes") / all.as_f64().expect("bytes");
            assert!((0.5..1.0).contains(&share), "ACKs are not data: {traffic}");
        });
        let (code, text) = said(&doctor(&["--watch", "10"]));
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("--watch: `10` is not a"), "{text}");
        sh(&format!("ip -n {BASE} link set radio mtu 1400"));
        let (code, text) = said(&doctor(&[]));
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("DEFEATS  MTU: 1500 and 1400 bytes"), "{text}");
    });
}

#[test]
fn the_example_configuration_is_one() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/lasthop.toml");
    let text = std::fs::read_to_string(file).expect("the example");
    for place in [live::daemon::Place::Gateway, live::daemon::Place::BaseStation] {
        live::daemon::settings::parse(file, &text, place).unwrap_or_else(|error| panic!("{error}"));
    }
    // Every line that is commented out is a setting, and right as well.
    let all: String = text
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(setting) if setting.starts_with('[') || setting.split(' ').nth(1) == Some("=") => {
                format!("{setting}\n")
            }
            _ => format!("{line}\n"),
        })
        .collect();
    let place = live::daemon::Place::BaseStation;
    let config = live::daemon::settings::parse(file, &all, place);
    let config = config.unwrap_or_else(|error| panic!("{error}"));
    assert!(config.devices.radio_high.is_some() && config.radio_rate.is_some());
    assert!(config.classes.len() == 1 && config.back_at.len() == 4);
}

#[test]
fn the_unit_is_one_and_exposes_little() {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/lasthop-gateway.service");
    let text = std::fs::read_to_string(unit).expect("the unit");
    let folder = std::env::temp_dir().join(format!("lasthop-{}-unit", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let copy = folder.join("lasthop-gateway.service");
    // What it starts has to be there.
    let here = text.replace("/usr/bin/lasthop", env!("CARGO_BIN_EXE_lasthop"));
    std::fs::write(&copy, here).expect("written");
    let analyze = |arguments: &[&str]| {
        let output = Command::new("systemd-analyze").args(arguments).arg(&copy).output();
        said(&output.expect("systemd-analyze is missing: apt-get install -y systemd"))
    };
    let verified = analyze(&["verify", "--man=no"]);
    // The tool's judgement, from 0 (sealed) to 10: what is left are the two rights and the network.
    let judged = analyze(&["security", "--offline=true", "--threshold=20"]);
    std::fs::remove_dir_all(&folder).expect("removed");
    assert_eq!(verified, (Some(0), String::new()));
    assert_eq!(judged.0, Some(0), "{}", judged.1);
}

#[test]
fn the_manual_says_what_the_program_does() {
    let folder = std::env::temp_dir().join(format!("lasthop-{}-man", std::process::id()));
    let (code, text) = said(&lasthop(&["man"]).arg(&folder).output().expect("it runs"));
    assert_eq!(code, Some(0), "{text}");
    let page = |name: &str| {
        let page = std::fs::read_to_string(folder.join(name));
        page.unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    assert!(page("lasthop-daemon-gateway.1").contains("SIGHUP has the daemon read it again"));
    assert!(page("lasthop-daemon-ctl.1").contains("mode off|observe|help"));
    assert!(page("lasthop-top.1").contains("flow by flow"));
    let file = page("lasthop.toml.5");
    assert!(file.contains("mobile = ") && file.contains("[metrics]"), "{file}");
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn orders_that_are_none_and_daemons_that_are_not_there_are_told() {
    let (code, text) = said(&lasthop(&["daemon", "ctl", "mode", "on"]).output().expect("it runs"));
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("mode on: expected off, observe or help"), "{text}");
    let nowhere = ["daemon", "ctl", "--control", "/nowhere/control", "stats"];
    let (code, text) = said(&lasthop(&nowhere).output().expect("it runs"));
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("/nowhere/control: no daemon takes orders there"), "{text}");
}

fn lasthop(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.args(arguments);
    command
}

/// The exit code, and all that was said.
fn said(output: &Output) -> (Option<i32>, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}
