// Handoffs one by one: a list of them, and a box at the foot of the section that tells of one,
// message by message, with a column for each scheme.

import { icon } from "./shapes";
import { family } from "./ladder";
import { exactSpan, grouped } from "./numbers";
import { around, exchange, nearestHandoff, route, type Handoff, type Roaming } from "./roaming";
import { lossName } from "./story";
import { button } from "./storybox";
import { schemeColour } from "./theme";
import type { Panel } from "./timeline";

export interface Verbs {
  panels: () => Panel[];
  /** Shows a span of time, in seconds. */
  zoom: (from: number, until: number) => void;
  /** A handoff is told, or none any more. */
  changed: () => void;
  opened: () => void;
  /** Brings the plot of a panel's messages into the window. */
  reveal: (panel: Panel) => void;
}

/** Handoffs that the list has a button for; the box's buttons lead to all. */
const LISTED_MAX = 200;
/** Steps that are told of a handoff. */
const STEPS_MAX = 120;

export class HandoffBox {
  private readonly element = document.createElement("div");
  private readonly heading = document.createElement("h3");
  private readonly columns = document.createElement("div");
  private readonly list = document.createElement("div");
  private shown: { panel: Panel; handoff: Handoff } | null = null;

  constructor(section: HTMLElement, controls: HTMLElement, private readonly verbs: Verbs) {
    this.list.className = "handoffs";
    this.list.setAttribute("role", "group");
    this.list.setAttribute("aria-label", "Handoffs");
    controls.append(this.list);
    this.element.className = "handoff";
    this.element.hidden = true;
    this.element.setAttribute("role", "region");
    this.element.setAttribute("aria-label", "Messages of a handoff");
    this.element.setAttribute("aria-live", "polite");
    const bar = document.createElement("div");
    bar.className = "bar";
    bar.append(
      this.heading,
      button("‹ handoff", "the handoff before", () => this.go(-1)),
      button("handoff ›", "the next handoff", () => this.go(1)),
      button("Zoom to it", "show the time of this handoff", () => this.zoom()),
      button("Close", "close the handoff", () => this.close()),
    );
    this.columns.className = "columns";
    this.columns.tabIndex = 0;
    this.element.append(bar, this.columns);
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
    section.append(this.element);
    this.refresh();
  }

  /** Tells of the handoff of a panel that begins nearest to a time, or of the next one. */
  openAt(panel: Panel, time: number): void {
    const all = panel.roaming?.handoffs ?? [];
    const within = all.find(({ begin, until }) => begin <= time && time <= until);
    const handoff = within ?? (panel.roaming && nearestHandoff(panel.roaming, time))
      ?? all.find(({ begin }) => begin >= time) ?? all[all.length - 1];
    if (handoff) this.open(panel, handoff);
  }

  /** The schemes that are shown have changed. */
  refresh(): void {
    const panel = this.verbs.panels().find(({ roaming }) => (roaming?.handoffs.length ?? 0) > 0);
    const handoffs = panel?.roaming?.handoffs ?? [];
    const title = document.createElement("span");
    title.textContent = handoffs.length > 0 ? "Handoffs:" : "No handoff happened.";
    const buttons = handoffs.slice(0, LISTED_MAX).map((handoff) => {
      const words = `${handoff.begin.toFixed(2)} s, ${route(handoff)}`;
      const made = button(words, `the messages of the handoff at ${words}`, () => {
        if (panel) this.open(panel, handoff);
      });
      made.setAttribute("aria-pressed", String(this.shown?.handoff.begin === handoff.begin));
      return made;
    });
    const more = document.createElement("span");
    more.textContent = handoffs.length > LISTED_MAX ? `and ${handoffs.length - LISTED_MAX} more` : "";
    this.list.replaceChildren(title, ...buttons, more);
    this.tell();
  }

  close(): void {
    this.shown = null;
    this.refresh();
    this.verbs.changed();
  }

  private open(panel: Panel, handoff: Handoff): void {
    this.verbs.opened();
    this.shown = { panel, handoff };
    this.mark();
    this.tell();
    this.zoom();
    this.verbs.reveal(panel);
  }

  /** Presses the button of what is told. */
  private mark(): void {
    const buttons = [...this.list.querySelectorAll("button")];
    const all = this.verbs.panels().find(({ roaming }) => (roaming?.handoffs.length ?? 0) > 0)?.roaming?.handoffs ?? [];
    for (const [i, each] of buttons.entries()) {
      each.setAttribute("aria-pressed", String(all[i]?.begin === this.shown?.handoff.begin));
    }
  }

