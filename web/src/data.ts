// The index of the page's plots and its columns of numbers, as crates/report/src/plot.rs and
// blob.rs write them.

export interface Blob {
  id: number;
  kind: "f64" | "whole" | "nanos";
  length: number;
}

export interface AxisIndex {
  label: string;
  unit: string;
  scale: "linear" | "log" | "categories";
  categories: string[];
}

export interface SeriesIndex {
  name: string;
  /** Place among the schemes; null for what is only compared with. */
  scheme: number | null;
  x: Blob;
  y: Blob;
  low: Blob;
  high: Blob;
}

export interface LinesIndex {
  kind: "lines";
  title: string;
  x: AxisIndex;
  y: AxisIndex;
  /** What the intervals around points are. */
  interval: string;
  series: SeriesIndex[];
}

export interface SpansIndex {
  /** Seconds. */
  from: Blob;
  /** Seconds; an end that did not come is NaN. */
  until: Blob;
}

export interface MarksIndex {
  /** Seconds. */
  at: Blob;
  /** Bytes from the start of the stream. */
  offset: Blob;
}

export interface QueueIndex {
  at: Blob;
  packets: Blob;
  bytes: Blob;
}

export interface StoryIndex {
  id: Blob;
  parent: Blob;
  /** Places in `causes`. */
  cause: Blob;
  offset: Blob;
  length: Blob;
  causes: string[];
  /** `deed` has places in `deeds`, `text` places in `texts`. */
  steps: { at: Blob; node: Blob; packet: Blob; offset: Blob; deed: Blob; deeds: string[]; text: Blob };
  texts: string[];
  sender: number;
  receiver: number;
  /** False if only what has something to tell was kept. */
  complete: boolean;
}

/** A mobile host among cells; see crates/report/src/roaming.rs. */
export interface RoamingIndex {
  cells: number[];
  reached: SpansIndex & { cell: Blob };
  gaps: SpansIndex;
  served: { at: Blob; cell: Blob }[];
  /** Hundredths of a decibel, a column for each of `cells`. */
  signal: { at: Blob; of: Blob[] };
  beacons: { at: Blob; cell: Blob; taken: Blob };
  ways: SpansIndex & { cell: Blob; forwarded: Blob; packets: Blob };
  /** `from` and `to` are lanes; `label` has places in `labels`, `lost` in `causes`. */
  messages: {
    sent: Blob; ended: Blob; from: Blob; to: Blob; label: Blob; lost: Blob;
    labels: string[]; causes: string[];
  };
  stages: { at: Blob; stage: Blob; cell: Blob; names: string[] };
  handoffs: { begin: Blob; until: Blob; from: Blob; to: Blob };
  /** The machine that is the base station of cell 0. */
  first_station: number;
  complete: boolean;
}

export interface PanelIndex {
  scheme: number;
  name: string;
  data: MarksIndex;
  end_to_end: MarksIndex;
  local: MarksIndex;
  probes: MarksIndex;
  lost: MarksIndex;
  acks: MarksIndex;
  delivered: MarksIndex;
  windows: { at: Blob; cwnd: Blob; ssthresh: Blob; flight: Blob };
  timeouts: Blob;
  outages: SpansIndex;
  fades: SpansIndex;
  queue_down: QueueIndex;
  queue_up: QueueIndex;
  cache: { at: Blob; bytes: Blob; limit: number };
  radio_losses: { at: Blob; toward_mobile: Blob; cause: Blob; causes: string[] };
  story: StoryIndex;
  roaming?: RoamingIndex;
}

export interface SequenceIndex {
  kind: "time-sequence";
  title: string;
  panels: PanelIndex[];
}

export interface Index {
  schemes: string[];
  plots: (LinesIndex | SequenceIndex)[];
}

export type Column = Float64Array;

export function readIndex(): Index {
  return JSON.parse(document.getElementById("plots")?.textContent ?? '{"schemes":[],"plots":[]}');
}

/** Decodes a column. The element keeps its text, so that a saved copy of the page is complete. */
export function column(blob: Blob): Column {
  const text = document.getElementById(`blob-${blob.id}`)?.textContent ?? "";
  const bytes = decode(text);
  if (blob.kind === "f64") return new Float64Array(bytes.buffer, 0, blob.length);
  return differences(bytes, blob.length, blob.kind === "nanos" ? 1e9 : 1);
}

/** Whole numbers from differences, divided; NaN for one that is missing. */
function differences(bytes: Uint8Array, length: number, divisor: number): Column {
  const values = new Float64Array(length);
  let at = 0;
  let previous = 0;
  for (let i = 0; i < length; i++) {
    let byte = bytes[at++] as number;
    let token = byte & 127;
    for (let weight = 128; byte > 127; weight *= 128) {
      byte = bytes[at++] as number;
      token += (byte & 127) * weight;
    }
    if (token === 0) {
      values[i] = Number.NaN;
      continue;
    }
    previous += token % 2 === 1 ? (token - 1) / 2 : -token / 2;
    values[i] = previous / divisor;
  }
  return values;
}

function decode(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (native) return native(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
