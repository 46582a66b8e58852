// What one scheme did, decoded: marks, windows, timeouts, outages.

import { column, type Column, type MarksIndex, type PanelIndex } from "./data";
import { grouped } from "./numbers";

export interface Marks {
  at: Column;
  offset: Column;
}

export type MarkKey = "data" | "acks" | "delivered" | "local" | "end_to_end" | "probes" | "lost";
export type WindowKey = "cwnd" | "ssthresh" | "flight";

export interface Panel {
  name: string;
  scheme: number;
  marks: Record<MarkKey, Marks>;
  windows: { at: Column } & Record<WindowKey, Column>;
  timeouts: Column;
  outages: { from: Column; until: Column };
}

export function readPanel(index: PanelIndex): Panel {
  const marks = ({ at, offset }: MarksIndex): Marks => ({ at: column(at), offset: column(offset) });
  const { windows, outages, scheme, name } = index;
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
    outages: { from: column(outages.from), until: column(outages.until) },
  };
}

/** When the last of it happened, in seconds. */
export function lastTime({ marks, windows, timeouts, outages }: Panel): number {
  const columns = [...Object.values(marks).map(({ at }) => at), windows.at, timeouts, outages.from];
  return Math.max(0, ...columns.map((at) => at[at.length - 1] ?? 0));
}

/** What happened in this panel, in one line. */
export function summarised({ marks, timeouts, outages }: Panel): string {
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
  ].join(", ");
}
