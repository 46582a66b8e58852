//! What goes after a mobile host that is with another base station (CI-SMOOTH-2).

use crate::drill::{Drill, MOBILE};
use sansio::Notice;
use schemes::snoop::Config;
use schemes::snoop::config::WhenMoved;

/// Four segments, of which the mobile host has the first and the third.
fn drill(when_moved: WhenMoved) -> Drill {
    let mut drill = Drill::new(Config { when_moved, ..Config::modern() });
    drill.segments(0, 4).ack(1000).sack(1000, &[(2000, 3000)]).quietly();
    drill
}

#[test]
fn ci_smooth_2_what_may_be_missing_follows_once_and_in_order() {
    let mut drill = drill(WhenMoved::Follow);
    drill.notice(Notice::Moved(MOBILE.address));
    drill.expect(&["tunnel 1000..2000 local", "tunnel 3000..4000 local"]);
    drill.notice(Notice::Moved(MOBILE.address)).after_millis(100_000).expect(&[]);
}

#[test]
fn ci_smooth_2_nothing_follows_where_the_old_cell_brings_it_or_nobody_asked() {
    let mut in_reach = drill(WhenMoved::Follow);
    in_reach.notice(Notice::Deregistered(MOBILE.address)).after_millis(100_000).expect(&[]);
    let mut unasked = drill(WhenMoved::Forget);
    unasked.notice(Notice::Moved(MOBILE.address)).after_millis(100_000).expect(&[]);
}
