// The one tooltip of the page: exact values of what is under the pointer.

export interface Hint {
  title: string;
  /** Name of a colour; the tooltip shows it beside the title. */
  colour?: string;
  rows: [name: string, value: string][];
}

let element: HTMLElement | null = null;

export function showTooltip(hint: Hint, x: number, y: number): void {
  element ??= create();
  const title = document.createElement("strong");
  title.textContent = hint.title;
  if (hint.colour) title.style.setProperty("--swatch", `var(--${hint.colour})`);
  const rows = document.createElement("dl");
  for (const [name, value] of hint.rows) {
    const term = document.createElement("dt");
    const description = document.createElement("dd");
    term.textContent = name;
    description.textContent = value;
    rows.append(term, description);
  }
  element.replaceChildren(title, rows);
  element.hidden = false;
  const { offsetWidth: width, offsetHeight: height } = element;
  const right = x + 14 + width <= innerWidth;
  const below = y + 14 + height <= innerHeight;
  element.style.left = `${Math.max(4, right ? x + 14 : x - 14 - width)}px`;
  element.style.top = `${Math.max(4, below ? y + 14 : y - 14 - height)}px`;
}

export function hideTooltip(): void {
  if (element) element.hidden = true;
}

function create(): HTMLElement {
  const created = document.createElement("div");
  created.className = "tooltip";
  document.body.append(created);
  addEventListener("scroll", hideTooltip, { passive: true });
  return created;
}
