// The plots of a mobile host among cells: which cell serves each host, which reach the first one,
// how strongly, whose beacons it hears, which way its data goes, and the messages between machines.

import type { Board } from "./board";
import { Link } from "./board";
import { firstAtLeast, line, within, type Plane, type Range } from "./draw";
import { Frame, type Scale } from "./frame";
import { drawLadder, messageAt, messageHint } from "./ladder";
import type { Entry } from "./legend";
import { exactSeconds, exactSpan, grouped } from "./numbers";
import type { Roaming } from "./roaming";
import { bandHint, paintBands, type Band } from "./spans";
import { colour } from "./theme";
import type { Panel, Spans } from "./timeline";
import type { Hint } from "./tooltip";
import { inForce } from "./tracks";

type Key = "reached" | "serves" | "home" | "forwarded" | "beacons" | "messages";

interface Look extends Entry {
  key: Key;
}

/** Colours of cells; beyond them, dashes tell cells of one colour apart. */
const CELL_COLOURS = 6;
const DASHES = [[], [6, 3], [2, 2]];

const cellColour = (place: number): string => `cell-${place % CELL_COLOURS}`;

/** Room for a lane, and for all of them, in CSS pixels. */
const LANE = 34;
const LANES_MAX = 240;
const AXIS = 22;
const SIGNAL_HEIGHT = 96;
const RUNG = 38;
const LADDER_MAX = 300;

export class CellTracks {
  readonly looks: Look[] = [
    { key: "reached", name: "cell reaches the host", colour: "reach", shape: "band", line: null, shown: true },
    { key: "serves", name: "cell serves it", colour: "cell-0", shape: "square", line: null, shown: true },
    { key: "home", name: "data from the home agent", colour: "mark-cwnd", shape: null, line: [], shown: true },
    { key: "forwarded", name: "data from another station", colour: "mark-probe", shape: null, line: [4, 2], shown: true },
    { key: "beacons", name: "beacons", colour: "mark-data", shape: "tee", line: null, shown: true },
    { key: "messages", name: "messages", colour: "mark-local", shape: "circle", line: [], shown: true },
  ];
  private readonly lanes: Link;
  private readonly hosts: Link;
  private readonly rungs: Link;
  private readonly decibels: Link;
  /** The plot of messages of each panel. */
  private readonly ladders = new Map<Panel, Frame>();
  private readonly most: { cells: number; hosts: number };

  constructor(
    private readonly board: Board,
    panels: Panel[],
    private readonly times: Link,
    private readonly bands: Band[],
    private readonly open: (panel: Panel, time: number) => void,
  ) {
    const all = panels.flatMap(({ roaming }) => roaming ?? []);
    this.most = {
      cells: Math.max(1, ...all.map(({ cells }) => cells.length)),
      hosts: Math.max(1, ...all.map(({ served }) => served.length)),
    };
    const signals = all.flatMap(({ signal }) => signal.of).flatMap((values) => Array.from(values));
    const top = signals.reduce((most, value) => (value > most ? value : most), 10);
    this.lanes = new Link(() => [-0.5, this.most.cells - 0.5]);
    this.hosts = new Link(() => [-0.5, this.most.hosts - 0.5]);
    this.rungs = new Link(() => [-0.6, this.most.cells + 1.6]);
    this.decibels = new Link(() => [0, top * 1.08]);
  }

  /** Brings a panel's plot of messages into the window. */
  reveal(panel: Panel): void {
    this.ladders.get(panel)?.reveal();
  }

