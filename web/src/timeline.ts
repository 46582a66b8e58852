// What one scheme did, decoded: marks, windows, timeouts, outages, queues, caches, losses, stories.

import { column, type Column, type MarksIndex, type PanelIndex, type QueueIndex, type SpansIndex } from "./data";
import { grouped } from "./numbers";
import { readRoaming, type Roaming } from "./roaming";

export interface Marks {
  at: Column;
  offset: Column;
}

export type MarkKey = "data" | "acks" | "delivered" | "local" | "end_to_end" | "probes" | "lost";
export type WindowKey = "cwnd" | "ssthresh" | "flight";

/** What waits at one end of the radio. */
export interface Queue {
  at: Column;
  packets: Column;
  bytes: Column;
}

export interface RadioLosses {
  at: Column;
  /** 1 for those on their way to the mobile host. */
  towardMobile: Column;
  cause: Column;
  causes: string[];
}

/** Packets and what happened to them; see crates/trace/src/story.rs. */
export interface Story {
  id: Column;
  cause: Column;
  causes: string[];
  offset: Column;
  length: Column;
  steps: { at: Column; node: Column; packet: Column; offset: Column; deed: Column; text: Column };
  deeds: string[];
  texts: string[];
  sender: number;
  receiver: number;
  complete: boolean;
}

/** What has a beginning and an end. */
export type SpanKey = "outages" | "fades" | "gaps";

export interface Spans {
  from: Column;
  until: Column;
}

export interface Panel {
  name: string;
  scheme: number;
  marks: Record<MarkKey, Marks>;
  windows: { at: Column } & Record<WindowKey, Column>;
  timeouts: Column;
  outages: Spans;
  fades: Spans;
  /** When no cell reaches the mobile host. */
  gaps: Spans;
  queues: { down: Queue; up: Queue };
  cache: { at: Column; bytes: Column; limit: number };
  losses: RadioLosses;
  story: Story;
  /** Where the mobile host is, if it changes cells. */
  roaming: Roaming | null;
}

const NOTHING: Spans = { from: new Float64Array(0), until: new Float64Array(0) };

export function readPanel(index: PanelIndex): Panel {
  const marks = ({ at, offset }: MarksIndex): Marks => ({ at: column(at), offset: column(offset) });
  const queue = ({ at, packets, bytes }: QueueIndex): Queue =>
    ({ at: column(at), packets: column(packets), bytes: column(bytes) });
  const spans = ({ from, until }: SpansIndex): Spans => ({ from: column(from), until: column(until) });
  const { windows, cache, radio_losses: losses, scheme, name, roaming } = index;
  return {
    name,
    scheme,
    marks: {
      data: marks(index.data),
      acks: marks(index.acks),
      delivered: marks(index.delivered),
      local: marks(index.local),
      end_to_end: marks(index.end_to_end),
      probes: marks(index.probes),
      lost: marks(index.lost),
    },
    windows: {
      at: column(windows.at),
      cwnd: column(windows.cwnd),
      ssthresh: column(windows.ssthresh),
      flight: column(windows.flight),
    },
    timeouts: column(index.timeouts),
    outages: spans(index.outages),
    fades: spans(index.fades),
    gaps: roaming ? spans(roaming.gaps) : NOTHING,
    queues: { down: queue(index.queue_down), up: queue(index.queue_up) },
    cache: { at: column(cache.at), bytes: column(cache.bytes), limit: cache.limit },
    losses: {
      at: column(losses.at),
      towardMobile: column(losses.toward_mobile),
      cause: column(losses.cause),
      causes: losses.causes,
    },
    story: readStory(index),
    roaming: roaming ? readRoaming(roaming) : null,
  };
}

function readStory({ story }: PanelIndex): Story {
  const { steps, causes, texts, sender, receiver, complete } = story;
  return {
    id: column(story.id),
    cause: column(story.cause),
    causes,
    offset: column(story.offset),
    length: column(story.length),
    steps: {
      at: column(steps.at),
      node: column(steps.node),
      packet: column(steps.packet),
      offset: column(steps.offset),
      deed: column(steps.deed),
      text: column(steps.text),
    },
    deeds: steps.deeds,
    texts,
    sender,
    receiver,
    complete,
  };
}

/** When the last of it happened, in seconds. */
export function lastTime({ marks, windows, timeouts, outages }: Panel): number {
  const columns = [...Object.values(marks).map(({ at }) => at), windows.at, timeouts, outages.from];
  return Math.max(0, ...columns.map((at) => at[at.length - 1] ?? 0));
}

/** What happened in this panel, in one line. */
export function summarised({ marks, timeouts, outages, fades, roaming }: Panel): string {
  if (Object.values(marks).every(({ at }) => at.length === 0)) return "nothing was recorded";
  const count = (number: number, one: string, many = `${one}s`) =>
    number === 0 ? [] : [`${grouped(String(number))} ${number === 1 ? one : many}`];
  return [
    ...count(marks.lost.at.length, "loss", "losses"),
    ...count(marks.local.at.length, "local retransmission"),
    ...count(marks.end_to_end.at.length, "end-to-end retransmission"),
    ...count(marks.probes.at.length, "probe"),
    ...count(timeouts.length, "timeout"),
    ...count(outages.from.length, "outage"),
    ...count(fades.from.length, "fade"),
    ...count(roaming?.handoffs.length ?? 0, "handoff"),
  ].join(", ");
}
