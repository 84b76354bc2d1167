// The page: the services, and the form for calls.
const root = document.documentElement;
const byId = (id) => document.getElementById(id);

// The path before `docs`, which a proxy may have extended.
const base = new URL(".", location.href.split(/[?#]/)[0]).href;

// Maximum number of displayed messages of a response.
const SHOWN_MAX = 500;
const NOTE_CLIENT_STREAM =
  "Browsers send the whole request before they show any of the response, so these messages are sent as one body.";

// Creates an element with properties, listeners and children. Strings become text, never markup.
function h(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  element.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && typeof value !== "string") element[key] = value;
    else if (value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child || child === 0));
  return element;
}

const link = (method) => `#/${method.service.name}/${method.name}`;
const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

function makeTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // Storage may be forbidden; the theme then lasts as long as the page.
  try {
    const stored = localStorage.getItem("thalweg-theme");
    if (stored) root.dataset.theme = stored;
  } catch {
    // See above.
  }
  byId("theme").addEventListener("click", () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
    root.dataset.theme = isDark ? "light" : "dark";
    try {
      localStorage.setItem("thalweg-theme", root.dataset.theme);
    } catch {
      // See above.
    }
  });
}

function makeMenu() {
  const open = (isOpen) => {
    root.classList.toggle("menu-open", isOpen);
    byId("menu").setAttribute("aria-expanded", String(isOpen));
  };
  byId("menu").addEventListener("click", () => {
    open(!root.classList.contains("menu-open"));
    if (root.classList.contains("menu-open")) byId("filter").focus();
  });
  addEventListener("hashchange", () => open(false));
  addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName);
    if (event.key === "Escape") open(false);
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      open(true);
      byId("filter").focus();
    }
  });
}

// Paragraphs, and code between backticks.
function prose(text) {
  const paragraphs = (text ?? "").split(/\n\s*\n/).filter((paragraph) => paragraph.trim() !== "");
  return paragraphs.map((paragraph) => {
    const parts = paragraph.split(/`([^`\n]+)`/);
    return h("p", {}, ...parts.map((part, index) => (index % 2 ? h("code", {}, part) : part)));
  });
}

const firstParagraph = (text) => (text ?? "").split(/\n\s*\n/)[0];

function tag(text, kind = "") {
  return h(`span.tag${kind && `.${kind}`}`, {}, text);
}

const callTag = (method) => tag(types.callType(method), types.callType(method).replace(" ", "-"));

// The list at the side.
function makeList(schema) {
  const groups = schema.services.map((service) => {
    const items = service.methods.map((method) =>
      h(
        "li",
        {},
        h(
          "a",
          { href: link(method), class: method.isDeprecated ? "old" : "" },
          h("span", {}, method.name),
          h("i", { class: types.callType(method).replace(" ", "-"), title: types.callType(method) }),
        ),
      ),
    );
    const packageName = service.name.slice(0, -types.shortName(service.name).length).replace(/\.$/, "");
    const title = h("h2", {}, types.shortName(service.name), packageName && h("small", {}, packageName));
    return h("section", {}, title, h("ul", {}, items));
  });
  const none = h("p.none", { hidden: true }, "No method with this name.");
  byId("list").replaceChildren(...groups, none);
  byId("filter").addEventListener("input", ({ target }) => {
    const words = target.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const [index, group] of groups.entries()) {
      const name = schema.services[index].name.toLowerCase();
      for (const item of group.querySelectorAll("li")) {
        const text = `${name} ${item.textContent.toLowerCase()}`;
        item.hidden = !words.every((word) => text.includes(word));
        found += item.hidden ? 0 : 1;
      }
      group.hidden = !group.querySelector("li:not([hidden])");
    }
    none.hidden = found > 0;
  });
  byId("filter").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    location.hash = byId("list").querySelector("section:not([hidden]) li:not([hidden]) a")?.hash ?? location.hash;
  });
}

function markCurrent() {
  for (const anchor of byId("list").querySelectorAll("a")) {
    if (anchor.hash === location.hash) {
      anchor.setAttribute("aria-current", "page");
      anchor.scrollIntoView({ block: "nearest" });
    } else {
      anchor.removeAttribute("aria-current");
    }
  }
}

// The start page: all services.
function front(schema) {
  const methods = schema.services.flatMap((service) => service.methods);
  const eyebrow = `${count(schema.services.length, "service")} · ${count(methods.length, "method")}`;
  // With a single service, its name may already be the title.
  const isTitled = schema.services.length === 1 && types.shortName(schema.services[0].name) === schema.title;
  const cards = schema.services.map((service) =>
    h(
      isTitled ? "section.service.alone" : "section.service",
      {},
      !isTitled && h("h2", {}, types.shortName(service.name), h("small", {}, service.name)),
      service.isDeprecated && tag("deprecated", "warn"),
      h("div.prose", {}, prose(service.comment)),
      h(
        "ul.methods",
        {},
        service.methods.map((method) =>
          h(
            "li",
            {},
            h(
              "a",
              { href: link(method) },
              h("span.name", {}, method.name, method.isDeprecated && tag("deprecated", "warn")),
              callTag(method),
              h("span.about", {}, firstParagraph(method.comment).replaceAll("`", "")),
            ),
          ),
        ),
      ),
    ),
  );
  const hasComments =
    methods.length === 0 ||
    schema.services.some((service) => service.comment || service.methods.some((m) => m.comment));
  return [
    h("p.eyebrow", {}, isTitled ? `${schema.services[0].name} · ${count(methods.length, "method")}` : eyebrow),
    h("h1", {}, schema.title),
    h("div.lede", {}, prose(schema.description)),
    cards,
    !hasComments && h("p.hint", {}, "The descriptors of these services have no comments."),
  ];
}

