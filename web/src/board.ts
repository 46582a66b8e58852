// What plots in one section have in common: ranges they share, and one repaint for all of them.

import type { Frame } from "./frame";
import type { Range } from "./draw";

/** A range that several plots show: all there is, until somebody zooms. */
export class Link {
  private zoomed: Range | null = null;
  private known: Range | null = null;

  /** `natural` says what all there is, at present. It may look at every point. */
  constructor(private readonly natural: () => Range) {}

  get range(): Range {
    return this.zoomed ?? (this.known ??= this.natural());
  }

  get isZoomed(): boolean {
    return this.zoomed !== null;
  }

  set(range: Range): void {
    const [low, high] = range;
    // Beyond a billionth of its value, a double has too few digits left to place ticks.
    const least = 1e-9 * Math.max(Math.abs(low), Math.abs(high));
    if (Number.isFinite(low) && high - low > least) this.zoomed = [low, high];
  }

  reset(): void {
    this.zoomed = null;
  }

  /** Looks again at what there is. */
  refresh(): void {
    this.known = null;
  }
}

/** A level axis: it never leaves what there is. */
export class BoundedLink extends Link {
  constructor(private readonly bounds: () => Range) {
    super(bounds);
  }

  override set([low, high]: Range): void {
    const [first, last] = this.bounds();
    const span = Math.min(high - low, last - first);
    if (span >= last - first) return this.reset();
    const from = Math.min(Math.max(low, first), last - span);
    super.set([from, from + span]);
  }
}

/** The plots of one section. */
export class Board {
  readonly frames: Frame[] = [];
  /** Width of all upright axes, in CSS pixels: plots one below the other line up. */
  axisWidth = 0;
  private readonly links = new Set<Link>();
  private pending = false;
  /** Called when all is shown again. */
  onReset: () => void = () => {};

  constructor(readonly section: HTMLElement) {}

  add(frame: Frame, ...links: Link[]): void {
    this.frames.push(frame);
    for (const link of links) this.links.add(link);
  }

  reset(): void {
    for (const link of this.links) link.reset();
    this.onReset();
    this.changed();
  }

  /** Repaints soon, once, whatever happens until then. */
  changed(): void {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.repaint();
    });
  }

  private repaint(): void {
    const started = performance.now();
    for (const link of this.links) link.refresh();
    this.axisWidth = Math.max(...this.frames.map((frame) => frame.axisWidth()));
    for (const frame of this.frames) frame.repaint();
    // For whoever watches how long painting takes.
    this.section.dataset["paintMs"] = (performance.now() - started).toFixed(1);
  }
}
