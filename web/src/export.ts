// A plot for a paper: what is in sight, as one SVG file in the light colours.

import type { Plane } from "./draw";
import type { Frame } from "./frame";
import type { Entry } from "./legend";
import { icon } from "./shapes";
import { colour, inLight } from "./theme";

const WIDTH = 760;
const FONT = 'font-family="system-ui, sans-serif" font-size="12"';

/** As much of a canvas's context as the plots use, written down as SVG. */
export class SvgContext {
  readonly parts: string[] = [];
  fillStyle = "#000";
  strokeStyle = "#000";
  lineWidth = 1;
  globalAlpha = 1;
  textAlign: "left" | "center" | "right" = "left";
  font = "";
  lineJoin = "round";
  private path: string[] = [];
  private dashes: number[] = [];

  beginPath(): void {
    this.path = [];
  }

  moveTo(x: number, y: number): void {
    this.path.push(`M${short(x)} ${short(y)}`);
  }

  lineTo(x: number, y: number): void {
    this.path.push(`${this.path.length === 0 ? "M" : "L"}${short(x)} ${short(y)}`);
  }

  closePath(): void {
    this.path.push("Z");
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.path.push(`M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}Z`);
  }

  /** Whole circles only. */
  arc(x: number, y: number, radius: number): void {
    const r = short(radius);
    const around = `a${r} ${r} 0 1 1 ${short(-2 * radius)} 0a${r} ${r} 0 1 1 ${short(2 * radius)} 0`;
    this.path.push(`M${short(x + radius)} ${short(y)}${around}`);
  }

  setLineDash(dashes: number[]): void {
    this.dashes = dashes;
  }

  fill(): void {
    this.draw(`fill="${this.fillStyle}" stroke="none"`);
  }

  stroke(): void {
    const dash = this.dashes.length > 0 ? ` stroke-dasharray="${this.dashes.join(" ")}"` : "";
    const width = short(this.lineWidth);
    this.draw(`fill="none" stroke="${this.strokeStyle}" stroke-width="${width}" stroke-linejoin="round"${dash}`);
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    this.beginPath();
    this.rect(x, y, width, height);
    this.fill();
  }

  fillText(text: string, x: number, y: number, upright = false): void {
    const anchor = { left: "start", center: "middle", right: "end" }[this.textAlign];
    const place = `x="${short(x)}" y="${short(y)}"`;
    const turn = upright ? ` transform="rotate(-90 ${short(x)} ${short(y)})"` : "";
    this.parts.push(`<text ${place} text-anchor="${anchor}" fill="${this.fillStyle}"${turn}>${escaped(text)}</text>`);
  }

  /** Draws with everything outside a plane cut off. */
  clipped({ left, top, width, height }: Plane, act: () => void): void {
    const [x, y, w, h] = [left, top, width, height].map(short);
    const box = `x="${x}" y="${y}" width="${w}" height="${h}" viewBox="${x} ${y} ${w} ${h}"`;
    this.parts.push(`<svg ${box} overflow="hidden">`);
    act();
    this.parts.push("</svg>");
  }

  private draw(paint: string): void {
    if (this.path.length === 0) return;
    const alpha = this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : "";
    this.parts.push(`<path d="${this.path.join("")}" ${paint}${alpha}/>`);
  }
}

/** A button that saves what some frames show, one below the other. */
export function saveButton(
  holder: HTMLElement, title: string, frames: Frame[], entries: () => Entry[],
): void {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "save";
  button.textContent = "Save SVG";
  button.title = "Save what is in sight as a vector drawing for a paper";
  button.addEventListener("click", () => {
    const blob = new Blob([inLight(() => figure(title, frames, entries()))], { type: "image/svg+xml" });
    const link = document.createElement("a");
    const address = URL.createObjectURL(blob);
    link.setAttribute("href", address);
    link.download = `${title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "")}.svg`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  });
  holder.append(button);
}

function figure(title: string, frames: Frame[], entries: Entry[]): string {
  const context = new SvgContext();
  context.fillStyle = colour("text");
  context.fillText(title, 8, 18);
  let top = 28;
  for (const frame of frames) top += frame.draft(context, top, WIDTH);
  context.fillStyle = colour("text");
  context.textAlign = "left";
  let left = 8;
  for (const { name, colour: of, shape, line } of entries) {
    const width = 46 + 6.4 * name.length;
    if (left + width > WIDTH) [left, top] = [8, top + 20];
    const drawn = icon(of, shape, line).replace("<svg ", `<svg x="${left}" y="${top + 4}" `);
    context.parts.push(drawn.replace(/var\(--([a-z0-9-]+)\)/g, (_, name: string) => colour(name)));
    context.fillText(name, left + 28, top + 15);
    left += width;
  }
  const size = `width="${WIDTH}" height="${top + 26}" viewBox="0 0 ${WIDTH} ${top + 26}"`;
  const ground = `<rect width="100%" height="100%" fill="${colour("background")}"/>`;
  return `<svg xmlns="${["http:", "//www.w3.org/2000/svg"].join("")}" ${size} ${FONT}>${ground}${context.parts.join("\n")}</svg>\n`;
}

/** To a hundredth of a pixel. */
const short = (value: number): string => String(Math.round(value * 100) / 100);

const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign] as string);
