// The index of the page's plots and its columns of numbers, as crates/report/src/plot.rs and
// blob.rs write them.

export interface Blob {
  id: number;
  kind: "f64" | "u32";
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

export interface MarksIndex {
  /** Seconds. */
  at: Blob;
  /** Bytes from the start of the stream. */
  offset: Blob;
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
  /** An end that did not come is NaN. */
  outages: { from: Blob; until: Blob };
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

export type Column = Float64Array | Uint32Array;

export function readIndex(): Index {
  return JSON.parse(document.getElementById("plots")?.textContent ?? '{"schemes":[],"plots":[]}');
}

/** Decodes a column. The element keeps its text, so that a saved copy of the page is complete. */
export function column(blob: Blob): Column {
  const text = document.getElementById(`blob-${blob.id}`)?.textContent ?? "";
  const bytes = decode(text);
  return blob.kind === "f64"
    ? new Float64Array(bytes.buffer, 0, blob.length)
    : new Uint32Array(bytes.buffer, 0, blob.length);
}

function decode(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (native) return native(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
