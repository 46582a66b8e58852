// The lower plots of a panel: what waits for the air, what the base station keeps, what the link did.

import type { Board } from "./board";
import { Link } from "./board";
import type { Column } from "./data";
import { extent, firstAtLeast, line, within, type Plane, type Range } from "./draw";
import { Frame, type Scale } from "./frame";
import type { Entry } from "./legend";
import { byteUnit, exactBytes, exactSeconds, grouped } from "./numbers";
import { bandHint, paintBands, type Band } from "./spans";
import { lossName } from "./story";
import { colour } from "./theme";
import type { Panel } from "./timeline";
import type { Hint } from "./tooltip";

export interface Look extends Entry {
  key: "down" | "up";
}

const HEIGHT = 104;

/** Lanes of the link's plot, from below. */
const LANES = ["full", "up", "down"];
const QUEUE_FULL = "queue full";

export class Tracks {
  /** Those in which anything ever waited. */
  readonly queues: Look[];
  private static readonly looks = (): Look[] => [
    { key: "down", name: "queue toward the mobile host", colour: "mark-cwnd", shape: null, line: [], shown: true },
    { key: "up", name: "queue toward the base station", colour: "mark-probe", shape: null, line: [5, 3], shown: true },
  ];
  private readonly waiting: Link;
  private readonly kept: Link;
  private readonly lanes = new Link(() => [-0.6, LANES.length - 0.4]);

  constructor(
    private readonly board: Board,
    private readonly panels: (Panel & Entry)[],
    private readonly times: Link,
    private readonly bands: Band[],
  ) {
    const occurs = ({ key }: Look) => panels.some(({ queues }) => queues[key].at.length > 0);
    this.queues = Tracks.looks().filter(occurs);
    this.waiting = new Link(() => this.waitingInSight());
    this.kept = new Link(() => this.keptInSight());
  }

  /** The plots of one panel; the last of them says the time. */
  add(holder: HTMLElement, title: string, panel: Panel, x: Scale): Frame[] {
    const silent = { ...x, silent: true };
    const paint = (draw: (context: CanvasRenderingContext2D, plane: Plane) => void) =>
      (context: CanvasRenderingContext2D, plane: Plane) => {
        paintBands(context, plane, panel, this.bands);
        draw(context, plane);
      };
    const { queues, cache } = panel;
    return [
      new Frame(this.board, {
        holder,
        label: `${title}: packets that wait for the air against time`,
        height: HEIGHT,
        x: silent,
        y: { link: this.waiting, spacing: "linear", label: () => "queue, packets" },
        paint: paint((context, plane) => this.paintQueues(context, plane, panel)),
        probe: (plane, px) => {
          const [down, up] = [since(queues.down.at, plane, px), since(queues.up.at, plane, px)];
          if (queues.down.at.length + queues.up.at.length === 0) return null;
          const text = (queue: { packets: Column; bytes: Column }, i: number) =>
            i < 0 ? "0" : `${grouped(String(queue.packets[i]))} packets, ${exactBytes(queue.bytes[i] as number)}`;
          const rows: Hint["rows"] = [
            ["toward the mobile host", text(queues.down, down)],
            ["toward the base station", text(queues.up, up)],
          ];
          return { title: "waiting for the air", rows };
        },
      }),
      new Frame(this.board, {
        holder,
        label: `${title}: bytes in the base station's cache against time`,
        height: HEIGHT,
        x: silent,
        y: bytesScale("cache", this.kept),
        paint: paint((context, plane) => this.paintCache(context, plane, panel)),
        probe: (plane, px) => {
          const i = since(cache.at, plane, px);
          if (i < 0) return null;
          const rows: Hint["rows"] = [
            ["since", exactSeconds(cache.at[i] as number)],
            ["kept", exactBytes(cache.bytes[i] as number)],
            ["at most", exactBytes(cache.limit)],
          ];
          return { title: "cache of the base station", rows };
        },
      }),
      new Frame(this.board, {
        holder,
        label: `${title}: outages and fades of the link and packets it lost against time`,
        height: HEIGHT + 16,
        x,
        y: { link: this.lanes, spacing: "linear", label: () => "link, lost", names: LANES },
        paint: paint((context, plane) => this.paintLosses(context, plane, panel)),
        probe: (plane, px, py) => this.probeLosses(plane, panel, px, py),
      }),
    ];
  }

  private paintQueues(context: CanvasRenderingContext2D, plane: Plane, { queues }: Panel): void {
    if (queues.down.at.length + queues.up.at.length === 0) {
      return remark(context, plane, "queues are not seen from outside, or nothing ever waited");
    }
    for (const look of this.queues.filter(({ shown }) => shown)) {
      const { at, packets } = queues[look.key];
      step(context, plane, at, packets, this.times.range, look);
    }
  }

