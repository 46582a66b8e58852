// Opens reports in headless Chromium and checks what a reader relies on: no error, no network,
// nothing empty, zoom and legend act, both window sizes, light and dark.
//
//   node tests/page.mjs [--shots DIR] FILE...

import { chromium } from "playwright-core";
import { mkdtemp, mkdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
const SIZES = [{ width: 1280, height: 800 }, { width: 800, height: 600 }];

/** All plots of a section, whatever they show. */
const PAINT_MS_MAX = 100;

const failures = [];
let where = "";

function expect(condition, what) {
  if (!condition) failures.push(`${where}: ${what}`);
}

const files = process.argv.slice(2);
let shots = null;
if (files[0] === "--shots") {
  shots = files[1];
  files.splice(0, 2);
  await mkdir(shots, { recursive: true });
}
if (files.length === 0) {
  console.error("usage: node tests/page.mjs [--shots DIR] FILE...");
  process.exit(2);
}

for (const file of files) {
  for (const viewport of SIZES) {
    for (const colorScheme of ["light", "dark"]) {
      where = `${basename(file)} at ${viewport.width}x${viewport.height}, ${colorScheme}`;
      try {
        await inBrowser({ viewport, colorScheme }, (page) => check(page, resolve(file), colorScheme));
      } catch (error) {
        expect(false, String(error.message).split("\n").slice(0, 3).join(" "));
      }
    }
  }
}
for (const failure of failures) console.error(`FAILED ${failure}`);
console.log(`${files.length} page(s), ${files.length * 4} views, ${failures.length} failure(s)`);
process.exitCode = failures.length > 0 ? 1 : 0;

/** A browser of its own with nothing remembered. */
async function inBrowser(options, act) {
  const profile = await mkdtemp(join(tmpdir(), "lasthop-page-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: BROWSER, args: FLAGS, ...options,
  });
  try {
    await act(context.pages()[0] ?? (await context.newPage()));
  } finally {
    await context.close();
    await rm(profile, { recursive: true, force: true });
  }
}

async function check(page, file, colorScheme) {
  const address = pathToFileURL(file).href;
  const foreign = (url) => url !== address && !url.startsWith("data:");
  page.on("request", (request) => expect(!foreign(request.url()), `asked for ${request.url()}`));
  page.on("pageerror", (error) => expect(false, `script error: ${error.message}`));
  page.on("console", (message) => {
    expect(!["error", "warning"].includes(message.type()), `console: ${message.text()}`);
  });
  await page.goto(address);
  await drawAll(page);
  await checkText(page, colorScheme);
  const sections = await page.locator("section.plot").all();
  const view = where;
  for (const [number, section] of sections.entries()) {
    where = `${view}, plot ${number}`;
    await checkPlot(page, section);
  }
  where = view;
  const slowest = await slowestPaint(sections);
  expect(slowest < PAINT_MS_MAX, `painting takes ${slowest} ms`);
  console.log(`${where}: ${sections.length} plots, slowest paint ${slowest} ms`);
  if (shots) {
    await page.mouse.move(0, 0);
    const name = where.replace(/[^a-z0-9]+/gi, "-");
    await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
  }
}

async function slowestPaint(sections) {
  let slowest = 0;
  for (const section of sections) slowest = Math.max(slowest, await paintTime(section));
  return slowest;
}

/** Milliseconds of a repaint with all in sight, the median of nine: the machine does other things. */
async function paintTime(section) {
  const times = [];
  await section.evaluate((element) => element.scrollIntoView());
  for (let i = 0; i < 9; i++) {
    await section.locator(".frame").first().press("0");
    await settled(section);
    times.push(Number(await section.evaluate((element) => element.dataset.paintMs)));
  }
  return times.sort((a, b) => a - b)[4];
}

/** Plots are drawn when they come near the window: walks past all of them. */
async function drawAll(page) {
  for (const section of await page.locator("section.plot").all()) {
    await section.scrollIntoViewIfNeeded();
    await section.locator("canvas").first().waitFor({ timeout: 10_000 });
  }
  await page.waitForFunction(() =>
    [...document.querySelectorAll("section.plot")].every((plot) => plot.dataset.paintMs !== undefined),
  );
  await page.evaluate(() => scrollTo(0, 0));
}

async function checkText(page, colorScheme) {
  const seen = await page.evaluate(() => {
    const [red, green, blue] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);
    const tables = [...document.querySelectorAll("section.table table")];
    return {
      lightness: (red + green + blue) / (3 * 255),
      title: document.title.trim(),
      heading: document.querySelector("h1")?.textContent.trim(),
      rows: tables.map((table) => table.tBodies[0]?.rows.length ?? 0),
      cells: tables.every((table) => [...table.rows].every((row) => row.cells.length === table.rows[0].cells.length)),
      overflow: document.documentElement.scrollWidth - innerWidth,
    };
  });
  expect(seen.title !== "" && seen.title === seen.heading, `title "${seen.title}", heading "${seen.heading}"`);
  expect(seen.rows.length > 0 && seen.rows.every((rows) => rows > 0), `rows of the tables: [${seen.rows}]`);
  expect(seen.cells, "a row has more or fewer cells than the head");
  expect(seen.overflow <= 0, `the page is ${seen.overflow} pixels wider than the window`);
  const right = colorScheme === "dark" ? seen.lightness < 0.25 : seen.lightness > 0.75;
  expect(right, `background lightness ${seen.lightness.toFixed(2)}`);
}

