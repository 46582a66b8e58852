// Time-sequence graphs, one panel for each scheme, met by the same channel: which bytes of the
// stream were sent, sent again, lost and acknowledged when; under it the sender's windows, queues,
// the base station's cache and the link (tracks.ts). All panels share the time axis and the scales;
// the story of a mark is told for all of them (storybox.ts).

import { Board, BoundedLink, Link } from "./board";
import { CellTracks } from "./cells";
import type { SequenceIndex } from "./data";
import { extent, line, nearest, scatter, within, type Plane, type Range } from "./draw";
import { saveButton } from "./export";
import { Frame } from "./frame";
import { HandoffBox } from "./handoffs";
import { help, legend, type Entry } from "./legend";
import { exactBytes, exactSeconds } from "./numbers";
import type { Shape } from "./shapes";
import { bandHint, paintBands, paintTimeouts, timeoutHint, type Band } from "./spans";
import { StoryBox } from "./storybox";
import { colour, schemeColour } from "./theme";
import { lastTime, readPanel, summarised, type MarkKey, type Panel, type SpanKey, type WindowKey } from "./timeline";
import type { Hint } from "./tooltip";
import { bytesScale, inForce, remark, since, Tracks } from "./tracks";

interface Kind<Key extends string> extends Entry {
  key: Key;
  /** In CSS pixels. */
  radius: number;
}

/** In the order in which they are painted; what is rare comes last and lies on top. */
const markKinds = (): Kind<MarkKey>[] => [
  kind("delivered", "delivered in order", "mark-delivered", null, [4, 3]),
  kind("acks", "ACKs", "mark-ack", null, []),
  kind("data", "data", "mark-data", "dot", null),
  kind("end_to_end", "end-to-end retransmissions", "mark-end-to-end", "diamond", null),
  kind("local", "local retransmissions", "mark-local", "triangle", null),
  kind("probes", "probes", "mark-probe", "ring", null),
  kind("lost", "losses", "mark-lost", "cross", null),
];

const windowKinds = (): Kind<WindowKey>[] => [
  kind("flight", "in flight", "mark-flight", null, []),
  kind("ssthresh", "ssthresh", "mark-ssthresh", null, [5, 4]),
  kind("cwnd", "cwnd", "mark-cwnd", null, []),
];

function kind<Key extends string>(
  key: Key, name: string, colour: string, shape: Shape | null, dashes: number[] | null,
): Kind<Key> {
  // What the receiver delivered runs along the ACKs: there for who asks.
  const shown = key !== "delivered";
  return { key, name, colour, shape, line: dashes, shown, radius: shape === "dot" ? 1.1 : 4 };
}

const GRAPH_HEIGHT = 300;
const WINDOWS_HEIGHT = 120;

export function drawSequence(section: HTMLElement, index: SequenceIndex): Board {
  return new SequencePlot(section, index).board;
}

class SequencePlot {
  readonly board: Board;
  private readonly panels: (Panel & Entry)[];
  /** The panels' elements, in the same order. */
  private readonly holders: HTMLElement[] = [];
  private readonly kinds: Kind<MarkKey>[];
  private readonly windows = windowKinds();
  private readonly timeouts = kind("timeouts", "timeouts", "mark-timeout", "tee", null);
  private readonly bands: Band[] = [
    kind("fades", "fades", "fade", "band", null),
    kind("outages", "outages", "outage", "band", null),
    kind("gaps", "coverage gaps", "outage", "band", null),
  ];
  private readonly times: Link;
  private readonly offsets: Link;
  private readonly sizes: Link;
  private readonly tracks: Tracks;
  private readonly story: StoryBox;
  /** Only of mobile hosts that change cells. */
  private readonly cells: CellTracks | null;
  private readonly handoffs: HandoffBox | null;

  constructor(section: HTMLElement, private readonly index: SequenceIndex) {
    this.board = new Board(section);
    this.panels = index.panels.map((panel): Panel & Entry => ({
      ...readPanel(panel),
      colour: schemeColour(panel.scheme),
      shape: "square",
      line: null,
      shown: true,
    }));
    const occurs = ({ key }: Kind<MarkKey>) => this.panels.some(({ marks }) => marks[key].at.length > 0);
    this.kinds = markKinds().filter(occurs);
    const end = Math.max(1e-3, ...this.panels.map(lastTime));
    this.times = new BoundedLink(() => [0, end * 1.01]);
    this.offsets = new Link(() => this.offsetsInSight());
    this.sizes = new Link(() => this.sizesInSight());
    this.tracks = new Tracks(this.board, this.panels, this.times, this.bands);
    const roams = this.panels.some(({ roaming }) => roaming !== null);
    this.cells = roams
      ? new CellTracks(this.board, this.panels, this.times, this.bands, (panel, time) => this.handoffs?.openAt(panel, time))
      : null;
    const head = this.addControls(section);
    const grid = document.createElement("div");
    grid.className = "panels";
    section.append(grid);
    for (const panel of this.panels) this.addPanel(grid, panel);
    const verbs = {
      panels: () => this.panels.filter(({ shown }) => shown),
      zoom: (from: number, until: number) => {
        this.times.set([from, until]);
        this.board.changed();
      },
      changed: () => this.board.changed(),
    };
    this.story = new StoryBox(section, { ...verbs, opened: () => this.handoffs?.close() });
    const reveal = (panel: Panel) => this.cells?.reveal(panel);
    this.handoffs = roams
      ? new HandoffBox(section, head, { ...verbs, opened: () => this.story.close(), reveal })
      : null;
    this.board.onReset = () => {
      this.story.close();
      this.handoffs?.close();
    };
  }