// A method: description, form, command lines, types.
function methodPage(schema, method) {
  const draft = draftOf(schema, method);
  const commands = makeCommands(method, draft);
  const http = method.http.map(([kind, path]) => h("li", {}, h("b", {}, kind), h("code", {}, path)));
  return [
    h("p.eyebrow", {}, method.service.name),
    h("h1.method", {}, method.name),
    h(
      "div.tags",
      {},
      callTag(method),
      method.hasNoSideEffects && tag("no side effects"),
      (method.isDeprecated || method.service.isDeprecated) && tag("deprecated", "warn"),
    ),
    h("div.prose.lede", {}, prose(method.comment)),
    h(
      "p.signature",
      {},
      "rpc ",
      method.name,
      "(",
      method.isClientStreaming && h("em", {}, "stream "),
      typeLink(method.input),
      ") returns (",
      method.isServerStreaming && h("em", {}, "stream "),
      typeLink(method.output),
      ")",
    ),
    h("div.desk", {}, makeForm(schema, method, draft, commands.update)),
    commands.element,
    http.length > 0 && h("section", {}, h("h2", {}, "As JSON over HTTP"), h("ul.http", {}, http)),
    h("section", {}, h("h2", {}, "Types"), typeList(schema, method)),
  ];
}

// Input is kept as long as the page is open.
const drafts = new Map();

function draftOf(schema, method) {
  const key = link(method);
  if (!drafts.has(key)) {
    const example = JSON.stringify(types.example(schema, method.input), null, 2);
    drafts.set(key, { messages: [example], metadata: "", timeout: "" });
  }
  return drafts.get(key);
}

