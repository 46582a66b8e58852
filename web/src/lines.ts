// Values of several series against one parameter, with their intervals.

import { Board, BoundedLink, Link } from "./board";
import { column, type AxisIndex, type Column, type LinesIndex, type SeriesIndex } from "./data";
import { line, nearest, scatter, within, type Plane, type Range } from "./draw";
import { Frame, type Scale } from "./frame";
import { help, legend, type Entry } from "./legend";
import { exactValue } from "./numbers";
import type { Shape } from "./shapes";
import { colour, schemeColour } from "./theme";
import type { Hint } from "./tooltip";

/** Marks of the schemes, by their place. */
const SHAPES: Shape[] = ["circle", "triangle", "square", "diamond", "wedge"];
/** Several series of one scheme differ in their dashes. */
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];
const REFERENCE_DASH = [5, 4];
/** Points closer than this, in CSS pixels, get no marks and bars of their own. */
const CROWDED = 6;

interface Series extends Entry {
  /** On the paper: logarithms where the axis is logarithmic. */
  x: Column;
  y: Column;
  low: Column;
  high: Column;
  /** As they came. */
  exact: { x: Column; y: Column; low: Column; high: Column };
}

export function drawLines(section: HTMLElement, index: LinesIndex): Board {
  const series = read(index);
  const board = new Board(section);
  const head = document.createElement("div");
  head.className = "controls";
  section.append(head);
  legend(head, "Series", series, () => board.changed());
  help(head);
  const x = new BoundedLink(() => naturalX(index, series));
  const y: Link = new Link(() => naturalY(index, series, x.range));
  board.add(
    new Frame(board, {
      holder: section,
      label: `${index.title}: ${index.y.label} against ${index.x.label}`,
      height: 380,
      x: scaleOf(index.x, x),
      y: scaleOf(index.y, y),
      paint: (context, plane) => paint(context, plane, series, x.range, index.x),
      probe: (plane, px, py) => probe(plane, series, index, px, py),
    }),
  );
  return board;
}

function read(index: LinesIndex): Series[] {
  const seen = new Map<number | null, number>();
  return index.series.map((item: SeriesIndex) => {
    const earlier = seen.get(item.scheme) ?? 0;
    seen.set(item.scheme, earlier + 1);
    const exact = { x: column(item.x), y: column(item.y), low: column(item.low), high: column(item.high) };
    const looks =
      item.scheme === null
        ? { colour: "text-muted", shape: null, line: REFERENCE_DASH }
        : {
            colour: schemeColour(item.scheme),
            shape: SHAPES[item.scheme % SHAPES.length] as Shape,
            line: DASHES[earlier % DASHES.length] as number[],
          };
    return {
      name: item.name,
      shown: true,
      ...looks,
      exact,
      x: placed(exact.x, index.x),
      y: placed(exact.y, index.y),
      low: placed(exact.low, index.y),
      high: placed(exact.high, index.y),
    };
  });
}

function placed(values: Column, axis: AxisIndex): Column {
  if (axis.scale !== "log") return values;
  return Float64Array.from(values, (value) => (value > 0 ? Math.log10(value) : Number.NaN));
}

function scaleOf(axis: AxisIndex, link: Link): Scale {
  const label = axis.unit === "" ? axis.label : `${axis.label}, ${axis.unit}`;
  const scale: Scale = { link, label: () => label, spacing: axis.scale === "log" ? "log" : "linear" };
  return axis.scale === "categories" ? { ...scale, names: axis.categories } : scale;
}

function naturalX({ x: axis }: LinesIndex, series: Series[]): Range {
  if (axis.scale === "categories") return [-0.4, Math.max(1, axis.categories.length) - 0.6];
  const [low, high] = spread(series.flatMap((item) => [...item.exact.x]), axis);
  if (axis.scale === "log") return [low / 1.2, high * 1.2];
  const margin = (high - low) * 0.02;
  return [low - margin, high + margin];
}

function naturalY({ x, y: axis }: LinesIndex, series: Series[], shown: Range): Range {
  const on: Range = x.scale === "log" ? [Math.log10(shown[0]), Math.log10(shown[1])] : shown;
  const values = series.filter((item) => item.shown).flatMap((item) => {
    const [start, end] = within(item.x, on);
    const { y, low, high } = item.exact;
    return [y, low, high].flatMap((column) => [...column.subarray(start, end)]);
  });
  const [low, high] = spread(values, axis);
  if (axis.scale === "log") return [low / 1.2, high * 1.2];
  const [bottom, top] = [Math.min(0, low), Math.max(0, high)];
  return [bottom * 1.05, top === bottom ? 1 : top * 1.05];
}