async function checkPlot(page, section) {
  await section.evaluate((element) => element.scrollIntoView());
  const painted = await section.evaluate(paintedPixels);
  painted.forEach((pixels, i) => expect(pixels > 40, `canvas ${i} has only ${pixels} pixels of data`));
  await checkZoom(page, section);
  await checkLegend(section);
  await checkTooltip(page, section);
  await checkSave(page, section);
  if ((await section.locator(".panel").count()) > 0) await checkStory(page, section);
  if ((await section.locator(".handoffs").count()) > 0) await checkHandoffs(page, section);
}

/** Handoffs: a list, one at a time with every message, in the plot and in words, by keyboard. */
async function checkHandoffs(page, section) {
  const box = section.locator(".handoff");
  const buttons = section.locator(".handoffs button");
  const panel = section.locator(".panel").first();
  const labels = await panel.locator(".frame").evaluateAll((frames) => frames.map((frame) => frame.ariaLabel));
  for (const track of ["cells that reach", "signal of the cells", "messages between"]) {
    expect(labels.some((label) => label.includes(track)), `no plot of ${track}`);
  }
  const listed = await buttons.count();
  const told = (await panel.locator("p").first().innerText()).match(/(\d+) handoffs?/)?.[1];
  expect(listed > 0 && listed === Number(told), `${listed} handoffs in the list, ${told} in the summary`);
  if (listed === 0) return;
  const whole = String(await shown(section));
  await buttons.first().focus();
  await page.keyboard.press("Enter");
  await settled(section);
  expect(await box.isVisible(), "a handoff in the list opens nothing");
  expect((await buttons.first().getAttribute("aria-pressed")) === "true", "the list does not say which is shown");
  const begin = Number((await buttons.first().innerText()).match(/^[\d.]+/)[0]);
  const [from, until] = (await shown(section))[0].match(/from ([\d.]+) to ([\d.]+)/).slice(1).map(Number);
  expect(until > begin && from < begin + 5 && until - from < 5, `${begin} s is shown as ${from} to ${until}`);
  const columns = await box.locator("article").count();
  const panels = await section.locator(".panel:not([hidden])").count();
  expect(columns === panels, `${columns} columns of ${panels} panels`);
  const first = box.locator("article").first();
  const steps = await first.locator("li").allInnerTexts();
  expect(steps.length > 3 && steps.every((step) => /^[+\u2212][\d.]+ m?s/.test(step)), `steps: ${steps.join("; ")}`);
  const times = steps.map((step) => Number(step.match(/[\d.]+/)[0]) * (step.startsWith("+") ? 1 : -1) * (/^.[\d.]+ s/.test(step) ? 1e3 : 1));
  expect(times.every((time, i) => i === 0 || time >= times[i - 1]), `steps out of order: ${times}`);
  await checkWords(page, section, steps);
  const heading = await box.locator("h3").innerText();
  if (listed > 1) {
    await box.locator("button", { hasText: "handoff ›" }).click();
    expect((await box.locator("h3").innerText()) !== heading, "the next handoff is the same");
  }
  const inside = await box.evaluate((element) => element.scrollWidth <= element.clientWidth + 1);
  expect(inside, "a handoff is wider than its box");
  await box.locator("button", { hasText: "Close" }).focus();
  await page.keyboard.press("Escape");
  expect(!(await box.isVisible()), "Escape does not close the handoff");
  await panel.locator('.frame[aria-label*="messages between"]').focus();
  await page.keyboard.press("0");
  await settled(section);
  expect(String(await shown(section)) === whole, "the key 0 does not show all again");
  await page.keyboard.press("Enter");
  await settled(section);
  expect(await box.isVisible(), "Enter in the plot of messages opens no handoff");
  await panel.locator('.frame[aria-label*="stream offset"]').press("0");
  await settled(section);
  expect(!(await box.isVisible()), "showing all leaves the handoff open");
}