  /** The plots of one panel; that of the messages says the time. */
  add(holder: HTMLElement, title: string, panel: Panel, x: Scale): Frame[] {
    const { roaming } = panel;
    if (!roaming) return [];
    const names = (all: string[]): string[] => {
      const step = Math.ceil((all.length * 13) / LANES_MAX);
      return all.map((name, i) => (i % step === 0 ? name : "")).reverse();
    };
    const numbered = roaming.served.map((_, i) => `host ${i + 1}`);
    const frame = (
      label: string, height: number, y: Scale,
      draw: (context: CanvasRenderingContext2D, plane: Plane) => void,
      probe: (plane: Plane, px: number, py: number) => Hint | null,
      time: Scale = { ...x, silent: true },
    ) =>
      new Frame(this.board, {
        holder,
        label: `${title}: ${label} against time`,
        height,
        x: time,
        y,
        paint: (context, plane) => {
          paintBands(context, plane, panel, this.bands);
          draw(context, plane);
        },
        probe: (plane, px, py) => probe(plane, px, py) ?? bandHint(plane, panel, px, this.bands),
        pick: (plane, px) => this.open(panel, (px - plane.shiftX) / plane.scaleX),
        pickAny: () => this.open(panel, this.times.range[0]),
      });
    const lane = (link: Link, label: string, all: string[]): Scale =>
      ({ link, spacing: "linear", label: () => label, names: names(all) });
    const height = (count: number, room: number, most: number) => Math.min(most, count * room) + AXIS;
    const hosts = this.most.hosts === 1 ? [] : [
      frame(
        "the cell that serves each mobile host",
        height(this.most.hosts, 20, LANES_MAX),
        lane(this.hosts, "cell of", numbered),
        (context, plane) => this.paintHosts(context, plane, roaming),
        (plane, px, py) => this.probeHosts(plane, roaming, px, py),
      ),
    ];
    const frames = [
      ...hosts,
      frame(
        "cells that reach and serve the mobile host, beacons and data toward it",
        height(this.most.cells, LANE, LANES_MAX),
        lane(this.lanes, "cells", roaming.cells.map((cell) => `cell ${cell}`)),
        (context, plane) => this.paintCells(context, plane, roaming),
        (plane, px, py) => this.probeCells(plane, roaming, px, py),
      ),
      frame(
        "signal of the cells", SIGNAL_HEIGHT,
        { link: this.decibels, spacing: "linear", label: () => "signal, dB" },
        (context, plane) => this.paintSignal(context, plane, roaming),
        (plane, px) => probeSignal(plane, roaming, px),
      ),
      frame(
        "messages between the machines",
        height(this.most.cells + 2, RUNG, LADDER_MAX) + AXIS,
        lane(this.rungs, "messages", roaming.lanes),
        (context, plane) => {
          if (this.shows("messages")) drawLadder(context, plane, roaming, this.times.range);
        },
        (plane, px, py) => {
          const found = this.shows("messages") ? messageAt(plane, roaming, px, py) : null;
          return found && messageHint(found, roaming);
        },
        x,
      ),
    ];
    this.ladders.set(panel, frames[frames.length - 1] as Frame);
    return frames;
  }

  private shows(key: Key): boolean {
    return this.looks.some((look) => look.key === key && look.shown);
  }

