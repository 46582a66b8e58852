// Numbers as text: short on an axis, exact in a tooltip.

/** Narrow, not broken across lines. */
const THIN_SPACE = "\u202f";

/** Tick values with as many decimals as their spacing needs. */
export function ticks(values: (number | null)[], increment: number): string[] {
  let decimals = 0;
  let scaled = Math.abs(increment);
  while (decimals < 9 && Math.abs(scaled - Math.round(scaled)) > 1e-6 * scaled) {
    decimals++;
    scaled *= 10;
  }
  return values.map((value) => (value === null ? "" : grouped(value.toFixed(decimals))));
}

/** Tick values of a logarithmic axis; those between powers of ten only where there is room. */
export function powers(values: (number | null)[]): string[] {
  const known = values.filter((value) => value !== null);
  const decades = Math.log10(Math.max(...known) / Math.min(...known));
  const digits = decades <= 1.2 ? [1, 2, 3, 5] : decades <= 3 ? [1, 3] : [1];
  return values.map((value) => {
    if (value === null) return "";
    const power = Math.floor(Math.log10(value) + 1e-9);
    const digit = Math.round(value / 10 ** power);
    if (!digits.includes(digit)) return "";
    if (power >= -3 && power <= 4) return grouped(String(Number(value.toPrecision(3))));
    return `${digit === 1 ? "" : `${digit}·`}${powerOfTen(power)}`;
  });
}

/** The multiple of three to which ten is raised where ticks up to `largest` would be too long. */
export function thousands(largest: number): number {
  if (!(largest > 0) || (largest < 1e5 && largest >= 1e-2)) return 0;
  return 3 * Math.floor(Math.log10(largest) / 3);
}

/** The unit in which the largest of some byte counts reads well; MB is 10^6 bytes. */
export function byteUnit(bytes: number): { name: string; size: number } {
  for (const [name, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]] as const) {
    if (Math.abs(bytes) >= size) return { name, size };
  }
  return { name: "B", size: 1 };
}

export const exactBytes = (bytes: number): string => `${grouped(bytes.toFixed(0))} B`;

/** To the nanosecond. */
export const exactSeconds = (seconds: number): string => `${seconds.toFixed(9)} s`;

/** A span of time, to the microsecond. */
export const exactSpan = (seconds: number): string =>
  seconds < 1 ? `${(seconds * 1e3).toFixed(3)} ms` : `${seconds.toFixed(6)} s`;

/** A measured value. Six digits are beyond what any interval here supports. */
export const exactValue = (value: number): string => grouped(String(Number(value.toPrecision(6))));

/** Digits in groups of three. */
export function grouped(text: string): string {
  const [whole = "", rest] = text.split(".");
  const spaced = whole.replace(/\B(?=(\d{3})+$)/g, THIN_SPACE).replace(/^-/, "\u2212");
  return rest === undefined ? spaced : `${spaced}.${rest}`;
}

export function powerOfTen(power: number): string {
  const raised = (sign: string) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(sign)]);
  return `10${[...String(power)].map(raised).join("")}`;
}
