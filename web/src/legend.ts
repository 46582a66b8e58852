// Legends: a button for each thing a plot shows, which shows or hides it.

import { icon, type Shape } from "./shapes";

export interface Entry {
  name: string;
  /** Name of a colour. */
  colour: string;
  shape: Shape | null;
  /** Dashes of its line, in CSS pixels; null if it has none. */
  line: number[] | null;
  shown: boolean;
}

/** Adds a row of buttons under a name. A click turns `shown` over and calls back. */
export function legend(
  holder: HTMLElement, name: string, entries: Entry[], changed: () => void,
): void {
  const group = document.createElement("div");
  group.className = "legend";
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", name);
  for (const entry of entries) {
    const button = document.createElement("button");
    button.type = "button";
    button.innerHTML = icon(entry.colour, entry.shape, entry.line);
    button.append(entry.name);
    button.setAttribute("aria-pressed", String(entry.shown));
    button.addEventListener("click", () => {
      entry.shown = !entry.shown;
      button.setAttribute("aria-pressed", String(entry.shown));
      changed();
    });
    group.append(button);
  }
  holder.append(group);
}

/** One line under a plot's title that says how to move in it. */
export function help(holder: HTMLElement, more = ""): void {
  const line = document.createElement("p");
  line.className = "help";
  line.textContent =
    "Drag to zoom, double-click for all; wheel zooms after a click or with Ctrl; keys: + − 0 and arrows. " + more;
  holder.append(line);
}
