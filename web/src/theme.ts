// Colours, from the style sheet's custom properties: one source for the canvas, the legend and both
// colour schemes.

/** Number of colours for schemes; more schemes than that share them, told apart by their marks. */
export const SCHEME_COLOURS = 8;

const known = new Map<string, string>();

export function colour(name: string): string {
  let value = known.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    known.set(name, value);
  }
  return value;
}

export function schemeColour(scheme: number): string {
  return `scheme-${scheme % SCHEME_COLOURS}`;
}

/** Calls back when the reader changes between light and dark. */
export function onThemeChange(callback: () => void): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    known.clear();
    callback();
  });
}

/** Does something with the light colours, whatever the reader sees. */
export function inLight<T>(act: () => T): T {
  const root = document.documentElement;
  root.dataset["light"] = "";
  known.clear();
  try {
    return act();
  } finally {
    delete root.dataset["light"];
    known.clear();
  }
}
