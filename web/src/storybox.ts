// The box at the foot of a section that tells the story of some bytes: one column for each scheme,
// which met them under the same channel.

import { exactSpan, grouped } from "./numbers";
import { tell, type Step, type Tale } from "./story";
import { schemeColour } from "./theme";
import type { Panel } from "./timeline";

export interface Verbs {
  panels: () => Panel[];
  /** Shows a span of time, in seconds. */
  zoom: (from: number, until: number) => void;
  /** The story at hand changed. */
  changed: () => void;
  /** A story is about to be told. */
  opened: () => void;
}

export class StoryBox {
  private readonly element = document.createElement("div");
  private readonly heading = document.createElement("h3");
  private readonly columns = document.createElement("div");
  private byte = 0;
  private asked: Panel | null = null;
  /** What is told of the panel that was asked. */
  tale: Tale | null = null;

  constructor(section: HTMLElement, private readonly verbs: Verbs) {
    this.element.className = "story";
    this.element.hidden = true;
    this.element.setAttribute("role", "region");
    this.element.setAttribute("aria-label", "Story of a packet");
    this.element.setAttribute("aria-live", "polite");
    const bar = document.createElement("div");
    bar.className = "bar";
    bar.append(
      this.heading,
      button("‹ loss", "the loss before", () => this.go(-1, "lost")),
      button("‹ segment", "the segment before", () => this.go(-1, "data")),
      button("segment ›", "the next segment", () => this.go(1, "data")),
      button("loss ›", "the next loss", () => this.go(1, "lost")),
      button("Zoom to it", "show the time of this story", () => this.zoom()),
      button("Close", "close the story", () => this.close()),
    );
    this.columns.className = "columns";
    this.columns.tabIndex = 0;
    this.element.append(bar, this.columns);
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
    section.append(this.element);
  }

  /** Tells of the segment with this byte, first of all as this panel saw it. */
  show(panel: Panel, byte: number): void {
    if (this.element.hidden) this.verbs.opened();
    this.asked = panel;
    this.byte = byte;
    this.tale = tell(panel, byte);
    this.element.hidden = false;
    this.refresh();
    this.verbs.changed();
  }

  /** The story of the first loss at or after a time; false if there is none. */
  showLossAfter(panel: Panel, time: number): boolean {
    const { at, offset } = panel.marks.lost;
    const i = Math.max(0, at.findIndex((value) => value >= time));
    if (i >= at.length) return false;
    this.show(panel, (offset[i] as number) - 1);
    return true;
  }

  refresh(): void {
    if (this.element.hidden || !this.asked) return;
    const { tale } = this;
    const number = (value: number) => grouped(String(value));
    this.heading.textContent = tale
      ? `Bytes ${number(tale.start)} to ${number(tale.end - 1)} of the stream`
      : `Byte ${number(this.byte)} of the stream`;
    this.columns.replaceChildren(...this.verbs.panels().map((panel) => this.column(panel)));
  }

  close(): void {
    this.element.hidden = true;
    this.tale = null;
    this.verbs.changed();
  }

  private column(panel: Panel): HTMLElement {
    const column = document.createElement("article");
    const title = document.createElement("h4");
    title.textContent = panel.name;
    title.style.setProperty("--swatch", `var(--${schemeColour(panel.scheme)})`);
    const sentence = document.createElement("p");
    const tale = panel === this.asked ? this.tale : tell(panel, this.byte);
    sentence.textContent = tale?.sentence ?? "These bytes were never sent here.";
    const list = document.createElement("ol");
    list.append(...(tale?.steps ?? []).map((step) => item(step, tale?.from ?? 0)));
    column.append(title, sentence, list);
    return column;
  }

  private go(way: 1 | -1, key: "lost" | "data"): void {
    const { asked, tale, byte } = this;
    if (!asked) return;
    const { offset } = asked.marks[key];
    const [start, end] = [tale?.start ?? byte, tale?.end ?? byte + 1];
    let best = Number.NaN;
    for (const value of offset) {
      const beyond = way > 0 ? value > end && !(value >= best) : value <= start && !(value <= best);
      if (beyond) best = value;
    }
    if (!Number.isNaN(best)) this.show(asked, best - 1);
  }

  private zoom(): void {
    if (!this.tale) return;
    const { from, until } = this.tale;
    const margin = Math.max(0.15 * (until - from), 1e-3);
    this.verbs.zoom(from - margin, until + margin);
  }
}

function item({ at, text, rule, times, until }: Step, from: number): HTMLElement {
  const line = document.createElement("li");
  const time = document.createElement("time");
  time.textContent = at === from ? `${at.toFixed(6)} s` : `+${exactSpan(at - from)}`;
  line.append(time, `${text}${times > 1 ? `, ${times} times up to +${exactSpan(until - from)}` : ""}. `);
  if (rule) {
    const badge = document.createElement("code");
    badge.textContent = rule;
    line.append(badge);
  }
  return line;
}

/** A button with words, a longer description and a deed. */
export function button(text: string, title: string, act: () => void): HTMLButtonElement {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.title = title;
  made.addEventListener("click", act);
  return made;
}
