// What a graph shows beside marks: when the link was away or bad, where handoffs begin, and when the
// sender's timer fired.

import { firstAtLeast, type Plane, type Range } from "./draw";
import { exactSeconds, exactSpan } from "./numbers";
import { colour } from "./theme";
import type { Entry } from "./legend";
import type { Handoff } from "./roaming";
import type { Panel, SpanKey } from "./timeline";
import type { Hint } from "./tooltip";

/** Shaded from top to bottom, if shown. */
export type Band = Entry & { key: SpanKey };

/** Where an outage or a fade begins and ends, in pixels; one that did not end lasts to the edge. */
function spanOf(plane: Plane, panel: Panel, key: SpanKey, i: number): Range {
  const { from, until: ends } = panel[key];
  const until = ends[i] as number;
  const right = Number.isNaN(until) ? plane.left + plane.width : until * plane.scaleX + plane.shiftX;
  return [(from[i] as number) * plane.scaleX + plane.shiftX, right];
}

export function paintBands(context: CanvasRenderingContext2D, plane: Plane, panel: Panel, bands: Band[]): void {
  for (const { key, colour: name } of bands.filter(({ shown }) => shown)) {
    context.fillStyle = colour(name);
    for (let i = 0; i < panel[key].from.length; i++) {
      const [left, right] = spanOf(plane, panel, key, i);
      if (right < plane.left || left > plane.left + plane.width) continue;
      context.fillRect(left, plane.top, Math.max(right - left, plane.ratio), plane.height);
    }
  }
  if (panel.roaming) paintHandoffs(context, plane, panel.roaming.handoffs);
}

/** A dashed line where each handoff begins. */
function paintHandoffs(context: CanvasRenderingContext2D, plane: Plane, handoffs: Handoff[]): void {
  context.strokeStyle = colour("handoff");
  context.lineWidth = plane.ratio;
  context.setLineDash([3 * plane.ratio, 3 * plane.ratio]);
  context.beginPath();
  for (const { begin } of handoffs) {
    const x = begin * plane.scaleX + plane.shiftX;
    if (x < plane.left || x > plane.left + plane.width) continue;
    context.moveTo(x, plane.top);
    context.lineTo(x, plane.top + plane.height);
  }
  context.stroke();
  context.setLineDash([]);
}

const TICK_HEIGHT = 14;

/** Ticks with a head, hanging from the top. */
export function paintTimeouts(context: CanvasRenderingContext2D, plane: Plane, { timeouts }: Panel): void {
  context.fillStyle = colour("mark-timeout");
  const { top, ratio } = plane;
  context.beginPath();
  for (const at of timeouts) {
    const x = at * plane.scaleX + plane.shiftX;
    context.rect(x - 0.75 * ratio, top, 1.5 * ratio, TICK_HEIGHT * ratio);
    context.rect(x - 4 * ratio, top, 8 * ratio, 3 * ratio);
  }
  context.fill();
}

export function timeoutHint(plane: Plane, { timeouts }: Panel, x: number): Hint | null {
  const time = (x - plane.shiftX) / plane.scaleX;
  const next = firstAtLeast(timeouts, time);
  const found = [next - 1, next].find((i) => {
    const at = timeouts[i];
    return at !== undefined && Math.abs(at * plane.scaleX + plane.shiftX - x) < 5 * plane.ratio;
  });
  if (found === undefined) return null;
  const at = exactSeconds(timeouts[found] as number);
  return { title: "timeout", colour: "mark-timeout", rows: [["at", at]] };
}

/** The span at a place; of several the one that is painted last. */
export function bandHint(plane: Plane, panel: Panel, x: number, bands: Band[]): Hint | null {
  let hint: Hint | null = null;
  for (const { key, name, colour } of bands.filter(({ shown }) => shown)) {
    const { from, until } = panel[key];
    for (let i = 0; i < from.length; i++) {
      const [left, right] = spanOf(plane, panel, key, i);
      if (x < left || x > right) continue;
      const [begin, end] = [from[i] as number, until[i] as number];
      const rows: Hint["rows"] = [["from", exactSeconds(begin)]];
      if (Number.isNaN(end)) rows.push(["until", "the end of the run"]);
      else rows.push(["until", exactSeconds(end)], ["lasted", exactSpan(end - begin)]);
      hint = { title: name.replace(/s$/, ""), colour, rows };
    }
  }
  return hint;
}