// Returns the call from the form, or the form's error.
function readDraft(method, draft) {
  const lines = draft.metadata.split("\n").filter((line) => line.trim() !== "");
  const metadata = [];
  for (const line of lines) {
    const [, name, value] = /^\s*([^:\s]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
    if (name === undefined) return { problem: `Invalid metadata: ${line}; use “name: value”.` };
    metadata.push([name.toLowerCase(), value]);
  }
  const isStream = method.isClientStreaming || method.isServerStreaming;
  const timeoutMs = draft.timeout.trim() === "" ? undefined : Number(draft.timeout);
  if (timeoutMs !== undefined && !(Number.isInteger(timeoutMs) && timeoutMs > 0 && timeoutMs < 1e10)) {
    return { problem: "Invalid deadline; use a number of milliseconds." };
  }
  const name = `${method.service.name}/${method.name}`;
  return { call: { base, method: name, isStream, messages: draft.messages, metadata, timeoutMs } };
}

function makeForm(schema, method, draft, changed) {
  const messages = h("div.messages");
  const answer = makeAnswer();
  const problem = h("p.problem", { role: "alert", hidden: true });
  const send = h("button.primary", { type: "submit" }, "Call");
  const stop = h("button", { type: "button", hidden: true }, "Stop");

  const drawMessages = () => {
    messages.replaceChildren(
      ...draft.messages.map((text, index) => messageField(text, index)),
      method.isClientStreaming
        ? h("button.add", { type: "button", onclick: () => addMessage() }, "Add a message")
        : "",
    );
  };
  const messageField = (text, index) => {
    const label = method.isClientStreaming ? `Message ${index + 1}` : "Message";
    const fault = h("p.fault", { hidden: true });
    const field = h("textarea", {
      spellcheck: "false",
      autocomplete: "off",
      "aria-label": `${label}, JSON`,
      oninput: () => {
        draft.messages[index] = field.value;
        grow(field);
        tell(fault, field);
        changed();
      },
    });
    field.value = text;
    const remove = () => {
      draft.messages.splice(index, 1);
      drawMessages();
      changed();
    };
    const head = h(
      "div.field-head",
      {},
      h("span", {}, label),
      typeLink(method.input),
      method.isClientStreaming &&
        h("button.quiet", { type: "button", "aria-label": `Remove message ${index + 1}`, onclick: remove }, "Remove"),
    );
    requestAnimationFrame(() => grow(field));
    return h("div.field", {}, head, field, fault);
  };
  const addMessage = () => {
    draft.messages.push(draft.messages.at(-1) ?? JSON.stringify(types.example(schema, method.input), null, 2));
    drawMessages();
    changed();
    messages.querySelector(".field:last-of-type textarea").focus();
  };

  const metadata = h("textarea.low", {
    spellcheck: "false",
    autocomplete: "off",
    placeholder: "name: value",
    "aria-label": "Metadata, one “name: value” per line",
    oninput: () => {
      draft.metadata = metadata.value;
      grow(metadata);
      changed();
    },
  });
  metadata.value = draft.metadata;
  const timeout = h("input", {
    inputmode: "numeric",
    autocomplete: "off",
    placeholder: "none",
    "aria-label": "Deadline in milliseconds",
    oninput: () => {
      draft.timeout = timeout.value;
      changed();
    },
  });
  timeout.value = draft.timeout;

  const submit = async (event) => {
    event.preventDefault();
    const { call, problem: found } = readDraft(method, draft);
    problem.hidden = found === undefined;
    problem.textContent = found ?? "";
    if (found !== undefined) return;
    const abort = new AbortController();
    stop.onclick = () => abort.abort();
    stop.hidden = false;
    send.disabled = true;
    const isStopFocused = () => document.activeElement === stop;
    answer.begin();
    const result = await connect.call({ ...call, url: call.base + call.method, signal: abort.signal }, answer);
    answer.end(result);
    send.disabled = false;
    if (isStopFocused()) send.focus();
    stop.hidden = true;
  };
  const hurry = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !send.disabled) form.requestSubmit();
  };
  const form = h(
    "form.panel.request",
    { onsubmit: submit, onkeydown: hurry, "aria-label": "Request" },
    h("h2", {}, "Request"),
    messages,
    method.isClientStreaming && h("p.hint", {}, NOTE_CLIENT_STREAM),
    h(
      "div.row",
      {},
      h("label.field", {}, h("span.field-head", {}, "Metadata"), metadata),
      h("label.field.short", {}, h("span.field-head", {}, "Deadline, ms"), timeout),
    ),
    problem,
    h("div.actions", {}, send, stop, h("span.hint.keys", {}, h("kbd", {}, "Ctrl"), " ", h("kbd", {}, "Enter"))),
  );
  drawMessages();
  requestAnimationFrame(() => grow(metadata));
  return [form, answer.element];
}

// Fits a field's height to its text, within the style's bounds.
function grow(field) {
  field.rows = Math.max(field.classList.contains("low") ? 1 : 3, field.value.split("\n").length);
}

// Reports where a text is not JSON. The server checks the rest.
function tell(fault, field) {
  let problem = "";
  try {
    if (field.value.trim() !== "") JSON.parse(field.value);
  } catch (error) {
    problem = `Invalid JSON: ${error.message}`;
  }
  fault.textContent = problem;
  fault.hidden = problem === "";
  field.setAttribute("aria-invalid", String(problem !== ""));
}