/** What is drawn of a handoff has the words of its messages. */
async function checkWords(page, section, steps) {
  const waiting = page.waitForEvent("download");
  await section.locator(".save").first().click();
  const text = await readFile(await (await waiting).path(), "utf8");
  const words = await page.evaluate((text) => {
    const drawing = new DOMParser().parseFromString(text, "image/svg+xml");
    return [...drawing.querySelectorAll("text")].map((word) => word.textContent);
  }, text);
  const messages = new Set(steps.flatMap((step) => step.match(/m?s(.*): .* to .*, /)?.[1].trim() ?? []));
  // What base stations say to all, again and again, need not be near the rest.
  messages.delete("agent advertisement");
  const missing = [...messages].filter((message) => !words.includes(message));
  expect(messages.size > 0 && missing.length === 0, `of ${messages.size} kinds of messages not drawn: ${missing.join(", ")}`);
  for (const word of ["home agent", "mobile host"]) expect(words.includes(word), `no lane of the ${word}`);
}

/** A drawing for a paper: well-formed, with numbers and words on its axes, in the light colours. */
async function checkSave(page, section) {
  const waiting = page.waitForEvent("download");
  await section.locator(".save").first().click();
  const download = await waiting;
  expect(/\.svg$/.test(download.suggestedFilename()), `saved as ${download.suggestedFilename()}`);
  const text = await readFile(await download.path(), "utf8");
  const seen = await page.evaluate((text) => {
    const drawing = new DOMParser().parseFromString(text, "image/svg+xml");
    const words = [...drawing.querySelectorAll("text")].map((word) => word.textContent);
    const paths = drawing.querySelectorAll("path").length;
    return { broken: drawing.querySelector("parsererror") !== null, words, paths };
  }, text);
  expect(!seen.broken, "the drawing is no XML");
  expect(seen.paths > 5 && seen.words.length > 5, `the drawing has ${seen.paths} paths, ${seen.words.length} words`);
  expect(!/NaN|undefined|var\(--/.test(text), "the drawing has what is no number or colour");
  expect(text.includes('fill="#ffffff"'), "the drawing is not on white");
}

/** A loss, asked for with the keyboard: its story for every scheme, a rule's ID, the next loss. */
async function checkStory(page, section) {
  const story = section.locator(".story");
  const lossy = section.locator(".panel", { hasText: "local retransmission" }).first();
  const panel = (await lossy.count()) > 0 ? lossy : section.locator(".panel").first();
  const frame = panel.locator('.frame[aria-label*="stream offset"]');
  await frame.focus();
  await page.keyboard.press("Enter");
  await settled(section);
  if (!(await story.isVisible())) {
    const losses = await panel.locator("p").first().innerText();
    return expect(!losses.includes("loss"), "Enter tells no story where there are losses");
  }
  const sentences = await story.locator("article p").allInnerTexts();
  const panels = await section.locator(".panel:not([hidden])").count();
  expect(sentences.length === panels, `${sentences.length} stories of ${panels} panels`);
  expect(sentences.every((text) => /^(Sent by|Sent at|These bytes)/.test(text)), `stories: ${sentences}`);
  // Some loss of a scheme that repairs locally names the rule that acted.
  const named = async () => /(SNOOP|MOD|RESTART)/.test(await story.innerText());
  for (let i = 0; i < 60 && (await lossy.count()) > 0 && !(await named()); i++) {
    await story.locator("button", { hasText: "loss ›" }).click();
  }
  expect((await lossy.count()) === 0 || (await named()), "no story names a rule");
  const heading = await story.locator("h3").innerText();
  await story.locator("button", { hasText: "segment ›" }).click();
  expect((await story.locator("h3").innerText()) !== heading, "the next segment has the same bytes");
  const before = String(await shown(section));
  await story.locator("button", { hasText: "Zoom" }).click();
  await settled(section);
  expect(String(await shown(section)) !== before, "zooming to a story shows the same");
  const inside = await story.evaluate((element) => element.scrollWidth <= element.clientWidth + 1);
  expect(inside, "a story is wider than its box");
  await page.keyboard.press("Escape");
  await settled(section);
  expect(!(await story.isVisible()), "Escape does not close the story");
  await frame.focus();
  await page.keyboard.press("0");
  await settled(section);
  await page.mouse.click(...(await markAt(page, frame, /up to byte/)));
  await story.waitFor({ timeout: 2_000 });
  await story.locator("button", { hasText: "Close" }).click();
}

/** In the page: for each canvas, pixels inside the axes that are neither empty nor grid. */
function paintedPixels(section) {
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--grid");
  probe.fillRect(0, 0, 1, 1);
  const grid = probe.getImageData(0, 0, 1, 1).data;
  return [...section.querySelectorAll(".uplot")].map((plot) => {
    const canvas = plot.querySelector("canvas");
    const over = plot.querySelector(".u-over").getBoundingClientRect();
    const whole = canvas.getBoundingClientRect();
    const ratio = canvas.width / whole.width;
    const box = [over.left - whole.left, over.top - whole.top, over.width, over.height];
    const { data } = canvas.getContext("2d").getImageData(...box.map((length) => Math.round(length * ratio)));
    let painted = 0;
    for (let i = 0; i < data.length; i += 4) {
      const away = Math.abs(data[i] - grid[0]) + Math.abs(data[i + 1] - grid[1]) + Math.abs(data[i + 2] - grid[2]);
      if (data[i + 3] > 60 && away > 40) painted++;
    }
    return painted;
  });
}

/** What the frames of a section show, as they tell those who cannot see. */
function shown(section) {
  const told = (frames) => frames.map((frame) => frame.getAttribute("aria-description"));
  return section.locator(".frame").evaluateAll(told);
}

/** Two frames later, everything asked for is painted. */
function settled(section) {
  return section.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/** What the canvases of a section show. */
function picture(section) {
  return section.evaluate((element) => [...element.querySelectorAll("canvas")].map((canvas) => canvas.toDataURL()).join());
}

async function checkZoom(page, section) {
  const whole = await shown(section);
  const frame = section.locator(".frame").first();
  const box = await frame.locator(".u-over").boundingBox();
  const at = (across, down) => [box.x + box.width * across, box.y + box.height * down];
  const changes = async (what, act) => {
    const [before, drawn] = [(await shown(section))[0], await picture(section)];
    await act();
    await settled(section);
    // The same named places may be in sight, further apart.
    const changed = (await shown(section))[0] !== before || (await picture(section)) !== drawn;
    expect(changed, `${what} does not change the axis "${before}"`);
  };
  const returns = async (what, act) => {
    await act();
    await settled(section);
    expect(String(await shown(section)) === String(whole), `${what} does not show all again`);
  };
  await changes("a drag", async () => {
    await page.mouse.move(...at(0.3, 0.5));
    await page.mouse.down();
    await page.mouse.move(...at(0.45, 0.52), { steps: 4 });
    await page.mouse.move(...at(0.6, 0.5), { steps: 4 });
    await page.mouse.up();
  });
  const level = (await shown(section)).map((text) => text.split(";")[0]);
  expect(new Set(level).size === 1, `linked axes differ: ${level}`);
  await returns("a double click", () => page.mouse.dblclick(...at(0.5, 0.5)));
  await page.waitForTimeout(400);
  expect(!(await section.locator(".story").isVisible()), "a double click opens a story");
  await changes("the wheel", async () => {
    await page.mouse.move(...at(0.5, 0.5));
    await page.mouse.wheel(0, -300);
    await page.waitForTimeout(50);
  });
  await returns("the key 0", () => page.keyboard.press("0"));
  await changes("the key +", () => page.keyboard.press("+"));
  await changes("the right arrow", () => page.keyboard.press("ArrowRight"));
  await returns("Escape", () => page.keyboard.press("Escape"));
}

async function checkLegend(section) {
  const button = section.locator(".legend button").last();
  const before = await picture(section);
  await button.click();
  await settled(section);
  expect((await button.getAttribute("aria-pressed")) === "false", "a legend button stays pressed");
  expect((await picture(section)) !== before, "hiding something changes nothing");
  await button.click();
  await settled(section);
  expect((await picture(section)) === before, "showing it again does not bring it back");
}

async function checkTooltip(page, section) {
  await markAt(page, section.locator(".frame").first());
  expect(/\d/.test(await page.locator(".tooltip").innerText()), "the tooltip has no number");
}

/** Moves the pointer to something that has a tooltip, with such words in it; returns the place. */
async function markAt(page, frame, words = /./) {
  const box = await frame.locator(".u-over").boundingBox();
  const tooltip = page.locator(".tooltip");
  for (let across = 0.02; across < 1; across += 0.02) {
    for (let down = 0.05; down < 1; down += 0.05) {
      const place = [box.x + box.width * across, box.y + box.height * down];
      await page.mouse.move(...place);
      if ((await tooltip.isVisible()) && words.test(await tooltip.innerText())) return place;
    }
  }
  throw new Error(`${where}: no place in the plot has a tooltip`);
}
