//! A mobile host is with another base station: what it has not acknowledged goes after it
//! (CI-SMOOTH-2; [`super::config::WhenMoved`]).
//!
//! A buffer that does not look at ACKs holds what arrived as well, and so has to be short or brings
//! much of it twice. The cache holds what may be missing, and nothing else.

use super::flow::Flow;
use super::resend::{acceptable, cut};
use super::{Context, rule};
use sansio::{Cause, Priority, Side, Sink};

/// Sends the cache of a flow through the tunnel, the oldest first, without what SACK blocks cover.
/// What the fixed host has sent again carries a later TSval than what follows it, which the mobile
/// host would then take for old (PAWS): that is raised as well.
pub(super) fn send_after(flow: &mut Flow, context: &mut Context<'_, impl Sink>) {
    let mut oldest = flow.oldest_timestamp();
    let mut bytes = 0;
    for entry in flow.cache.iter().filter(|entry| !entry.sacked) {
        let start = flow.last_ack.map_or(entry.start, |ack| ack.max(entry.start));
        let id = context.sink.new_id();
        let copy = cut(&entry.packet, (start, entry.end), id, Cause::LocalRetransmission);
        let copy = acceptable(copy, oldest, context.config);
        let sent = copy.as_tcp().and_then(|tcp| tcp.options.timestamps());
        let is_later = |of: u32| oldest.is_none_or(|it| of.wrapping_sub(it) as i32 > 0);
        oldest = sent.map(|it| it.value).filter(|it| is_later(*it)).or(oldest);
        bytes += u64::from(entry.end.since(start));
        context.shared.statistics.retransmissions += 1;
        context.sink.send(Side::TUNNEL, Priority::Normal, copy.into());
    }
    context.shared.statistics.retransmitted_bytes += bytes;
    rule(context.sink, flow.key, None, ("CI-SMOOTH-2", "sent after the mobile host", bytes));
}