/** The lowest and highest of the values an axis can show. */
function spread(values: number[], axis: AxisIndex): Range {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    if (!Number.isFinite(value) || (axis.scale === "log" && value <= 0)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return [1, 10];
  return low < high ? [low, high] : [low * 0.5, high === 0 ? 1 : high * 1.5];
}

function paint(
  context: CanvasRenderingContext2D, plane: Plane, series: Series[], shown: Range, axis: AxisIndex,
): void {
  const on: Range = axis.scale === "log" ? [Math.log10(shown[0]), Math.log10(shown[1])] : shown;
  for (const item of series.filter((item) => item.shown)) {
    const [start, end] = within(item.x, on);
    // One more on each side, so that lines reach the edges.
    const joined = [Math.max(0, start - 1), Math.min(item.x.length, end + 1)] as const;
    const crowded = (end - start) * CROWDED * plane.ratio > plane.width;
    context.strokeStyle = context.fillStyle = colour(item.colour);
    context.setLineDash([]);
    context.lineWidth = 1.2 * plane.ratio;
    if (!crowded) bars(context, plane, item, joined);
    context.lineWidth = (item.shape ? 2 : 1.5) * plane.ratio;
    context.setLineDash((item.line ?? []).map((dash) => dash * plane.ratio));
    line(context, plane, item.x, item.y, joined, "straight");
    context.setLineDash([]);
    if (item.shape && !crowded) {
      scatter(context, plane, item.x, item.y, joined, item.shape, 4 * plane.ratio);
    }
  }
}

/** The intervals: an area and, at each point, a bar with caps. */
function bars(
  context: CanvasRenderingContext2D, plane: Plane, item: Series, [start, end]: readonly [number, number],
): void {
  const pixel = (i: number, ys: Column) => [
    (item.x[i] as number) * plane.scaleX + plane.shiftX,
    (ys[i] as number) * plane.scaleY + plane.shiftY,
  ] as const;
  const known: number[] = [];
  for (let i = start; i < end; i++) {
    if (!Number.isNaN(item.low[i]) && !Number.isNaN(item.high[i])) known.push(i);
  }
  context.globalAlpha = 0.14;
  context.beginPath();
  for (const i of known) context.lineTo(...pixel(i, item.high));
  for (const i of known.toReversed()) context.lineTo(...pixel(i, item.low));
  context.fill();
  context.globalAlpha = 1;
  const cap = 3.5 * plane.ratio;
  context.beginPath();
  for (const i of known) {
    const [x, low] = pixel(i, item.low);
    const [, high] = pixel(i, item.high);
    context.moveTo(x, low);
    context.lineTo(x, high);
    for (const y of [low, high]) {
      context.moveTo(x - cap, y);
      context.lineTo(x + cap, y);
    }
  }
  context.stroke();
}

function probe(plane: Plane, series: Series[], index: LinesIndex, x: number, y: number): Hint | null {
  let reach = 24 * plane.ratio;
  let hint: Hint | null = null;
  for (const item of series.filter((item) => item.shown)) {
    const found = nearest(plane, item.x, item.y, x, y, reach);
    if (!found) continue;
    reach = found.distance;
    hint = describe(item, found.index, index);
  }
  return hint;
}

function describe(item: Series, i: number, { x: xAxis, y: yAxis }: LinesIndex): Hint {
  const withUnit = (value: number, { unit }: AxisIndex) => `${exactValue(value)}${unit && ` ${unit}`}`;
  const { x, y, low, high } = item.exact;
  const place = x[i] as number;
  const rows: Hint["rows"] = [
    [xAxis.label, xAxis.scale === "categories" ? xAxis.categories[place] ?? "" : withUnit(place, xAxis)],
    [yAxis.label, withUnit(y[i] as number, yAxis)],
  ];
  if (!Number.isNaN(low[i])) {
    rows.push(["95 % interval", `${exactValue(low[i] as number)} to ${withUnit(high[i] as number, yAxis)}`]);
  }
  return { title: item.name, colour: item.colour, rows };
}
