// A mobile host among cells, decoded: where it is, what it hears, by which messages it is found.

import { column, type Column, type RoamingIndex } from "./data";
import type { Spans } from "./timeline";

/** From when on which cell; NaN for none. */
export interface Changes {
  at: Column;
  cell: Column;
}

export interface Message {
  sent: number;
  /** When it arrived or was lost; NaN if neither. */
  ended: number;
  /** Lanes. */
  from: number;
  to: number;
  text: string;
  /** Why it was lost; null if it was not. */
  lost: string | null;
  /** True for what base stations say again and again. */
  advertised: boolean;
}

export interface Stage {
  at: number;
  name: string;
  /** The cell over which packets leave then; NaN for none. */
  cell: number;
}

export interface Handoff {
  begin: number;
  until: number;
  /** Cells; NaN for none. */
  from: number;
  to: number;
}

export interface Roaming {
  /** The cells that are shown, ascending. */
  cells: number[];
  /** Names of the lanes: home agent, base stations in the order of `cells`, mobile host. */
  lanes: string[];
  reached: Spans & { cell: Column };
  served: Changes[];
  /** Decibels, a column for each of `cells`. */
  signal: { at: Column; of: Column[] };
  beacons: { at: Column; cell: Column; taken: Column };
  ways: Spans & { cell: Column; forwarded: Column; packets: Column };
  /** In the order in which they were sent. */
  messages: Message[];
  stages: Stage[];
  handoffs: Handoff[];
  firstStation: number;
  complete: boolean;
}

export function readRoaming(index: RoamingIndex): Roaming {
  const { cells, reached, served, signal, beacons, ways } = index;
  const decibels = (values: Column) => values.map((value) => value / 100);
  return {
    cells,
    lanes: ["home agent", ...cells.map((cell) => `station ${cell}`), "mobile host"],
    reached: { cell: column(reached.cell), from: column(reached.from), until: column(reached.until) },
    served: served.map(({ at, cell }) => ({ at: column(at), cell: column(cell) })),
    signal: { at: column(signal.at), of: signal.of.map((blob) => decibels(column(blob))) },
    beacons: { at: column(beacons.at), cell: column(beacons.cell), taken: column(beacons.taken) },
    ways: {
      cell: column(ways.cell),
      forwarded: column(ways.forwarded),
      packets: column(ways.packets),
      from: column(ways.from),
      until: column(ways.until),
    },
    messages: readMessages(index),
    stages: readStages(index),
    handoffs: readHandoffs(index),
    firstStation: index.first_station,
    complete: index.complete,
  };
}

const ADVERTISEMENT = "agent advertisement";

function readMessages({ messages }: RoamingIndex): Message[] {
  const [sent, ended, from, to, label, lost] = [
    messages.sent, messages.ended, messages.from, messages.to, messages.label, messages.lost,
  ].map(column) as [Column, Column, Column, Column, Column, Column];
  const read = Array.from(sent, (at, i) => ({
    sent: at,
    ended: ended[i] as number,
    from: from[i] as number,
    to: to[i] as number,
    text: messages.labels[label[i] as number] ?? "",
    lost: messages.causes[lost[i] as number] ?? null,
    advertised: messages.labels[label[i] as number] === ADVERTISEMENT,
  }));
  return read.sort((one, other) => one.sent - other.sent);
}

function readStages({ stages }: RoamingIndex): Stage[] {
  const [at, stage, cell] = [column(stages.at), column(stages.stage), column(stages.cell)];
  return Array.from(at, (at, i) => ({
    at,
    name: stages.names[stage[i] as number] ?? "",
    cell: cell[i] as number,
  }));
}

function readHandoffs({ handoffs }: RoamingIndex): Handoff[] {
  const [begin, until] = [column(handoffs.begin), column(handoffs.until)];
  const [from, to] = [column(handoffs.from), column(handoffs.to)];
  return Array.from(begin, (begin, i) => ({
    begin,
    until: until[i] as number,
    from: from[i] as number,
    to: to[i] as number,
  }));
}

/** "cell 0 to 1". */
export function route({ from, to }: Handoff): string {
  const name = (cell: number) => (Number.isNaN(cell) ? "none" : String(cell));
  return `cell ${name(from)} to ${name(to)}`;
}

/**
 * The time of a handoff's messages: from the first that is said of it to its last stage, the crossing
 * with it where that is not far away.
 */
export function exchange({ messages, stages }: Roaming, { begin, until }: Handoff): [number, number] {
  const within = (at: number) => at >= begin && at <= until;
  const said = messages.filter((message) => !message.advertised && within(message.sent)).map(({ sent }) => sent);
  const first = Math.min(...said, ...stages.filter(({ at }) => within(at)).map(({ at }) => at), until);
  const from = first - begin > until - first ? first : begin;
  const margin = Math.max(0.01, 0.12 * (until - from));
  return [from - margin, until + 2 * margin];
}

/** A handoff from before it begins, with what made it. */
export const around = (roaming: Roaming, handoff: Handoff): [number, number] => {
  const [from, until] = exchange(roaming, handoff);
  return [Math.min(from, handoff.begin), until];
};

/** The handoff of a host that begins nearest to a time; null if none begins within 2 s. */
export function nearestHandoff({ handoffs }: Roaming, time: number): Handoff | null {
  let best: Handoff | null = null;
  for (const handoff of handoffs) {
    if (Math.abs(handoff.begin - time) < Math.abs((best?.begin ?? time + 2) - time)) best = handoff;
  }
  return best;
}