  private addControls(section: HTMLElement): HTMLElement {
    const head = document.createElement("div");
    head.className = "controls";
    section.append(head);
    const changed = () => this.board.changed();
    if (this.panels.length > 1) {
      legend(head, "Schemes", this.panels, () => {
        this.panels.forEach((panel, i) => this.holders[i]?.toggleAttribute("hidden", !panel.shown));
        this.story.refresh();
        this.handoffs?.refresh();
        changed();
      });
    }
    const spans = [this.timeouts, ...this.bands];
    const occur = spans.filter(({ key }) => this.panels.some((panel) => occurrences(panel, key) > 0));
    legend(head, "Marks", [...this.kinds, ...occur], changed);
    legend(head, "Windows", this.windows, changed);
    if (this.tracks.queues.length > 0) legend(head, "Queues", this.tracks.queues, changed);
    if (this.cells) legend(head, "Cells", this.cells.looks, changed);
    const handoffs = this.cells ? " In the plots of cells, of the handoff." : "";
    help(head, `Click a mark, or press Enter, for its story.${handoffs}`);
    return head;
  }

  private addPanel(grid: HTMLElement, panel: Panel & Entry): void {
    const holder = document.createElement("div");
    holder.className = "panel";
    this.holders.push(holder);
    const title = document.createElement("h3");
    title.textContent = panel.name;
    title.style.setProperty("--swatch", `var(--${schemeColour(panel.scheme)})`);
    const summary = document.createElement("p");
    summary.textContent = summarised(panel);
    holder.append(title, summary);
    grid.append(holder);
    const heading = `${this.index.title}, ${panel.name}`;
    const x = { link: this.times, spacing: "linear", label: () => "time, s" } as const;
    // The time stands under the lowest plot, once.
    const silent = { ...x, silent: true };
    const frames = [
      ...(this.cells?.add(holder, heading, panel, x) ?? []),
      new Frame(this.board, {
        holder,
        label: `${heading}: stream offset against time`,
        height: GRAPH_HEIGHT,
        x: silent,
        y: bytesScale("stream offset", this.offsets),
        paint: (context, plane) => this.paintGraph(context, plane, panel),
        probe: (plane, px, py) => this.probeGraph(plane, panel, px, py),
        pick: (plane, px, py) => {
          const byte = this.markAt(plane, panel, px, py)?.byte;
          if (byte !== undefined) this.story.show(panel, byte);
        },
        pickAny: () => this.story.showLossAfter(panel, this.times.range[0]),
      }),
      new Frame(this.board, {
        holder,
        label: `${heading}: cwnd, ssthresh and bytes in flight against time`,
        height: WINDOWS_HEIGHT,
        x: silent,
        y: bytesScale("window", this.sizes),
        paint: (context, plane) => this.paintWindows(context, plane, panel),
        probe: (plane, px) => this.probeWindows(plane, panel, px),
      }),
      ...this.tracks.add(holder, heading, panel, x),
    ];
    // Title, summary and plots begin at the same height in neighbouring panels.
    holder.style.gridRow = `span ${frames.length + 2}`;
    const cells = this.cells?.looks ?? [];
    const entries = () => [...cells, ...this.kinds, ...this.windows, ...this.tracks.queues, this.timeouts, ...this.bands];
    saveButton(title, heading, frames, () => entries().filter(({ shown }) => shown));
  }

  /** The offsets that any panel shows in the present span of time. */
  private offsetsInSight(): Range {
    const ranges: Range[] = [];
    for (const panel of this.panels.filter((panel) => panel.shown)) {
      for (const { key } of this.kinds.filter((kind) => kind.shown)) {
        const { at, offset } = panel.marks[key];
        const range = extent(offset, ...within(at, this.times.range));
        if (range) ranges.push(range);
      }
    }
    const low = Math.min(...ranges.map((range) => range[0]));
    const high = Math.max(...ranges.map((range) => range[1]));
    if (!(high > low)) return ranges.length > 0 ? [low - 2000, high + 2000] : [0, 1000];
    const margin = (high - low) * 0.04;
    // A capture may begin far into its stream.
    const fromZero = !this.times.isZoomed && low < 0.5 * high;
    return [fromZero ? 0 : low - margin, high + margin];
  }