  private paintCache(context: CanvasRenderingContext2D, plane: Plane, panel: Panel): void {
    const { cache, windows, roaming } = panel;
    if (cache.at.length === 0) {
      // Whoever sees no sender's windows looks from outside, into no base station either.
      const inside = windows.at.length > 0;
      const keepsNothing = roaming ? "these base stations have no cache" : "this base station keeps nothing";
      const words = inside ? keepsNothing : "the cache is not seen from outside";
      return remark(context, plane, words);
    }
    const look = { colour: "mark-local", line: [] };
    step(context, plane, cache.at, cache.bytes, this.times.range, look);
  }

  private paintLosses(context: CanvasRenderingContext2D, plane: Plane, { losses }: Panel): void {
    if (losses.at.length === 0) return remark(context, plane, "the radio lost nothing");
    const [start, end] = within(losses.at, this.times.range);
    const half = (0.36 * plane.height) / LANES.length;
    const lastPixel = [-1, -1, -1];
    for (const [lane, name] of (["mark-end-to-end", "mark-lost", "mark-lost"] as const).entries()) {
      context.fillStyle = colour(name);
      context.beginPath();
      for (let i = start; i < end; i++) {
        if (laneOf(losses, i) !== lane) continue;
        const x = Math.round((losses.at[i] as number) * plane.scaleX + plane.shiftX);
        if (x === lastPixel[lane]) continue;
        lastPixel[lane] = x;
        const y = lane * plane.scaleY + plane.shiftY;
        context.rect(x - 0.75 * plane.ratio, y - half, 1.5 * plane.ratio, 2 * half);
      }
      context.fill();
    }
  }

  private probeLosses(plane: Plane, panel: Panel, x: number, y: number): Hint | null {
    const { losses } = panel;
    const lane = Math.round((y - plane.shiftY) / plane.scaleY);
    const reach = 6 * plane.ratio;
    const around: Range = [(x - reach - plane.shiftX) / plane.scaleX, (x + reach - plane.shiftX) / plane.scaleX];
    const [start, end] = within(losses.at, around);
    let best = -1;
    const apart = (i: number) => Math.abs((losses.at[i] as number) * plane.scaleX + plane.shiftX - x);
    for (let i = start; i < end; i++) {
      if (laneOf(losses, i) === lane && (best < 0 || apart(i) < apart(best))) best = i;
    }
    if (best < 0) return bandHint(plane, panel, x, this.bands);
    const way = losses.towardMobile[best] === 1 ? "toward the mobile host" : "toward the base station";
    const rows: Hint["rows"] = [
      ["at", exactSeconds(losses.at[best] as number)],
      ["cause", lossName(losses.causes[losses.cause[best] as number] ?? "")],
      ["on its way", way],
    ];
    return { title: "a packet lost", colour: "mark-lost", rows };
  }

  private waitingInSight(): Range {
    let top = 0;
    for (const { queues } of this.panels.filter(({ shown }) => shown)) {
      for (const look of this.queues.filter(({ shown }) => shown)) {
        const { at, packets } = queues[look.key];
        top = Math.max(top, highest(at, packets, this.times.range));
      }
    }
    return [0, Math.max(4, top * 1.1)];
  }

  private keptInSight(): Range {
    const shown = this.panels.filter(({ shown }) => shown);
    const tops = shown.map(({ cache }) => highest(cache.at, cache.bytes, this.times.range));
    return [0, Math.max(1000, 1.1 * Math.max(0, ...tops))];
  }
}

/** Words in place of a plot. */
export function remark(context: CanvasRenderingContext2D, plane: Plane, text: string): void {
  context.fillStyle = colour("text-muted");
  context.font = `${13 * plane.ratio}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.fillText(text, plane.left + plane.width / 2, plane.top + plane.height / 2);
}

export function bytesScale(label: string, link: Link) {
  const unit = () => byteUnit(Math.max(...link.range.map(Math.abs)));
  return {
    link,
    spacing: "linear",
    label: () => `${label}, ${unit().name}`,
    unit: () => unit().size,
  } as const;
}

/** The changes in a span of time, and the one in force when it begins. */
export function inForce(at: Column, range: Range): [number, number] {
  const [start, end] = within(at, range);
  return [Math.max(0, start - 1), end];
}

const highest = (at: Column, values: Column, range: Range): number =>
  extent(values, ...inForce(at, range))?.[1] ?? 0;

/** The value in force at a place; -1 before the first. */
export const since = (at: Column, plane: Plane, x: number): number =>
  firstAtLeast(at, (x - plane.shiftX) / plane.scaleX) - 1;

function step(
  context: CanvasRenderingContext2D, plane: Plane, at: Column, values: Column, range: Range,
  look: { colour: string; line: number[] | null },
): void {
  const [start, end] = inForce(at, range);
  context.strokeStyle = colour(look.colour);
  context.lineWidth = 1.4 * plane.ratio;
  context.setLineDash((look.line ?? []).map((dash) => dash * plane.ratio));
  line(context, plane, at, values, [start, Math.min(at.length, end + 1)], "step");
  context.setLineDash([]);
}

function laneOf({ causes, cause, towardMobile }: Panel["losses"], i: number): number {
  if (causes[cause[i] as number] === QUEUE_FULL) return 0;
  return towardMobile[i] === 1 ? 2 : 1;
}
