// Messages between machines in time: each an arrow from who sends it to who gets it. Where there is
// room, an arrow says what it is; the box of a handoff (handoffs.ts) lists them all.

import { firstAtLeast, type Plane, type Range } from "./draw";
import type { Hint } from "./tooltip";
import { exactSeconds, exactSpan } from "./numbers";
import type { Message, Roaming } from "./roaming";
import { addMark, type Shape } from "./shapes";
import { colour } from "./theme";

/** What a message belongs to, by its words. */
const FAMILIES: [RegExp, string, Shape][] = [
  [/registration|binding/, "mark-cwnd", "square"],
  [/agent|group/, "mark-probe", "diamond"],
  [/./, "mark-local", "circle"],
];

export function family(text: string): { colour: string; shape: Shape } {
  const [, name, shape] = FAMILIES.find(([words]) => words.test(text)) ?? ["", "mark-local", "circle"];
  return { colour: name, shape };
}

/** A message that never ended is drawn as short as that, in seconds. */
const STUMP = 1e-3;
/** The longest time that a message is on one hop: those sent earlier cannot be in sight. */
const HOP_MAX = 2;
/** Words stand where arrows can be told apart: from so many CSS pixels per second on. */
const WORDS_SCALE = 250;
/** Height of words and width of a letter, in CSS pixels. */
const LETTER = { width: 6, height: 12 };

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** The messages that may be in sight. */
function inSight({ messages }: Roaming, [from, until]: Range): Message[] {
  const sent = Float64Array.from(messages, (message) => message.sent);
  const [start, end] = [firstAtLeast(sent, from - HOP_MAX), firstAtLeast(sent, until)];
  return messages.slice(start, end).filter(({ sent, ended }) => !(ended < from) && (sent >= from || ended >= from));
}

/** Where an arrow begins and ends. */
function arrow(plane: Plane, { lanes }: Roaming, { sent, ended, from, to, lost }: Message) {
  const x = (at: number) => at * plane.scaleX + plane.shiftX;
  const y = (lane: number) => (lanes.length - 1 - lane) * plane.scaleY + plane.shiftY;
  const [x0, y0, x1] = [x(sent), y(from), x(Number.isNaN(ended) ? sent + STUMP : ended)];
  // What is lost on its way gets half of it.
  const share = lost !== null || Number.isNaN(ended) ? 0.55 : 1;
  return { x0, y0, x1: x0 + (x1 - x0) * share, y1: y0 + (y(to) - y0) * share };
}

export function drawLadder(
  context: CanvasRenderingContext2D, plane: Plane, roaming: Roaming, range: Range,
): void {
  const messages = inSight(roaming, range);
  const { ratio } = plane;
  for (const message of messages) {
    const look = family(message.text);
    const { x0, y0, x1, y1 } = arrow(plane, roaming, message);
    context.strokeStyle = context.fillStyle = colour(look.colour);
    context.lineWidth = (message.advertised ? 0.7 : 1.4) * ratio;
    context.globalAlpha = message.advertised && !isWide(plane) ? 0.35 : 1;
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
    context.beginPath();
    addMark(context, look.shape, 2.4 * ratio, x0, y0);
    context.fill();
    if (message.lost !== null) {
      context.strokeStyle = colour("mark-lost");
      context.beginPath();
      addMark(context, "cross", 3.5 * ratio, x1, y1);
      context.stroke();
    } else {
      head(context, x0, y0, x1, y1, 6 * ratio);
    }
  }
  context.globalAlpha = 1;
  const taken = drawStages(context, plane, roaming, range);
  if (!isWide(plane)) return;
  // What is said again and again takes what room is left.
  const byWorth = [...messages].sort((one, other) => Number(one.advertised) - Number(other.advertised));
  drawWords(context, plane, roaming, byWorth, taken);
}

const isWide = ({ scaleX, ratio }: Plane): boolean => scaleX >= WORDS_SCALE * ratio;

/** The head of an arrow. */
function head(context: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number, size: number): void {
  const angle = Math.atan2(y1 - y0, x1 - x0);
  context.beginPath();
  context.moveTo(x1, y1);
  for (const turn of [-0.4, 0.4]) {
    context.lineTo(x1 - size * Math.cos(angle + turn), y1 - size * Math.sin(angle + turn));
  }
  context.closePath();
  context.fill();
}