  private tell(): void {
    this.element.hidden = this.shown === null;
    if (!this.shown) return;
    const { handoff } = this.shown;
    this.heading.textContent = `Handoff at ${handoff.begin.toFixed(3)} s, ${route(handoff)}`;
    this.columns.replaceChildren(...this.verbs.panels().map((panel) => this.column(panel, handoff)));
  }

  private column(panel: Panel, { begin }: Handoff): HTMLElement {
    const column = document.createElement("article");
    const title = document.createElement("h4");
    title.textContent = panel.name;
    title.style.setProperty("--swatch", `var(--${schemeColour(panel.scheme)})`);
    const sentence = document.createElement("p");
    const list = document.createElement("ol");
    const handoff = panel.roaming && nearestHandoff(panel.roaming, begin);
    if (panel.roaming && handoff) {
      sentence.textContent = summary(panel.roaming, handoff);
      list.append(...steps(panel.roaming, handoff));
    } else {
      sentence.textContent = "No handoff here at that time.";
    }
    column.append(title, sentence, list);
    return column;
  }

  private go(way: 1 | -1): void {
    if (!this.shown) return;
    const { panel, handoff } = this.shown;
    const all = panel.roaming?.handoffs ?? [];
    const next = all[all.indexOf(handoff) + way];
    if (next) this.open(panel, next);
  }

  /** The time that the messages take where it was asked. */
  private zoom(): void {
    const { panel: { roaming }, handoff } = this.shown ?? { panel: { roaming: null }, handoff: null };
    if (roaming && handoff) this.verbs.zoom(...exchange(roaming, handoff));
  }
}

/** The stages of a handoff, from its beginning on. */
const stagesOf = ({ stages }: Roaming, { begin, until }: Handoff) =>
  stages.filter(({ at }) => at >= begin && at <= until);

function summary(roaming: Roaming, handoff: Handoff): string {
  const stages = stagesOf(roaming, handoff);
  const since = (name: string, words: string) => {
    const stage = stages.find((stage) => stage.name === name);
    return stage && stage.at > handoff.begin ? [`${words} after ${exactSpan(stage.at - handoff.begin)}`] : [];
  };
  const said = [
    ...since("route changed", "route changed"),
    ...since("complete", "routes consistent"),
    ...since("registered", "registered"),
    ...since("failed", "failed"),
  ];
  const words = said.length > 0 ? said.join(", ") : "neither complete nor registered";
  return `${route(handoff).replace(/^c/, "C")}: ${words}.`;
}

/** Messages, stages and beacons in the order of time. */
function steps(roaming: Roaming, handoff: Handoff): HTMLElement[] {
  const [from, until] = around(roaming, handoff);
  const { lanes, messages, beacons } = roaming;
  const told: [at: number, made: HTMLElement][] = [];
  const add = (at: number, text: string, mark: string) => {
    const line = document.createElement("li");
    const time = document.createElement("time");
    const apart = at - handoff.begin;
    time.textContent = `${apart < 0 ? "\u2212" : "+"}${exactSpan(Math.abs(apart))}`;
    line.append(time);
    line.insertAdjacentHTML("beforeend", mark);
    line.append(text);
    told.push([at, line]);
  };
  for (const { sent, ended, from: sender, to, text, lost } of messages) {
    if (sent < from || sent > until) continue;
    const look = family(text);
    const end = lost !== null ? `lost: ${lossName(lost)}` : Number.isNaN(ended) ? "never arrived" : `+${exactSpan(ended - sent)}`;
    add(sent, `${text}: ${lanes[sender]} to ${lanes[to]}, ${end}`, icon(look.colour, look.shape, null));
  }
  for (const { at, name, cell } of roaming.stages) {
    if (at < from || at > until) continue;
    const over = Number.isNaN(cell) ? "" : `, its packets leave over cell ${cell}`;
    add(at, `mobile host: ${name}${over}`, icon("text", "wedge", null));
  }
  for (let i = 0; i < beacons.at.length; i++) {
    const at = beacons.at[i] as number;
    if (at < from || at > until || beacons.taken[i] === 0) continue;
    add(at, `beacon of cell ${beacons.cell[i]}`, icon("mark-data", "tee", null));
  }
  told.sort(([one], [other]) => one - other);
  const made = told.slice(0, STEPS_MAX).map(([, line]) => line);
  if (told.length > STEPS_MAX) {
    const line = document.createElement("li");
    line.textContent = `and ${grouped(String(told.length - STEPS_MAX))} more`;
    made.push(line);
  }
  return made;
}
