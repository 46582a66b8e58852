// Values of several series against one parameter, with their intervals.

import { Board, BoundedLink, Link } from "./board";
import { column, type AxisIndex, type Column, type LinesIndex, type SeriesIndex } from "./data";
import { extent, line, nearest, scatter, within, type Plane, type Range } from "./draw";
import { saveButton } from "./export";
import { Frame, type Scale } from "./frame";
import { help, legend, type Entry } from "./legend";
import { exactValue, powerOfTen, thousands } from "./numbers";
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
/** More areas than this on each other show nothing any more; the bars remain. */
const AREAS_MAX = 6;

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
  const frame = new Frame(board, {
    holder: section,
    label: `${index.title}: ${index.y.label} against ${index.x.label}`,
    height: 380,
    x: scaleOf(index.x, x),
    y: scaleOf(index.y, y),
    paint: (context, plane) => paint(context, plane, series, x.range, index.x),
    probe: (plane, px, py) => probe(plane, series, index, px, py),
  });
  saveButton(head, index.title, [frame], () => series.filter(({ shown }) => shown));
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
  const unit = axis.unit === "" ? "" : `, ${axis.unit}`;
  const label = axis.label + unit;
  if (axis.scale === "log") return { link, spacing: "log", label: () => label };
  const linear = { link, spacing: "linear" } as const;
  if (axis.scale === "categories") return { ...linear, label: () => label, names: axis.categories };
  const power = () => thousands(Math.max(...link.range.map(Math.abs)));
  const scaled = () => `${axis.label}, ${powerOfTen(power())}${axis.unit && ` ${axis.unit}`}`;
  return {
    ...linear,
    unit: () => 10 ** power(),
    label: () => (power() === 0 ? label : scaled()),
  };
}

function naturalX({ x: axis }: LinesIndex, series: Series[]): Range {
  if (axis.scale === "categories") return [-0.4, Math.max(1, axis.categories.length) - 0.6];
  const [low, high] = spread(series.map(({ x }) => extent(x, 0, x.length)));
  if (axis.scale === "log") return [10 ** low / 1.2, 10 ** high * 1.2];
  const margin = (high - low) * 0.02;
  return [low - margin, high + margin];
}

function naturalY({ x, y: axis }: LinesIndex, series: Series[], shown: Range): Range {
  const on = onPaper(shown, x);
  const extents = series.filter((item) => item.shown).flatMap((item) => {
    const inSight = within(item.x, on);
    return [item.y, item.low, item.high].map((column) => extent(column, ...inSight));
  });
  const [low, high] = spread(extents);
  if (axis.scale === "log") return [10 ** low / 1.2, 10 ** high * 1.2];
  const [bottom, top] = [Math.min(0, low), Math.max(0, high)];
  return [bottom * 1.05, top === bottom ? 1 : top * 1.05];
}

/** A range in units of the paper. */
function onPaper(range: Range, { scale }: AxisIndex): Range {
  return scale === "log" ? [Math.log10(range[0]), Math.log10(range[1])] : range;
}

/** The lowest and highest of all; some room around a single value. */
function spread(extents: (Range | null)[]): Range {
  const known = extents.filter((range) => range !== null);
  if (known.length === 0) return [0, 1];
  const low = Math.min(...known.map((range) => range[0]));
  const high = Math.max(...known.map((range) => range[1]));
  return low < high ? [low, high] : [low - Math.abs(low) / 2, high + (Math.abs(high) / 2 || 1)];
}

function paint(
  context: CanvasRenderingContext2D, plane: Plane, series: Series[], shown: Range, axis: AxisIndex,
): void {
  const on = onPaper(shown, axis);
  const visible = series.filter((item) => item.shown);
  const areas = visible.filter(({ shape }) => shape !== null).length <= AREAS_MAX;
  for (const item of visible) {
    const [start, end] = within(item.x, on);
    // One more on each side, so that lines reach the edges.
    const joined = [Math.max(0, start - 1), Math.min(item.x.length, end + 1)] as const;
    const crowded = (end - start) * CROWDED * plane.ratio > plane.width;
    context.strokeStyle = context.fillStyle = colour(item.colour);
    context.setLineDash([]);
    context.lineWidth = 1.2 * plane.ratio;
    if (!crowded && areas) area(context, plane, item, joined);
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

type Span = readonly [number, number];

/** The points of a span whose interval is known, as pixels: across, lower end, upper end. */
function intervals(plane: Plane, item: Series, [start, end]: Span): [number, number, number][] {
  const known: [number, number, number][] = [];
  for (let i = start; i < end; i++) {
    const place = (ys: Column) => (ys[i] as number) * plane.scaleY + plane.shiftY;
    const [low, high] = [place(item.low), place(item.high)];
    if (!Number.isNaN(low) && !Number.isNaN(high)) {
      known.push([(item.x[i] as number) * plane.scaleX + plane.shiftX, low, high]);
    }
  }
  return known;
}

function area(context: CanvasRenderingContext2D, plane: Plane, item: Series, span: Span): void {
  const known = intervals(plane, item, span);
  context.globalAlpha = 0.14;
  context.beginPath();
  for (const [x, , high] of known) context.lineTo(x, high);
  for (const [x, low] of known.toReversed()) context.lineTo(x, low);
  context.fill();
  context.globalAlpha = 1;
}

/** A bar with caps at each point. */
function bars(context: CanvasRenderingContext2D, plane: Plane, item: Series, span: Span): void {
  const cap = 3.5 * plane.ratio;
  context.beginPath();
  for (const [x, low, high] of intervals(plane, item, span)) {
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

function describe(item: Series, i: number, { x: xAxis, y: yAxis, interval }: LinesIndex): Hint {
  const withUnit = (value: number, { unit }: AxisIndex) => `${exactValue(value)}${unit && ` ${unit}`}`;
  const { x, y, low, high } = item.exact;
  const place = x[i] as number;
  const rows: Hint["rows"] = [
    [xAxis.label, xAxis.scale === "categories" ? xAxis.categories[place] ?? "" : withUnit(place, xAxis)],
    [yAxis.label, withUnit(y[i] as number, yAxis)],
  ];
  if (!Number.isNaN(low[i])) {
    rows.push([interval, `${exactValue(low[i] as number)} to ${withUnit(high[i] as number, yAxis)}`]);
  }
  return { title: item.name, colour: item.colour, rows };
}
