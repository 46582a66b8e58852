// Builds the page's template: one file with script and style inside, cut by the marks that
// crates/report fills: {{title}}, {{content}}, {{data}}.
//
//   node build.mjs [FILE]     writes FILE, by default the committed template

import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "../crates/report/assets/report-template.html");

const bundle = async (entry) => {
  const result = await build({
    entryPoints: [join(here, entry)],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2023",
    logLevel: "warning",
  });
  return result.outputFiles[0].text.trim();
};

const [script, style, template, licence] = await Promise.all([
  bundle("src/main.ts"),
  bundle("src/style.css"),
  readFile(join(here, "src/template.html"), "utf8"),
  readFile(join(here, "node_modules/uplot/LICENSE"), "utf8"),
]);

const fill = (text, mark, value) => {
  const parts = text.split(mark);
  if (parts.length !== 2) throw new Error(`the template has "${mark}" ${parts.length - 1} times`);
  return parts.join(value);
};
let page = fill(template, "[[licence]]", licence.trim());
page = fill(page, "[[style]]", style);
page = fill(page, "[[script]]", script);
await writeFile(target, page);