  private sizesInSight(): Range {
    let top = 0;
    let threshold = 0;
    for (const { windows } of this.panels.filter((panel) => panel.shown)) {
      const [start, end] = inForce(windows.at, this.times.range);
      for (const { key } of this.windows.filter((kind) => kind.shown)) {
        const high = extent(windows[key], start, end)?.[1] ?? 0;
        if (key === "ssthresh") threshold = Math.max(threshold, high);
        else top = Math.max(top, high);
      }
    }
    // Before the first loss, ssthresh may be anything up to the largest window there is: it would
    // press all else to the ground.
    if (top === 0 || threshold <= 1.5 * top) top = Math.max(top, threshold);
    return [0, Math.max(top * 1.08, 1000)];
  }

  private paintGraph(context: CanvasRenderingContext2D, plane: Plane, panel: Panel): void {
    paintBands(context, plane, panel, this.bands);
    for (const kind of this.kinds.filter((kind) => kind.shown)) {
      const { at, offset } = panel.marks[kind.key];
      const [start, end] = within(at, this.times.range);
      context.strokeStyle = context.fillStyle = colour(kind.colour);
      context.lineWidth = 1.5 * plane.ratio;
      if (kind.line) {
        context.setLineDash(kind.line.map((dash) => dash * plane.ratio));
        line(context, plane, at, offset, [Math.max(0, start - 1), Math.min(at.length, end + 1)], "step");
        context.setLineDash([]);
      } else if (kind.shape) {
        // A dot has room to grow where there are few; other marks shrink where they are many.
        const isDot = kind.shape === "dot";
        const room = plane.width / ((end - start) * plane.ratio);
        const radius = isDot ? (room > 8 ? 2 : kind.radius) : room > 6 ? kind.radius : 0.6 * kind.radius;
        scatter(context, plane, at, offset, [start, end], kind.shape, radius * plane.ratio);
      }
    }
    if (this.timeouts.shown) paintTimeouts(context, plane, panel);
    this.paintStory(context, plane);
  }

  /** Where the bytes lie whose story is told. */
  private paintStory(context: CanvasRenderingContext2D, plane: Plane): void {
    const { tale } = this.story;
    if (!tale) return;
    const [top, bottom] = [tale.end, tale.start].map((offset) => offset * plane.scaleY + plane.shiftY);
    const height = Math.max(2 * plane.ratio, (bottom as number) - (top as number));
    context.fillStyle = colour("accent");
    context.globalAlpha = 0.3;
    context.fillRect(plane.left, (top as number) - plane.ratio, plane.width, height);
    context.globalAlpha = 1;
  }

  private paintWindows(context: CanvasRenderingContext2D, plane: Plane, panel: Panel): void {
    paintBands(context, plane, panel, this.bands);
    const { at } = panel.windows;
    if (at.length === 0) return remark(context, plane, "the sender's windows are not seen from outside");
    const [start, end] = inForce(at, this.times.range);
    for (const kind of this.windows.filter((kind) => kind.shown)) {
      context.strokeStyle = colour(kind.colour);
      context.lineWidth = (kind.key === "flight" ? 1 : 1.6) * plane.ratio;
      context.setLineDash((kind.line ?? []).map((dash) => dash * plane.ratio));
      line(context, plane, at, panel.windows[kind.key], [start, Math.min(at.length, end + 1)], "step");
    }
    context.setLineDash([]);
    if (this.timeouts.shown) paintTimeouts(context, plane, panel);
  }

  private probeGraph(plane: Plane, panel: Panel, x: number, y: number): Hint | null {
    const hint = this.markAt(plane, panel, x, y)?.hint ?? null;
    const timeout = hint ?? (this.timeouts.shown ? timeoutHint(plane, panel, x) : null);
    return timeout ?? bandHint(plane, panel, x, this.bands);
  }

  /** The mark at a place, and the last byte it is about. */
  private markAt(plane: Plane, panel: Panel, x: number, y: number): { byte: number; hint: Hint } | null {
    let reach = 16 * plane.ratio;
    let mark: { byte: number; hint: Hint } | null = null;
    for (const kind of this.kinds.filter((kind) => kind.shown)) {
      const { at, offset } = panel.marks[kind.key];
      const found = nearest(plane, at, offset, x, y, reach);
      if (!found) continue;
      reach = found.distance;
      const upTo = offset[found.index] as number;
      const rows: Hint["rows"] = [
        ["at", exactSeconds(at[found.index] as number)],
        ["up to byte", exactBytes(upTo)],
      ];
      mark = { byte: Math.max(0, upTo - 1), hint: { title: kind.name, colour: kind.colour, rows } };
    }
    return mark;
  }

  private probeWindows(plane: Plane, panel: Panel, x: number): Hint | null {
    const { windows } = panel;
    const i = since(windows.at, plane, x);
    if (i < 0) return null;
    return {
      title: "windows",
      rows: [
        ["since", exactSeconds(windows.at[i] as number)],
        ["cwnd", exactBytes(windows.cwnd[i] as number)],
        ["ssthresh", exactBytes(windows.ssthresh[i] as number)],
        ["in flight", exactBytes(windows.flight[i] as number)],
      ],
    };
  }
}

const occurrences = (panel: Panel, key: "timeouts" | SpanKey): number =>
  key === "timeouts" ? panel.timeouts.length : panel[key].from.length;
