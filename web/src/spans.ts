// What a graph shows beside marks: when the link was away, and when the sender's timer fired.

import { firstAtLeast, type Plane, type Range } from "./draw";
import { exactSeconds, exactSpan } from "./numbers";
import { colour } from "./theme";
import type { Panel } from "./timeline";
import type { Hint } from "./tooltip";

/** Where an outage begins and ends, in pixels; one that did not end lasts to the edge. */
function outageSpan(plane: Plane, { outages }: Panel, i: number): Range {
  const until = outages.until[i] as number;
  const right = Number.isNaN(until) ? plane.left + plane.width : until * plane.scaleX + plane.shiftX;
  return [(outages.from[i] as number) * plane.scaleX + plane.shiftX, right];
}

export function paintOutages(context: CanvasRenderingContext2D, plane: Plane, panel: Panel): void {
  context.fillStyle = colour("outage");
  for (let i = 0; i < panel.outages.from.length; i++) {
    const [left, right] = outageSpan(plane, panel, i);
    context.fillRect(left, plane.top, Math.max(right - left, plane.ratio), plane.height);
  }
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

export function outageHint(plane: Plane, panel: Panel, x: number): Hint | null {
  const { from, until } = panel.outages;
  for (let i = 0; i < from.length; i++) {
    const [left, right] = outageSpan(plane, panel, i);
    if (x < left || x > right) continue;
    const [begin, end] = [from[i] as number, until[i] as number];
    const rows: Hint["rows"] = [["from", exactSeconds(begin)]];
    if (Number.isNaN(end)) rows.push(["until", "the end of the run"]);
    else rows.push(["until", exactSeconds(end)], ["lasted", exactSpan(end - begin)]);
    return { title: "outage", colour: "outage", rows };
  }
  return null;
}
