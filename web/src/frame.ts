// One plot: uPlot draws the axes, keeps the cursor and the selection; what is plotted is painted by
// whoever made the frame. Drag, wheel, keys and double click change the ranges it shares.

import uPlot from "uplot";
import type { Board, Link } from "./board";
import type { Plane, Range } from "./draw";
import type { SvgContext } from "./export";
import { powers, ticks } from "./numbers";
import { colour } from "./theme";
import { hideTooltip, showTooltip, type Hint } from "./tooltip";

export interface Scale {
  link: Link;
  label: () => string;
  spacing: "linear" | "log";
  /** What one unit of the axis is worth, where it is not 1: ticks are placed on round numbers. */
  unit?: () => number;
  /** Names of places 0, 1, 2 … instead of numbers. */
  names?: string[];
  /** True if another plot, right below, says what this axis measures. */
  silent?: boolean;
}

export interface FrameOptions {
  holder: HTMLElement;
  /** What a reader who cannot see the plot is told. */
  label: string;
  height: number;
  x: Scale;
  y: Scale;
  paint: (context: CanvasRenderingContext2D, plane: Plane) => void;
  /** What is at a place, in device pixels. */
  probe: (plane: Plane, x: number, y: number) => Hint | null;
  /** A click on a place, in device pixels. */
  pick?: (plane: Plane, x: number, y: number) => void;
  /** The same with the keyboard: whatever is worth it in sight. */
  pickAny?: () => void;
}

const FONT = "12px system-ui, sans-serif";
const WHEEL_STEP = 1.25;
/** How long a second click may take to make a double click, as browsers mostly count it. */
const DOUBLE_CLICK_MS = 300;
/** Least width of an upright axis, and least distance of its ticks, in CSS pixels. */
const AXIS_WIDTH = 46;
const AXIS_SPACE = 32;
/** Least distance of the ticks of a level axis. */
const LEVEL_SPACE = 70;

export class Frame {
  private readonly plot: uPlot;
  private readonly element: HTMLElement;
  /** Whether it is in the window or near it, and whether it was painted since it last changed. */
  private inSight = true;
  private painted = false;
  private everPainted = false;