  private paintCells(context: CanvasRenderingContext2D, plane: Plane, roaming: Roaming): void {
    const { cells, reached, ways, beacons } = roaming;
    const place = new Map(cells.map((cell, i) => [cell, i]));
    const unit = -plane.scaleY;
    // From the top of a lane: what serves, what comes by wire, what is heard.
    const part = (cell: number, from: number, until: number): Range => {
      const top = (cells.length - 1 - (place.get(cell) ?? 0)) * plane.scaleY + plane.shiftY - 0.46 * unit;
      return [top + from * 0.92 * unit, top + until * 0.92 * unit];
    };
    const fill = (name: string, spans: Spans, i: number, [top, bottom]: Range) => {
      const [left, right] = pixels(plane, spans, i);
      if (right < plane.left || left > plane.left + plane.width) return;
      context.fillStyle = colour(name);
      context.fillRect(left, top, Math.max(right - left, 1.5 * plane.ratio), bottom - top);
    };
    if (this.shows("reached")) {
      for (let i = 0; i < reached.from.length; i++) fill("reach", reached, i, part(reached.cell[i] as number, 0, 1));
    }
    if (this.shows("serves")) {
      const serving = servingSpans(roaming);
      for (let i = 0; i < serving.from.length; i++) {
        const cell = serving.cell[i] as number;
        if (place.has(cell)) fill(cellColour(place.get(cell) ?? 0), serving, i, part(cell, 0, 0.42));
      }
    }
    for (let i = 0; i < ways.from.length; i++) {
      const forwarded = ways.forwarded[i] === 1;
      if (!this.shows(forwarded ? "forwarded" : "home")) continue;
      const [from, until] = forwarded ? [0.64, 0.76] : [0.48, 0.6];
      fill(forwarded ? "mark-probe" : "mark-cwnd", ways, i, part(ways.cell[i] as number, from, until));
    }
    if (!this.shows("beacons")) return;
    const [start, end] = within(beacons.at, this.times.range);
    for (let i = start; i < end; i++) {
      const x = (beacons.at[i] as number) * plane.scaleX + plane.shiftX;
      const taken = beacons.taken[i] === 1;
      const [top, bottom] = part(beacons.cell[i] as number, taken ? 0.8 : 0.88, 1);
      context.fillStyle = colour(taken ? "mark-data" : "mark-flight");
      context.fillRect(x - 0.75 * plane.ratio, top, 1.5 * plane.ratio, bottom - top);
    }
  }

  private probeCells(plane: Plane, roaming: Roaming, x: number, y: number): Hint | null {
    const { cells, reached, ways, beacons, served } = roaming;
    const lane = cells.length - 1 - Math.round((y - plane.shiftY) / plane.scaleY);
    const cell = cells[lane];
    if (cell === undefined) return null;
    const time = (x - plane.shiftX) / plane.scaleX;
    const rows: Hint["rows"] = [];
    const near = firstAtLeast(beacons.at, time - (5 * plane.ratio) / plane.scaleX);
    const at = beacons.at[near] ?? Number.NaN;
    if (Math.abs(at - time) * plane.scaleX < 5 * plane.ratio && beacons.cell[near] === cell) {
      rows.push(["beacon", exactSeconds(at)]);
      if (beacons.taken[near] === 0) rows.push(["", "not listened to: the clock says where the host goes"]);
    }
    const holds = (spans: Spans & { cell: ArrayLike<number> }, i: number) =>
      spans.cell[i] === cell && (spans.from[i] as number) <= time && time <= (spans.until[i] as number);
    for (let i = 0; i < reached.from.length; i++) {
      if (holds(reached, i)) rows.push(["reaches the host", spanText(reached, i)]);
    }
    if (servingCell(served[0], time) === cell) rows.push(["serves it", "its packets leave over this cell"]);
    for (let i = 0; i < ways.from.length; i++) {
      if (!holds(ways, i)) continue;
      const from = ways.forwarded[i] === 1 ? "from another station" : "from the home agent";
      rows.push([from, `${grouped(String(ways.packets[i]))} packets`]);
    }
    return rows.length > 0 ? { title: `cell ${cell}`, colour: cellColour(lane), rows } : null;
  }

  private paintSignal(context: CanvasRenderingContext2D, plane: Plane, { cells, signal }: Roaming): void {
    const [start, end] = inForce(signal.at, this.times.range);
    for (let i = 0; i < cells.length; i++) {
      const dashes = DASHES[Math.floor(i / CELL_COLOURS) % DASHES.length] ?? [];
      context.strokeStyle = context.fillStyle = colour(cellColour(i));
      context.lineWidth = 1.5 * plane.ratio;
      context.setLineDash(dashes.map((dash) => dash * plane.ratio));
      const values = signal.of[i] as Float64Array;
      line(context, plane, signal.at, values, [start, Math.min(values.length, end + 1)], "straight");
    }
    context.setLineDash([]);
  }