// Shows the response as it arrives.
function makeAnswer() {
  const state = h("p.state", { role: "status" }, "Not called yet.");
  const error = h("div.error", { hidden: true });
  const list = h("ol.came");
  const extra = h("div.extra");
  const title = h("h2", {}, "Response");
  const element = h("section.panel.answer", { "aria-label": "Response" }, title, state, error, list, extra);
  let start = 0;
  let number = 0;
  const since = () => performance.now() - start;
  const told = (kind, ...parts) => {
    state.className = `state ${kind}`;
    state.replaceChildren(...parts);
    element.dataset.state = kind;
  };
  const stored = (title, pairs) => {
    if (pairs.length === 0) return;
    const rows = pairs.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
    extra.append(h("details", {}, h("summary", {}, title, h("small", {}, pairs.length)), h("dl.pairs", {}, rows)));
  };
  return {
    element,
    begin() {
      start = performance.now();
      number = 0;
      error.hidden = true;
      list.replaceChildren();
      extra.replaceChildren();
      element.dataset.count = 0;
      told("runs", "Calling …");
    },
    head(pairs) {
      stored("Headers", pairs);
    },
    message(text) {
      number += 1;
      const head = h("div.field-head", {}, h("span", {}, `Message ${number}`), h("small", {}, duration(since())));
      list.append(h("li", {}, head, h("pre", { tabIndex: 0 }, painted(pretty(text)))));
      if (number > SHOWN_MAX) list.firstChild.remove();
      element.dataset.count = number;
      told("runs", "Calling …", h("small", {}, `${count(number, "message")} so far`));
    },
    end({ error: failed, trailers }) {
      const facts = h("small", {}, `${duration(since())} · ${count(number, "message")}`);
      const left = number > SHOWN_MAX ? h("small", {}, `the last ${SHOWN_MAX} are shown`) : "";
      if (failed) {
        told("failed", h("b", {}, failed.code.toUpperCase()), facts, left);
        error.replaceChildren(h("p", {}, failed.message || "No message."), ...failed.details.map(detail));
        error.hidden = false;
      } else {
        told("ok", h("b", {}, "OK"), facts, left);
      }
      stored("Trailers", trailers);
    },
  };
}

// An error detail: as explained by the server, otherwise its bytes.
function detail({ type, value, debug }) {
  const shown = debug === undefined ? (value ?? "") : pretty(JSON.stringify(debug));
  return h("div.detail", {}, h("code", {}, type ?? ""), h("pre", { tabIndex: 0 }, painted(shown)));
}

const duration = (ms) => (ms < 1000 ? `${ms.toFixed(ms < 10 ? 1 : 0)} ms` : `${(ms / 1000).toFixed(2)} s`);

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

// JSON with syntax colours.
function painted(text) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(/("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d[\d.eE+-]*/g)) {
    parts.push(text.slice(at, found.index));
    const kind = found[2] !== undefined ? "name" : found[1] !== undefined ? "text" : "value";
    parts.push(h(`span.${kind}`, {}, found[1] ?? found[0]), found[2] ?? "");
    at = found.index + found[0].length;
  }
  return [...parts, text.slice(at)];
}

function makeCommands(method, draft) {
  const names = Object.keys(lines);
  let current = names[0];
  const shown = h("pre.command", { tabIndex: 0 });
  const copy = h("button.quiet", { type: "button" }, "Copy");
  const choices = h("div.choices", { role: "group", "aria-label": "Which program" });
  const update = () => {
    const { call, problem } = readDraft(method, draft);
    shown.textContent = problem ?? lines[current](call);
    copy.disabled = problem !== undefined;
  };
  for (const name of names) {
    const choose = () => {
      current = name;
      for (const button of choices.children) button.setAttribute("aria-pressed", String(button.textContent === name));
      update();
    };
    choices.append(h("button", { type: "button", "aria-pressed": String(name === current), onclick: choose }, name));
  }
  copy.addEventListener("click", async () => {
    const isCopied = await copied(shown);
    copy.textContent = isCopied ? "Copied" : "Selected";
    setTimeout(() => (copy.textContent = "Copy"), 1500);
  });
  update();
  const head = h("div.section-head", {}, h("h2", {}, "On the command line"), choices);
  return { update, element: h("section.commands", {}, head, h("div.copyable", {}, shown, copy)) };
}

// Pages without TLS have no clipboard access: selects the text instead.
async function copied(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(element);
    return false;
  }
}

