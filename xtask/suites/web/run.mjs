// node run.mjs BROWSER BOOKSTORE: calls the bookstore at the address BOOKSTORE from a page in BROWSER, a line a case.

import { build } from "esbuild";
import { createServer } from "node:http";
import puppeteer from "puppeteer-core";

const [executablePath, bookstore] = process.argv.slice(2);
const bundle = await build({
  entryPoints: ["src/cases.js"],
  bundle: true,
  format: "esm",
  write: false,
  logLevel: "error",
});
const script = bundle.outputFiles[0].text;

const server = createServer((request, response) => {
  const isScript = request.url === "/cases.js";
  response.setHeader("content-type", isScript ? "text/javascript" : "text/html; charset=utf-8");
  response.end(isScript ? script : '<!doctype html><title>cases</title><script type="module" src="/cases.js"></script>');
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage();
page.on("pageerror", (error) => console.error(`the page failed: ${error}`));
await page.goto(`http://127.0.0.1:${server.address().port}/?bookstore=${encodeURIComponent(bookstore)}`);
await page.waitForFunction("window.results !== undefined", { timeout: 30_000 });
const results = await page.evaluate("window.results");
await browser.close();
server.close();
for (const { name, ok, why } of results) console.log(ok ? `ok ${name}` : `FAILED ${name}: ${why}`);
process.exit(results.every(({ ok }) => ok) ? 0 : 1);