  private paintHosts(context: CanvasRenderingContext2D, plane: Plane, roaming: Roaming): void {
    const { cells, served } = roaming;
    const half = -0.4 * plane.scaleY;
    context.font = `${11 * plane.ratio}px system-ui, sans-serif`;
    context.textAlign = "center";
    for (const [host, changes] of served.entries()) {
      const y = (served.length - 1 - host) * plane.scaleY + plane.shiftY;
      const spans = spansOf(changes, lastAt(roaming));
      for (let i = 0; i < spans.from.length; i++) {
        const [left, right] = pixels(plane, spans, i).map((x) =>
          Math.min(Math.max(x, plane.left), plane.left + plane.width)) as [number, number];
        if (right - left < plane.ratio) continue;
        const cell = spans.cell[i] as number;
        context.fillStyle = colour(cellColour(Math.max(0, cells.indexOf(cell))));
        context.fillRect(left, y - half, right - left - plane.ratio, 2 * half);
        if (right - left < 26 * plane.ratio) continue;
        context.fillStyle = colour("background");
        context.fillText(String(cell), (left + right) / 2, y + 4 * plane.ratio);
      }
    }
  }

  private probeHosts(plane: Plane, { served }: Roaming, x: number, y: number): Hint | null {
    const host = served.length - 1 - Math.round((y - plane.shiftY) / plane.scaleY);
    const time = (x - plane.shiftX) / plane.scaleX;
    const cell = servingCell(served[host], time);
    if (cell === null) return null;
    return { title: `host ${host + 1}`, rows: [["served by", `cell ${cell}`]] };
  }
}

function probeSignal(plane: Plane, { cells, signal }: Roaming, x: number): Hint | null {
  const i = firstAtLeast(signal.at, (x - plane.shiftX) / plane.scaleX) - 1;
  if (i < 0) return null;
  const rows: Hint["rows"] = [["at", exactSeconds(signal.at[i] as number)]];
  for (const [place, values] of signal.of.entries()) {
    const value = values[i] as number;
    if (!Number.isNaN(value)) rows.push([`cell ${cells[place]}`, `${value.toFixed(1)} dB`]);
  }
  if (rows.length === 1) rows.push(["", "no cell reaches the host"]);
  return { title: "signal to noise", rows };
}

const pixels = (plane: Plane, { from, until }: Spans, i: number): [number, number] =>
  [(from[i] as number) * plane.scaleX + plane.shiftX, (until[i] as number) * plane.scaleX + plane.shiftX];

const spanText = ({ from, until }: Spans, i: number): string =>
  `for ${exactSpan((until[i] as number) - (from[i] as number))}`;

/** The end of what is known of the movement. */
const lastAt = ({ reached, signal }: Roaming): number =>
  Math.max(0, signal.at[signal.at.length - 1] ?? 0, reached.until.reduce((most, at) => Math.max(most, at), 0));

/** When the first host is served by which cell. */
const servingSpans = (roaming: Roaming) => spansOf(roaming.served[0], lastAt(roaming));

function spansOf(changes: Roaming["served"][number] | undefined, end: number) {
  const [from, until, cell]: [number[], number[], number[]] = [[], [], []];
  for (let i = 0; i < (changes?.at.length ?? 0); i++) {
    const now = changes?.cell[i] as number;
    if (Number.isNaN(now)) continue;
    from.push(changes?.at[i] as number);
    until.push(changes?.at[i + 1] ?? end);
    cell.push(now);
  }
  return { from: Float64Array.from(from), until: Float64Array.from(until), cell };
}

function servingCell(changes: Roaming["served"][number] | undefined, time: number): number | null {
  if (!changes) return null;
  const i = firstAtLeast(changes.at, time) - 1;
  const cell = changes.cell[i];
  return cell === undefined || Number.isNaN(cell) ? null : cell;
}