const typeId = (fullName) => `type-${fullName}`;

function typeLink(kind) {
  if (types.isScalar(kind)) return h("span.scalar", {}, kind);
  if (types.formOf(kind) !== undefined) return h("span.scalar", { title: kind }, types.shortName(kind));
  const show = (event) => {
    const target = byId(typeId(kind));
    if (!target) return;
    event.preventDefault();
    target.open = true;
    target.scrollIntoView({ block: "start" });
    target.querySelector("summary").focus({ preventScroll: true });
  };
  return h("a.type", { href: location.hash, title: kind, onclick: show }, types.shortName(kind));
}

function typeList(schema, method) {
  const own = [method.input, method.output];
  const isShown = (name) => own.includes(name) || types.formOf(name) === undefined;
  return types.reachable(schema, own).filter(isShown).map((name) => {
    const role = [name === method.input && "request", name === method.output && "response"].filter(Boolean).join(", ");
    const message = schema.messages[name];
    const type = message ?? schema.enums[name];
    const rows = message ? message.fields.map(fieldRow) : type.values.map(valueRow);
    const form = types.formOf(name);
    const empty = form === undefined ? "No fields." : `In JSON: ${form}`;
    return h(
      "details.type-of",
      { id: typeId(name), open: own.includes(name) },
      h(
        "summary",
        {},
        h("b", {}, types.shortName(name)),
        h("small", {}, name),
        !message && tag("enum"),
        role && tag(role, "role"),
        type.isDeprecated && tag("deprecated", "warn"),
      ),
      h("div.prose", {}, prose(type.comment)),
      rows.length > 0 ? h("dl.fields", {}, rows) : h("p.hint", {}, empty),
    );
  });
}

function fieldRow(field) {
  const kind = typeLink(field.kind);
  const isMap = field.key !== undefined;
  const shown = isMap ? ["map<", field.key, ", ", kind, ">"] : [field.isRepeated && "repeated ", kind];
  const form = types.formOf(field.kind);
  const notes = [
    form !== undefined && h("small", {}, `JSON: ${form}`),
    field.isRequired && tag("required", "strong"),
    field.isOptional && tag("optional"),
    field.oneof !== undefined && tag(`one of ${field.oneof}`),
    field.isOutputOnly && tag("output only"),
    field.isInputOnly && tag("input only"),
    field.isImmutable && tag("immutable"),
    field.isDeprecated && tag("deprecated", "warn"),
  ].filter(Boolean);
  return [
    h("dt", {}, h("code", {}, field.jsonName), h("small", {}, `${field.number}`)),
    h("dd", {}, h("div.kind", {}, h("span", {}, shown), notes), h("div.prose", {}, prose(field.comment))),
  ];
}

function valueRow(value) {
  return [
    h("dt", {}, h("code", {}, value.name), h("small", {}, `${value.number}`)),
    h("dd", {}, value.isDeprecated && tag("deprecated", "warn"), h("div.prose", {}, prose(value.comment))),
  ];
}

function show(schema) {
  const [, serviceName, methodName] = decodeURIComponent(location.hash).split("/");
  const service = schema.services.find((service) => service.name === serviceName);
  const method = service?.methods.find((method) => method.name === methodName);
  const parts = method ? methodPage(schema, method) : front(schema);
  byId("content").replaceChildren(...parts.flat(Infinity).filter(Boolean));
  document.title = method ? `${method.name} · ${schema.title}` : schema.title;
  markCurrent();
  scrollTo(0, 0);
}

async function start() {
  makeTheme();
  makeMenu();
  const content = byId("content");
  let schema;
  try {
    const response = await fetch(new URL("docs/services.json", base));
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    schema = await response.json();
  } catch (error) {
    content.replaceChildren(h("p.notice", {}, `Failed to read the services: ${error.message}`));
    return;
  }
  for (const service of schema.services) for (const method of service.methods) method.service = service;
  byId("title").textContent = schema.title;
  byId("footer").textContent = `Made by ${schema.server}. This page loads nothing from other sites.`;
  makeList(schema);
  show(schema);
  // A link within the page does not open another page.
  addEventListener("hashchange", () => {
    if (location.hash === "" || location.hash.startsWith("#/")) {
      show(schema);
      content.focus({ preventScroll: true });
    }
  });
  root.dataset.ready = "true";
}

start();
