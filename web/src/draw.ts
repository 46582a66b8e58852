// The plotting core: what a million points look like on a few hundred pixels, in one pass over
// those in sight. Points that fall on the same cell are drawn once; a line keeps, per column of
// pixels, its first, lowest, highest and last value. Nothing that could be seen is left out.

import type { Column } from "./data";
import { addMark, isOpen, type Shape } from "./shapes";

/** From values to device pixels: `pixel = value * scale + shift`. */
export interface Plane {
  left: number;
  top: number;
  width: number;
  height: number;
  scaleX: number;
  shiftX: number;
  scaleY: number;
  shiftY: number;
  /** Device pixels per CSS pixel. */
  ratio: number;
}

/** A span of values, lower end first. */
export type Range = readonly [number, number];

/** The first index whose value is at least `value`; the column ascends. */
export function firstAtLeast(values: Column, value: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The indices of the values in a range, the end excluded. */
export function within(values: Column, [from, until]: Range): [number, number] {
  const start = firstAtLeast(values, from);
  let end = firstAtLeast(values, until);
  while (end < values.length && values[end] === until) end++;
  return [start, end];
}

/** Values of a long column are also known by blocks: what lies on one pixel is passed over at once. */
const BLOCK = 64;

interface Blocks {
  low: Float64Array;
  high: Float64Array;
}

const blocksOf = new WeakMap<Column, Blocks>();

/** The lowest and highest value of each whole block; NaN where one is missing. */
function blocks(values: Column): Blocks {
  let known = blocksOf.get(values);
  if (known) return known;
  const count = Math.floor(values.length / BLOCK);
  known = { low: new Float64Array(count), high: new Float64Array(count) };
  for (let block = 0; block < count; block++) {
    let low = Number.POSITIVE_INFINITY;
    let high = Number.NEGATIVE_INFINITY;
    for (let i = block * BLOCK; i < (block + 1) * BLOCK; i++) {
      const value = values[i] as number;
      low = value < low || value !== value ? value : low;
      high = value > high || value !== value ? value : high;
      if (value !== value) break;
    }
    known.low[block] = low;
    known.high[block] = high;
  }
  blocksOf.set(values, known);
  return known;
}

/** The lowest and highest of the values in an index range; null if there are none. */
export function extent(values: Column, start: number, end: number): Range | null {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  const known = blocks(values);
  for (let i = start; i < end; i++) {
    if (i % BLOCK === 0 && i + BLOCK <= end && known.low[i / BLOCK] === known.low[i / BLOCK]) {
      low = Math.min(low, known.low[i / BLOCK] as number);
      high = Math.max(high, known.high[i / BLOCK] as number);
      i += BLOCK - 1;
      continue;
    }
    const value = values[i] as number;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : null;
}

let cells = new Uint8Array(0);

/** Marks for the points `start` up to `end`, at most one for each cell of pixels. */
export function scatter(
  context: CanvasRenderingContext2D, plane: Plane,
  xs: Column, ys: Column, [start, end]: readonly [number, number],
  shape: Shape, radius: number,
): void {
  // Marks closer than a third of their size cannot be told apart.
  const cell = Math.max(1, Math.floor((radius * 2) / 3));
  const reach = Math.ceil(radius);
  const columns = Math.ceil((plane.width + 2 * reach) / cell) + 1;
  const rows = Math.ceil((plane.height + 2 * reach) / cell) + 1;
  if (cells.length < columns * rows) cells = new Uint8Array(columns * rows);
  else cells.fill(0, 0, columns * rows);
  const left = plane.left - reach;
  const top = plane.top - reach;
  const { scaleX, shiftX, scaleY, shiftY } = plane;
  const known = blocks(ys);

  context.beginPath();
  for (let i = start; i < end; i++) {
    if (i % BLOCK === 0 && i + BLOCK <= end) {
      const lastAcross = (((xs[i + BLOCK - 1] as number) * scaleX + shiftX - left) / cell) | 0;
      const firstAcross = (((xs[i] as number) * scaleX + shiftX - left) / cell) | 0;
      const lowest = (((known.low[i / BLOCK] as number) * scaleY + shiftY - top) / cell) | 0;
      const highest = (((known.high[i / BLOCK] as number) * scaleY + shiftY - top) / cell) | 0;
      // All of the block falls on one cell, and something is there already.
      if (firstAcross === lastAcross && lowest === highest && cells[lowest * columns + firstAcross] === 1) {
        i += BLOCK - 1;
        continue;
      }
    }
    const x = (xs[i] as number) * scaleX + shiftX;
    const y = (ys[i] as number) * scaleY + shiftY;
    const across = ((x - left) / cell) | 0;
    const down = ((y - top) / cell) | 0;
    if (across < 0 || across >= columns || down < 0 || down >= rows) continue;
    const place = down * columns + across;
    if (cells[place] !== 0) continue;
    cells[place] = 1;
    if (shape === "dot") context.rect(x - radius, y - radius, 2 * radius, 2 * radius);
    else addMark(context, shape, radius, x, y);
  }
  if (isOpen(shape)) context.stroke();
  else context.fill();
}

/** How a line goes from one value to the next. */
export type Course = "step" | "straight";

/** Strokes a line through the points `start` up to `end`; NaN interrupts it. */
export function line(
  context: CanvasRenderingContext2D, plane: Plane,
  xs: Column, ys: Column, [start, end]: readonly [number, number], course: Course,
): void {
  const { scaleX, shiftX, scaleY, shiftY } = plane;
  let pen = false;
  let pixel = Number.NaN;
  let low = 0;
  let high = 0;
  let last = 0;
  const leave = () => {
    if (low < high) {
      context.lineTo(pixel + 0.5, low);
      context.lineTo(pixel + 0.5, high);
      context.lineTo(pixel + 0.5, last);
    }
  };
  const known = blocks(ys);
  context.beginPath();
  for (let i = start; i < end; i++) {
    const block = i % BLOCK === 0 && i + BLOCK <= end ? i / BLOCK : -1;
    if (pen && block >= 0 && Math.floor((xs[i + BLOCK - 1] as number) * scaleX + shiftX) === pixel) {
      const [one, other] = [known.low[block] as number, known.high[block] as number];
      if (one === one) {
        // The axis points upward, pixels downward.
        low = Math.min(low, other * scaleY + shiftY);
        high = Math.max(high, one * scaleY + shiftY);
        i += BLOCK - 1;
        last = (ys[i] as number) * scaleY + shiftY;
        continue;
      }
    }
    const x = (xs[i] as number) * scaleX + shiftX;
    const y = (ys[i] as number) * scaleY + shiftY;
    if (y !== y) {
      if (pen) leave();
      pen = false;
      continue;
    }
    if (pen && Math.floor(x) === pixel) {
      if (y < low) low = y;
      if (y > high) high = y;
      last = y;
      continue;
    }
    if (!pen) context.moveTo(x, y);
    else {
      leave();
      if (course === "step") context.lineTo(x, last);
      context.lineTo(x, y);
    }
    pen = true;
    pixel = Math.floor(x);
    low = high = last = y;
  }
  if (pen) leave();
  context.stroke();
}

/** The point nearest to a place, among those within reach; null if there is none. */
export function nearest(
  plane: Plane, xs: Column, ys: Column, x: number, y: number, reach: number,
): { index: number; distance: number } | null {
  const { scaleX, shiftX, scaleY, shiftY } = plane;
  const around: Range = [(x - reach - shiftX) / scaleX, (x + reach - shiftX) / scaleX];
  const [start, end] = within(xs, around);
  let best: { index: number; distance: number } | null = null;
  for (let i = start; i < end; i++) {
    const dx = (xs[i] as number) * scaleX + shiftX - x;
    const dy = (ys[i] as number) * scaleY + shiftY - y;
    const distance = Math.hypot(dx, dy);
    if (distance <= (best?.distance ?? reach)) best = { index: i, distance };
  }
  return best;
}
