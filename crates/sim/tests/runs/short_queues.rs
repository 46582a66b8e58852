//! Queues shorter than the path, where the agent does not see them: their losses are the sender's.

use crate::plans::plans;

/// Without SACK the agent learns of one hole at a time; a sender that is not told in time stays in
/// slow start, window after window. Links found by drawing them at random.
#[test]
fn modern_leaves_a_sender_without_sack_no_slower_than_it_was() {
    for link in [
        "rate = \"15234kbit/s\"\ndelay = \"15901us\"\nqueue = \"29p\"\nwired-delay = \"2866us\"",
        "rate = \"9836kbit/s\"\ndelay = \"15670us\"\nqueue = \"26p\"\nwired-delay = \"6380us\"",
        "rate = \"7700kbit/s\"\ndelay = \"14726us\"\nqueue = \"31p\"\nwired-delay = \"15971us\"\n\
         loss = \"0.05%\"\noutage = \"every=4s,length=170ms\"",
        // Of the lab: the sender's own recovery keeps it busy, and copies fill its queue again.
        "rate = \"2Mbit/s\"\ndelay = \"2ms\"\nqueue = \"20p\"\nwired-delay = \"3ms\"",
        // A long pipe: slow start loses hundreds, and copies in crowds would be lost again.
        "rate = \"20Mbit/s\"\ndelay = \"12ms\"\nqueue = \"100p\"\nwired-delay = \"18ms\"",
    ] {
        let text = format!(
            "{link}\ndepartures = \"device\"\nwired-rate = \"1Gbit/s\"\nduration = \"10s\"\n\
             tcp = [\"reno\", \"newreno\"]\nschemes = [\"plain\", \"snoop-modern\"]"
        );
        let mut bytes = Vec::new();
        for (case, plan) in plans(&text) {
            let mut sum = 0;
            for seed in 1..=3 {
                let outcome = sim::run(&plan, seed, trace::Nothing);
                assert_eq!(outcome.failures, [], "{case:?}");
                sum += outcome.measures.transfers[0].delivered_bytes;
            }
            bytes.push((case.sender.to_string(), case.scheme, sum));
        }
        for (tcp, scheme, modern) in bytes.iter().filter(|(_, scheme, _)| scheme == "snoop-modern")
        {
            let plain = bytes.iter().find(|(other, scheme, _)| other == tcp && scheme == "plain");
            let (_, _, plain) = plain.expect("the same sender without agent");
            assert!(
                modern * 100 >= plain * 97,
                "{tcp} {scheme}: {modern}, {plain} without\n{link}"
            );
        }
    }
}

/// A sender whose losses are all repaired keeps a window that the queue cannot take: of a third of
/// its packets none gets through at first. It has to be told; where the air loses as much, it must
/// not be, but once.
#[test]
fn congestion_losses_that_do_not_end_are_hidden_only_if_the_air_has_them() {
    let run = |link: &str| {
        let text = format!(
            "{link}\nwired-rate = \"1Gbit/s\"\nduration = \"10s\"\ntcp = \"cubic\"\n\
             schemes = \"snoop-modern\""
        );
        let (case, plan) = plans(&text).swap_remove(0);
        let outcome = sim::run(&plan, 1, trace::Nothing);
        assert_eq!(outcome.failures, [], "{case:?}");
        outcome.measures
    };
    let queue = run("rate = \"81475kbit/s\"\ndelay = \"3607us\"\nqueue = \"25p\"\n\
                     wired-delay = \"540us\"\ndepartures = \"device\"");
    let segments = queue.transfers[0].delivered_bytes / 1448;
    assert!(queue.retransmissions_local * 500 < segments, "{}", queue.retransmissions_local);
    let air = run("rate = \"10Mbit/s\"\ndelay = \"5ms\"\nwired-delay = \"40ms\"\nloss = \"17%\"");
    assert!(air.transfers[0].delivered_bytes > 8_000_000, "{}", air.transfers[0].delivered_bytes);
}

/// BBR does not slow down for losses. Hidden from it, they gain nothing, and what repairs look like
/// to it makes it overrun the queue: it has to be left alone. That takes five episodes.
#[test]
fn congestion_a_sender_that_losses_do_not_slow_is_as_fast_as_without_the_agent() {
    let text = "rate = \"100Mbit/s\"\ndelay = \"2ms\"\nqueue = \"83p\"\nwired-rate = \"1Gbit/s\"\n\
                rtt = \"10ms\"\nloss = \"3%\"\ndepartures = \"device\"\nduration = \"3s\"\n\
                tcp = \"bbr\"\nsack = \"on\"\nschemes = [\"plain\", \"snoop-modern\"]";
    let [plain, modern] = [0, 1].map(|index| {
        let (case, plan) = plans(text).swap_remove(index);
        (1..=4).fold(0, |sum, seed| {
            let outcome = sim::run(&plan, seed, trace::Nothing);
            assert_eq!(outcome.failures, [], "{case:?}");
            sum + outcome.measures.transfers[0].delivered_bytes
        })
    });
    assert!(modern * 100 >= plain * 98, "{modern}, {plain} without");
}

/// After an outage the agent fills the queue with what was lost, and what overflows then the sender
/// learns of. By then it has taken back what its timeout had made of the outage, so that what is
/// still missing from that nobody but the agent repairs before the next timeout.
#[test]
fn restart_what_an_outage_took_is_repaired_though_the_sender_learns_of_a_full_queue() {
    for at in ["2s", "2039ms", "2195ms"] {
        let text = format!(
            "rate = \"28913kbit/s\"\ndelay = \"4501us\"\nqueue = \"33p\"\n\
             wired-rate = \"1Gbit/s\"\nwired-delay = \"4501us\"\n\
             departures = \"device\"\nsize = \"18120kB\"\n\
             outage = \"at={at},length=1536ms\"\ntcp = [\"reno\", \"cubic\"]\nsack = \"on\"\n\
             schemes = [\"plain\", \"snoop-modern\"]"
        );
        let ends: Vec<_> = plans(&text)
            .into_iter()
            .map(|(case, plan)| {
                let outcome = sim::run(&plan, 1, trace::Nothing);
                assert_eq!(outcome.failures, [], "{case:?}");
                (case.sender.to_string(), outcome.ended_at)
            })
            .collect();
        for pair in ends.chunks(2) {
            let [(tcp, plain), (_, modern)] = pair else { panic!("two schemes: {pair:?}") };
            assert!(modern < plain, "{tcp}, outage at {at}: {modern:?}, {plain:?} without");
        }
    }
}