  constructor(private readonly board: Board, private readonly options: FrameOptions) {
    this.element = document.createElement("div");
    this.element.className = "frame";
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "group");
    this.element.setAttribute("aria-label", options.label);
    options.holder.append(this.element);
    this.plot = new uPlot(this.configuration(), [[0, 1], [null, null]], this.element);
    new ResizeObserver(() => this.resize()).observe(this.element);
    const watcher = new IntersectionObserver(
      (entries) => {
        this.inSight = entries[entries.length - 1]?.isIntersecting ?? true;
        if (this.inSight && !this.painted) this.paint();
      },
      { rootMargin: "200px" },
    );
    watcher.observe(this.element);
    addEventListener("beforeprint", () => this.paint());
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.element.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    this.plot.over.addEventListener("mousedown", () => this.element.focus({ preventScroll: true }));
    if (options.pick) this.listenForClicks(options.pick);
    board.add(this, options.x.link, options.y.link);
  }

  /** Room that the upright axis needs for its ticks, in CSS pixels. */
  axisWidth(): number {
    const { link, unit = () => 1, spacing, names } = this.options.y;
    if (names) return Math.max(AXIS_WIDTH, ...names.map((name) => 14 + 6 * name.length));
    if (spacing === "log") return AXIS_WIDTH;
    const [low, high] = link.range;
    const apart = ((high - low) * AXIS_SPACE) / this.options.height;
    const step = STEPS.findLast((step) => step * unit() <= apart) ?? 1;
    const longest = Math.max(...ticks([low / unit(), high / unit()], step).map((text) => text.length));
    return Math.max(AXIS_WIDTH, 12 + 7 * longest);
  }

  /** Paints with the present ranges, colours and data; out of sight, as soon as it is in sight. */
  repaint(): void {
    this.painted = false;
    if (this.inSight || !this.everPainted) this.paint();
    const { x: level, y: upright } = this.options;
    this.element.setAttribute("aria-description", `shows ${spoken(level)}; ${spoken(upright)}`);
  }

  /** Scrolls to it unless it is in the upper part of the window, which no box covers. */
  reveal(): void {
    const { top, bottom } = this.element.getBoundingClientRect();
    if (top < 0 || bottom > 0.6 * innerHeight) this.element.scrollIntoView({ block: "start" });
  }

  private paint(): void {
    const [x, y] = [this.options.x.link.range, this.options.y.link.range];
    this.plot.batch(() => {
      this.plot.setScale("x", { min: x[0], max: x[1] });
      this.plot.setScale("y", { min: y[0], max: y[1] });
      this.plot.redraw(false, true);
    });
    this.painted = this.everPainted = true;
  }

  /** Draws axes and what is plotted at `top` of a drawing; returns how high that is. */
  draft(context: SvgContext, top: number, width: number): number {
    const { x, y, height, paint } = this.options;
    const [left, below] = [this.board.axisWidth + 22, x.silent ? 8 : 44];
    const plane = this.planeAt(left, top + 8, width - left - 12, height - 8 - below, 1);
    const { scaleX, shiftX, scaleY, shiftY } = plane;
    const right = left + plane.width;
    const bottom = plane.top + plane.height;
    context.setLineDash([]);
    context.lineWidth = 1;
    const rule = (x0: number, y0: number, x1: number, y1: number) => {
      context.strokeStyle = colour("grid");
      context.beginPath();
      context.moveTo(x0, y0);
      context.lineTo(x1, y1);
      context.stroke();
    };
    context.fillStyle = colour("text");
    for (const [value, text] of marked(y, plane.height, AXIS_SPACE)) {
      const at = value * scaleY + shiftY;
      rule(left, at, right, at);
      context.textAlign = "right";
      context.fillText(text, left - 6, at + 4);
    }
    for (const [value, text] of marked(x, plane.width, LEVEL_SPACE)) {
      const at = value * scaleX + shiftX;
      rule(at, plane.top, at, bottom);
      context.textAlign = "center";
      if (!x.silent) context.fillText(text, at, bottom + 16);
    }
    context.fillText(y.label(), 14, plane.top + plane.height / 2, true);
    if (!x.silent) context.fillText(x.label(), left + plane.width / 2, bottom + 34);
    context.textAlign = "left";
    context.clipped(plane, () => paint(context as unknown as CanvasRenderingContext2D, plane));
    context.textAlign = "left";
    return height;
  }

  /**
   * A click is a press and a release at one place; a drag is none. What a click opens may cover that
   * place, so that it waits until no second click has come: a double click shows all.
   */
  private listenForClicks(pick: NonNullable<FrameOptions["pick"]>): void {
    let pressed: [number, number] = [0, 0];
    let waiting: number | undefined;
    const { over } = this.plot;
    over.addEventListener("mousedown", ({ clientX, clientY }) => (pressed = [clientX, clientY]));
    over.addEventListener("click", ({ clientX, clientY, detail }) => {
      window.clearTimeout(waiting);
      if (detail > 1 || Math.hypot(clientX - pressed[0], clientY - pressed[1]) > 3) return;
      waiting = window.setTimeout(() => {
        const box = over.getBoundingClientRect();
        const plane = this.plane();
        const place = (client: number, from: number) => (client - from) * plane.ratio;
        pick(plane, plane.left + place(clientX, box.left), plane.top + place(clientY, box.top));
      }, DOUBLE_CLICK_MS);
    });
  }

  private configuration(): uPlot.Options {
    const { x, y, height } = this.options;
    const sync: uPlot.Cursor.Sync = {
      key: `board-${this.board.section.dataset["plot"]}`,
      scales: ["x", null],
      filters: { pub: (type) => type === "mousemove" || type === "mouseleave" },
    };
    return {
      width: this.element.clientWidth || 600,
      height,
      padding: [10, 12, 0, 0],
      legend: { show: false },
      scales: { x: scale(x), y: scale(y) },
      series: [{}, { scale: "y", show: true, points: { show: false }, paths: () => null }],
      axes: [
        { ...axis(x, LEVEL_SPACE), scale: "x" },
        { ...axis(y, AXIS_SPACE), scale: "y", size: () => this.board.axisWidth },
      ],
      cursor: {
        sync,
        points: { show: false },
        drag: { x: true, y: true, uni: 30, dist: 4, setScale: false },
        bind: { dblclick: () => () => (this.board.reset(), null) },
      },
      hooks: {
        draw: [(plot) => this.draw(plot)],
        setSelect: [(plot) => this.onSelect(plot)],
        setCursor: [(plot) => this.onCursor(plot)],
      },
    };
  }

  private draw(plot: uPlot): void {
    const { ctx: context, bbox } = plot;
    context.save();
    context.beginPath();
    context.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    context.clip();
    context.lineJoin = "round";
    this.options.paint(context, this.plane());
    context.restore();
  }

  private plane(): Plane {
    const { left, top, width, height } = this.plot.bbox;
    return this.planeAt(left, top, width, height, devicePixelRatio);
  }

  private planeAt(left: number, top: number, width: number, height: number, ratio: number): Plane {
    const [x0, x1] = placed(this.options.x);
    const [y0, y1] = placed(this.options.y);
    const scaleX = width / (x1 - x0);
    const scaleY = -height / (y1 - y0);
    return {
      left, top, width, height, scaleX, scaleY,
      shiftX: left - x0 * scaleX,
      shiftY: top + height - y0 * scaleY,
      ratio,
    };
  }

  private resize(): void {
    const width = this.element.clientWidth;
    if (width > 0 && width !== this.plot.width) {
      this.plot.setSize({ width, height: this.options.height });
    }
  }

  private onSelect(plot: uPlot): void {
    const { left, top, width, height } = plot.select;
    if (width === 0 && height === 0) return;
    const { x, y } = this.options;
    const over = plot.over;
    if (width > 1 && width < over.clientWidth - 1) {
      x.link.set([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")]);
    }
    if (height > 1 && height < over.clientHeight - 1) {
      y.link.set([plot.posToVal(top + height, "y"), plot.posToVal(top, "y")]);
    }
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.board.changed();
  }

  private onCursor(plot: uPlot): void {
    // A synchronised cursor moves in every frame; only the one under the pointer speaks.
    if (!plot.over.matches(":hover")) return;
    const { left = -1, top = -1 } = plot.cursor;
    if (left < 0) return hideTooltip();
    const plane = this.plane();
    const hint = this.options.probe(plane, plane.left + left * plane.ratio, plane.top + top * plane.ratio);
    if (!hint) return hideTooltip();
    const box = plot.over.getBoundingClientRect();
    showTooltip(hint, box.left + left, box.top + top);
  }

  private onWheel(event: WheelEvent): void {
    const focused = document.activeElement === this.element;
    if (!focused && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = this.plot.over.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    this.zoom(event.deltaY > 0 ? WHEEL_STEP : 1 / WHEEL_STEP, share);
  }

  private onKey(event: KeyboardEvent): void {
    const verbs: Record<string, () => void> = {
      "+": () => this.zoom(1 / 1.5, 0.5),
      "=": () => this.zoom(1 / 1.5, 0.5),
      "-": () => this.zoom(1.5, 0.5),
      "0": () => this.board.reset(),
      Escape: () => this.board.reset(),
      ...(this.options.pickAny ? { Enter: this.options.pickAny } : {}),
      ArrowLeft: () => this.pan(this.options.x, -0.2),
      ArrowRight: () => this.pan(this.options.x, 0.2),
      ArrowUp: () => this.pan(this.options.y, 0.2),
      ArrowDown: () => this.pan(this.options.y, -0.2),
    };
    const verb = event.ctrlKey || event.metaKey || event.altKey ? undefined : verbs[event.key];
    if (!verb) return;
    // Up and down scroll the page as long as there is nothing to move to.
    if (event.key.match(/Arrow(Up|Down)/) && !this.options.y.link.isZoomed) return;
    event.preventDefault();
    verb();
  }

  /** Makes the level range `factor` times as long, around the place at `share` of it. */
  private zoom(factor: number, share: number): void {
    const { x } = this.options;
    const [low, high] = placed(x);
    const fixed = low + (high - low) * share;
    x.link.set(unplaced(x, [fixed - (fixed - low) * factor, fixed + (high - fixed) * factor]));
    this.board.changed();
  }

  private pan(axis: Scale, share: number): void {
    const [low, high] = placed(axis);
    const by = (high - low) * share;
    axis.link.set(unplaced(axis, [low + by, high + by]));
    this.board.changed();
  }
}

/** What an axis shows, for those who cannot see its ticks. */
function spoken({ link, label, names, unit = () => 1 }: Scale): string {
  const [low, high] = link.range;
  const inSight = names?.slice(Math.max(0, Math.ceil(low)), Math.max(0, Math.floor(high) + 1));
  if (inSight?.length === 0) return `${label()} between two places`;
  const ends = inSight
    ? [inSight[0], inSight[inSight.length - 1]]
    : [low, high].map((value) => Number((value / unit()).toPrecision(4)));
  return `${label()} from ${ends.join(" to ")}`;
}

/** A range in units of the paper: logarithms where the axis is logarithmic. */
function placed({ link, spacing }: Scale): Range {
  const [low, high] = link.range;
  return spacing === "log" ? [Math.log10(low), Math.log10(high)] : [low, high];
}

function unplaced({ spacing }: Scale, [low, high]: Range): Range {
  return spacing === "log" ? [10 ** low, 10 ** high] : [low, high];
}

function scale(scale: Scale): uPlot.Scale {
  const distr = scale.spacing === "log" ? 3 : 1;
  return { time: false, distr, range: () => [...scale.link.range] as uPlot.Range.MinMax };
}

function axis(scale: Scale, space: number): uPlot.Axis {
  const { names, unit = () => 1 } = scale;
  const configuration: uPlot.Axis = {
    stroke: () => colour("text-muted"),
    font: FONT,
    labelFont: FONT,
    labelSize: 20,
    ...(scale.silent ? {} : { label: scale.label }),
    size: scale.silent ? 8 : 28,
    space,
    gap: 4,
    grid: { stroke: () => colour("grid"), width: 1 },
    ticks: { stroke: () => colour("grid"), size: 4, width: 1 },
  };
  if (names) {
    const inside = (_: uPlot, __: number, low: number, high: number) =>
      names.map((_, place) => place).filter((place) => place >= low && place <= high);
    return { ...configuration, splits: inside, values: (_, places) => places.map((i) => names[i] ?? "") };
  }
  if (scale.spacing === "log") {
    // Every tick is asked for its text; `powers` leaves out those for which there is no room.
    return { ...configuration, filter: (_, values) => values, values: (_, values) => powers(values) };
  }
  return {
    ...configuration,
    splits: (_plot, _axis, low, high, increment) => rounded(low, high, increment),
    incrs: () => STEPS.map((step) => step * unit()),
    values: (_plot, values, _axis, _space, increment) => {
      if (scale.silent) return values.map(() => "");
      const size = unit();
      return ticks(values.map((value) => value / size), increment / size);
    },
  };
}

/** The places of an axis that have a name, on the paper, and their names. */
function marked(scale: Scale, length: number, space: number): [number, string][] {
  const { names, unit = () => 1, spacing } = scale;
  const [low, high] = placed(scale);
  if (names) {
    const places = names.map((name, place): [number, string] => [place, name]);
    return places.filter(([place]) => place >= low && place <= high);
  }
  if (spacing === "log") {
    const decades = rounded(low, high, 1);
    return powers(decades.map((power) => 10 ** power)).map((text, i) => [decades[i] as number, text]);
  }
  const apart = ((high - low) * space) / length;
  const step = (STEPS.find((step) => step * unit() >= apart) ?? 1) * unit();
  const places = rounded(low, high, step);
  const texts = ticks(places.map((place) => place / unit()), step / unit());
  return places.map((place, i) => [place, texts[i] ?? ""]);
}

/** 1, 2 and 5 times the powers of ten. */
const STEPS = Array.from({ length: 22 }, (_, i) => i - 10).flatMap((power) =>
  [1, 2, 5].map((digit) => Number(`${digit}e${power}`)),
);

function rounded(low: number, high: number, increment: number): number[] {
  const places: number[] = [];
  for (let i = Math.ceil(low / increment - 1e-9); i * increment <= high * (1 + 1e-12); i++) {
    places.push(i * increment);
  }
  return places;
}
