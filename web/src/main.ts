// Draws the page's plots into the places left for them. A plot is drawn when it comes near the
// window, so that the first one is there at once however many follow.

import { readIndex } from "./data";
import { drawLines } from "./lines";
import { drawSequence } from "./sequence";
import type { Board } from "./board";
import { onThemeChange } from "./theme";

const index = readIndex();
const boards: Board[] = [];

const watcher = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      watcher.unobserve(target);
      draw(target as HTMLElement);
    }
  },
  { rootMargin: "400px" },
);

for (const section of document.querySelectorAll<HTMLElement>("section.plot")) watcher.observe(section);
addEventListener("beforeprint", () => {
  for (const section of document.querySelectorAll<HTMLElement>("section.plot:not(.drawn)")) draw(section);
});
onThemeChange(() => {
  for (const board of boards) board.changed();
});

function draw(section: HTMLElement): void {
  const plot = index.plots[Number(section.dataset["plot"])];
  if (!plot || section.classList.contains("drawn")) return;
  section.classList.add("drawn");
  const board = plot.kind === "lines" ? drawLines(section, plot) : drawSequence(section, plot);
  boards.push(board);
  board.changed();
}