/** What the mobile host says of its handoff, under its lane; returns the room that it takes. */
function drawStages(context: CanvasRenderingContext2D, plane: Plane, { stages }: Roaming, [from, until]: Range): Box[] {
  const { ratio } = plane;
  const y = plane.shiftY;
  const taken: Box[] = [];
  context.fillStyle = colour("text");
  for (const { at, name } of stages.filter(({ at }) => at >= from && at <= until)) {
    const x = at * plane.scaleX + plane.shiftX;
    context.beginPath();
    addMark(context, "wedge", 3.5 * ratio, x, y);
    context.fill();
    const box = boxOf(x + 6 * ratio, y + 8 * ratio, name, ratio);
    if (isWide(plane) && isFree(box, taken, plane)) {
      say(context, box, name, ratio);
      taken.push(box);
    }
  }
  return taken;
}

function drawWords(
  context: CanvasRenderingContext2D, plane: Plane, roaming: Roaming, messages: Message[], taken: Box[],
): void {
  const { ratio } = plane;
  for (const message of messages) {
    const { x0, y0, x1, y1 } = arrow(plane, roaming, message);
    const width = LETTER.width * message.text.length * ratio;
    const places = [0.5, 0.25, 0.75, 0.38, 0.62, 0.13, 0.87].flatMap((share): [number, number][] => {
      const [x, y] = [x0 + (x1 - x0) * share, y0 + (y1 - y0) * share];
      return [[x + 5 * ratio, y], [x - width - 5 * ratio, y]];
    });
    const boxes = places.map(([x, y]) => boxOf(x, y, message.text, ratio));
    const box = boxes.find((box) => isFree(box, taken, plane));
    if (!box) continue;
    context.fillStyle = colour(family(message.text).colour);
    say(context, box, message.text, ratio);
    taken.push(box);
  }
}

/** The room of words whose left end is in the middle of their height. */
function boxOf(left: number, middle: number, text: string, ratio: number): Box {
  const half = (LETTER.height * ratio) / 2;
  return { left, right: left + (LETTER.width * text.length + 4) * ratio, top: middle - half, bottom: middle + half };
}

const isFree = (box: Box, taken: Box[], plane: Plane): boolean =>
  box.left >= plane.left && box.right <= plane.left + plane.width
  && box.top >= plane.top && box.bottom <= plane.top + plane.height
  && !taken.some((other) =>
    box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom);

function say(context: CanvasRenderingContext2D, { left, bottom }: Box, text: string, ratio: number): void {
  context.font = `${11 * ratio}px system-ui, sans-serif`;
  context.textAlign = "left";
  context.fillText(text, left, bottom - 2.5 * ratio);
}

/** The message nearest to a place; null if none is near. */
export function messageAt(plane: Plane, roaming: Roaming, x: number, y: number): Message | null {
  const time = (x - plane.shiftX) / plane.scaleX;
  const slack = (8 * plane.ratio) / plane.scaleX;
  let [best, reach]: [Message | null, number] = [null, 8 * plane.ratio];
  for (const message of inSight(roaming, [time - slack, time + slack])) {
    const { x0, y0, x1, y1 } = arrow(plane, roaming, message);
    const [dx, dy] = [x1 - x0, y1 - y0];
    const along = ((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy || 1);
    const share = Math.min(1, Math.max(0, along));
    const distance = Math.hypot(x - x0 - share * dx, y - y0 - share * dy);
    if (distance <= reach) [best, reach] = [message, distance];
  }
  return best;
}

export function messageHint({ text, sent, ended, from, to, lost }: Message, { lanes }: Roaming): Hint {
  const rows: Hint["rows"] = [
    ["from", lanes[from] ?? ""],
    ["to", lanes[to] ?? ""],
    ["sent", exactSeconds(sent)],
  ];
  if (lost !== null) rows.push(["lost", lost]);
  else if (!Number.isNaN(ended)) rows.push(["arrived after", exactSpan(ended - sent)]);
  else rows.push(["arrived", "not before the end of the run"]);
  return { title: text, colour: family(text).colour, rows };
}
