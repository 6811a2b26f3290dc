/**
 * Builds the page into ../static, or with `--test` the tests into a folder of their own.
 * Names of built files carry a hash of their content, so a browser may keep them for ever.
 */
import { mkdir, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const COMMON = { bundle: true, format: "esm", charset: "utf8", logLevel: "warning" };

async function page(out) {
  // Beside the target and then moved, so that a server never sees half a page.
  const fresh = `${out}.new`;
  await rm(fresh, { recursive: true, force: true });
  await mkdir(join(fresh, "assets"), { recursive: true });
  const result = await build({
    ...COMMON,
    entryPoints: [join(HERE, "src/main.ts")],
    entryNames: "page-[hash]",
    outdir: join(fresh, "assets"),
    target: ["es2022", "chrome109", "firefox115", "safari16.4"],
    minify: true,
    legalComments: "linked",
    metafile: true,
  });
  const built = Object.keys(result.metafile.outputs).map((path) => basename(path));
  const only = (ending) => {
    const found = built.filter((name) => name.endsWith(ending));
    if (found.length !== 1) throw new Error(`expected one ${ending}, got ${found.join(" ")}`);
    return `/assets/${found[0]}`;
  };
  const html = (await readFile(join(HERE, "index.html"), "utf8"))
    .replace("%STYLE%", only(".css"))
    .replace("%SCRIPT%", only(".js"));
  await writeFile(join(fresh, "index.html"), html);
  await rm(out, { recursive: true, force: true });
  await rename(fresh, out);
  console.log(`built ${built.filter((name) => !name.endsWith(".txt")).join(", ")}`);
}

async function tests(out) {
  await rm(out, { recursive: true, force: true });
  const names = await readdir(join(HERE, "test"));
  await build({
    ...COMMON,
    platform: "node",
    target: "node20",
    entryPoints: names
      .filter((name) => name.endsWith(".test.ts"))
      .map((name) => join(HERE, "test", name)),
    outdir: out,
    outExtension: { ".js": ".mjs" },
    sourcemap: "inline",
  });
}

if (process.argv[2] === "--test") await tests(resolve(process.argv[3]));
else await page(resolve(HERE, "../static"));
