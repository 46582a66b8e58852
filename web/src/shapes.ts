// The shapes of marks, the same on the canvas and in the legend. Colour never stands alone: each
// kind of mark has a shape, too.

export type Shape =
  | "dot" | "circle" | "square" | "triangle" | "diamond" | "wedge" | "ring" | "cross" | "tee" | "band";

/** Corners around the origin, for radius 1; null for round ones. */
const CORNERS: Record<Shape, [number, number][] | null> = {
  dot: [[-0.7, -0.7], [0.7, -0.7], [0.7, 0.7], [-0.7, 0.7]],
  circle: null,
  square: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
  triangle: [[0, -1.15], [1.1, 0.85], [-1.1, 0.85]],
  diamond: [[0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]],
  wedge: [[0, 1.15], [1.1, -0.85], [-1.1, -0.85]],
  ring: null,
  cross: [[-1, -1], [1, 1], [-1, 1], [1, -1]],
  tee: [[-1, -1.2], [1, -1.2], [1, -0.6], [0.25, -0.6], [0.25, 1.2], [-0.25, 1.2], [-0.25, -0.6], [-1, -0.6]],
  band: [[-1.3, -1.4], [1.3, -1.4], [1.3, 1.4], [-1.3, 1.4]],
};

/** True for shapes that are drawn as lines. */
export const isOpen = (shape: Shape): boolean => shape === "ring" || shape === "cross";

/** Adds one mark to the current path. */
export function addMark(
  path: CanvasRenderingContext2D, shape: Shape, radius: number, x: number, y: number,
): void {
  const corners = CORNERS[shape];
  if (corners === null) {
    path.moveTo(x + radius, y);
    path.arc(x, y, radius, 0, 2 * Math.PI);
    return;
  }
  corners.forEach(([dx, dy], i) => {
    // A cross is two strokes; every other shape is closed.
    const move = i === 0 || (shape === "cross" && i === 2);
    if (move) path.moveTo(x + dx * radius, y + dy * radius);
    else path.lineTo(x + dx * radius, y + dy * radius);
  });
  if (shape !== "cross") path.closePath();
}

/** An icon for the legend: a shape, a line, or both. The colour is the name of a property. */
export function icon(colour: string, shape: Shape | null, line: number[] | null): string {
  const stroke = `stroke="var(--${colour})" stroke-width="1.8"`;
  const dash = line && line.length > 0 ? ` stroke-dasharray="${line.join(" ")}"` : "";
  const drawn = line ? `<path d="M1 7H23" fill="none" ${stroke}${dash}/>` : "";
  return `<svg width="24" height="14" aria-hidden="true">${drawn}${shape ? glyph(shape, colour) : ""}</svg>`;
}

function glyph(shape: Shape, colour: string): string {
  const corners = CORNERS[shape];
  const radius = shape === "dot" ? 3 : 4.5;
  const paint = isOpen(shape)
    ? `fill="none" stroke="var(--${colour})" stroke-width="1.8"`
    : `fill="var(--${colour})"`;
  if (corners === null) return `<circle cx="12" cy="7" r="${radius}" ${paint}/>`;
  const at = ([x, y]: [number, number]) => `${12 + x * radius} ${7 + y * radius}`;
  const [a, b, ...rest] = corners.map(at);
  const path = shape === "cross" ? `M${a}L${b}M${rest.join("L")}` : `M${[a, b, ...rest].join("L")}Z`;
  return `<path d="${path}" ${paint}/>`;
}
