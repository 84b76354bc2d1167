// Operates the page like a user, and reports what it sees to the test.
(async () => {
  // The page finishes loading once the test has received all reports; until then the browser stays.
  new Image().src = "/hold";
  const $ = (selector) => document.querySelector(selector);
  const $$ = (selector) => [...document.querySelectorAll(selector)];
  const report = (name, value) => fetch("/report", { method: "POST", body: `${name}: ${value}` });
  addEventListener("error", ({ message }) => report("fault", message));
  addEventListener("unhandledrejection", ({ reason }) => report("fault", reason));
  addEventListener("securitypolicyviolation", (event) => report("fault", `policy: ${event.violatedDirective}`));

  const until = async (what, found) => {
    for (let turn = 0; turn < 600; turn += 1) {
      const value = found();
      if (value) return value;
      await new Promise((done) => setTimeout(done, 20));
    }
    throw new Error(`timed out waiting for ${what}`);
  };
  const type = (field, text) => {
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const sticksOut = () => Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth);
  const open = async (method) => {
    location.hash = `#/library.v1.Library/${method}`;
    await until(method, () => $("h1")?.textContent === method);
    await report(`${method} sticks out`, sticksOut());
  };
  const ended = () => until("an end", () => ["ok", "failed"].includes($(".answer").dataset.state));
  const call = async (name, { messages, metadata = "", deadline = "" }) => {
    for (const [index, message] of messages.entries()) {
      if (index > 0) $(".add").click();
      type($$(".messages textarea")[index], message);
    }
    type($("textarea.low"), metadata);
    type($("[inputmode=numeric]"), deadline);
    $(".primary").click();
    return name;
  };
  const shown = async (name) => {
    await ended();
    await report(`${name} ended`, $(".state b").textContent);
    await report(`${name} messages`, $$(".came pre").map((pre) => JSON.stringify(JSON.parse(pre.textContent))).join(" "));
    await report(`${name} error`, $(".error").hidden ? "" : $(".error").textContent);
    const extra = $$(".extra details").map((part) => part.textContent).find((text) => text.startsWith("Trailers"));
    await report(`${name} trailers`, extra ?? "");
    await report(`${name} sticks out then`, sticksOut());
  };
  const commands = async (name) => {
    for (const button of $$(".choices button")) {
      button.click();
      await report(`${name} ${button.textContent}`, $(".command").textContent);
    }
  };

  await until("readiness", () => document.documentElement.dataset.ready);
  await report("width", innerWidth);
  await report("dark", matchMedia("(prefers-color-scheme: dark)").matches);
  await report("front sticks out", sticksOut());
  await report("front", $$(".methods a .name").map((name) => name.textContent).join(" "));

  // The list at the side, by keyboard.
  dispatchEvent(new KeyboardEvent("keydown", { key: "/" }));
  await report("focus", document.activeElement.id);
  type($("#filter"), "lib watch");
  await report("found", $$("#list li:not([hidden]) a").map((link) => link.textContent).join(" "));
  $("#filter").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
  await until("WatchBooks", () => $("h1")?.textContent === "WatchBooks");
  await report("menu", document.documentElement.classList.contains("menu-open"));
  const colour = getComputedStyle(document.body).backgroundColor;
  $("#theme").click();
  await report("theme changes", getComputedStyle(document.body).backgroundColor !== colour);

  await open("GetBook");
  await call("get", { messages: ['{ "name": "it\'s <b>" }'], metadata: "X-Who: me\nx-two: 2", deadline: "60000" });
  await shown("GetBook");
  await commands("GetBook");
  await report("elements from texts", $$("main img, main b b, main script").length);
  type($(".messages textarea"), '{ "name": ');
  await report("no JSON", $(".fault").textContent.startsWith("Invalid JSON"));
  type($("textarea.low"), "no colon");
  $(".primary").click();
  await report("no metadata", $(".problem").textContent);

  await open("UpdateBook");
  await call("update", { messages: ["{}"] });
  await shown("UpdateBook");

  await open("WatchBooks");
  await call("watch", { messages: ['{"limit":2}'] });
  // The server sends the second when the first is reported as shown.
  await until("a first message", () => $$(".came li").length === 1);
  await report("WatchBooks seen", $(".answer").dataset.state);
  await shown("WatchBooks");

  await open("ImportBooks");
  await call("import", { messages: ['{"title":"One"}', '{"title":"Zwei ü"}'] });
  await shown("ImportBooks");
  await commands("ImportBooks");

  await open("Ask");
  await call("ask", { messages: ['{"text":"Where?"}', '{"text":"When?"}'] });
  await shown("Ask");

  await open("WatchBooks");
  await call("stopped", { messages: ["{}"], metadata: "x-hold: yes" });
  await until("a call", () => $(".answer").dataset.state === "runs" && $$(".came li").length === 1);
  $$(".actions button")[1].click();
  await shown("Stopped");
  await call("late", { messages: ["{}"], metadata: "x-hold: yes", deadline: "200" });
  await shown("Late");

  await open("LockBook");
  await call("lost", { messages: ["{}"] });
  await shown("LockBook");
  await report("openapi", await (await fetch("/openapi.json")).text());
  await report("done", "");
})().catch((error) => fetch("/report", { method: "POST", body: `fault: ${error.stack}` }));
