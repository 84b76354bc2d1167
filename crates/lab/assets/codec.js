// Draws the bars and lines of a codec study. The words and the tables are in the page already.
(() => {
  "use strict";

  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const state = { operation: data.operations[0], figure: "ns", hidden: new Set() };
  const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [340, 220, 52, 10, 8, 26];
  const codecs = new Map(data.codecs.map((codec) => [codec.name, codec]));

  const plain = (value) => value.toLocaleString("en", { maximumFractionDigits: value < 100 ? 1 : 0 });
  const figures = {
    ns: { of: (line) => line.ns, show: page.figures.time },
    rate: { of: (line) => (line.bytes * 1e9) / line.ns, show: page.figures.throughput },
    allocations: { of: (line) => line.allocations, show: plain },
    instructions: { of: (line) => line.instructions, show: plain },
  };

  function html(name, attributes, parent, text) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent?.append(made);
    return made;
  }
  const { element: svg, share, decades } = plot;

  const linesOf = (message) => data.lines.filter((line) => line.data === message && line.operation === state.operation);
  const colour = (codec) => `var(--${codecs.get(codec).format})`;

  function panel(box, message) {
    const figure = html("figure", {}, box);
    const caption = html("figcaption", {}, figure);
    html("b", {}, caption, message.name);
    html("small", {}, caption, message.about);
    return figure;
  }

  function label(row, codec, borrowed) {
    const name = html("span", { title: borrowed ? `${codec}, borrowed` : codec }, row, borrowed ? `&${codec}` : codec);
    if (codecs.get(codec).dynamic) name.className = "dynamic";
  }

  function drawBars() {
    const box = document.querySelector("[data-bars]");
    box.replaceChildren();
    const { of, show } = figures[state.figure];
    for (const message of data.data) {
      const known = linesOf(message.name).filter((line) => of(line) !== null);
      if (known.length === 0) continue;
      const figure = panel(box, message);
      const most = Math.max(...known.map(of)) || 1;
      for (const line of known.sort((a, b) => of(a) - of(b))) {
        const row = html("div", { class: "row" }, figure);
        label(row, line.codec, line.borrowed);
        const track = html("span", { class: "track" }, row);
        html("i", { style: `width:${((100 * of(line)) / most).toFixed(2)}%;background:${colour(line.codec)}` }, track);
        html("span", {}, row, show(of(line)));
      }
    }
    if (!box.hasChildNodes())
      html("p", { class: "about" }, box, "This was not counted: see what stands above, or the method.");
  }

  function drawSizes() {
    const box = document.querySelector("[data-sizes]");
    for (const message of data.data) {
      const sizes = data.sizes.filter((size) => size.data === message.name);
      if (sizes.length === 0) continue;
      const figure = panel(box, message);
      const most = Math.max(...sizes.flatMap(({ raw, gzip, zstd }) => [raw, gzip, zstd]));
      for (const size of sizes.sort((a, b) => a.raw - b.raw)) {
        const words = ["raw", "gzip", "zstd"].map((name) => `${name} ${plain(size[name])}`).join(", ");
        const row = html("div", { class: "row sizes", title: `${size.codec}: ${words}` }, figure);
        label(row, size.codec, false);
        const track = html("span", { class: "track" }, row);
        for (const name of ["raw", "gzip", "zstd"]) {
          html("i", { class: name, style: `width:${((100 * size[name]) / most).toFixed(2)}%` }, track);
        }
        html("span", {}, row, `${plain(size.raw)} B`);
      }
    }
  }

  // Both axes are logarithmic.
  function drawSteps() {
    const box = document.querySelector("[data-steps]");
    box.replaceChildren();
    for (const message of data.data) {
      const lines = linesOf(message.name).filter((line) => line.steps.length > 0 && !state.hidden.has(line.codec));
      const points = lines.flatMap((line) => line.steps);
      if (points.length === 0) continue;
      const figure = html("figure", {}, box);
      html("figcaption", {}, figure, message.name);
      const drawing = svg(
        "svg",
        {
          viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
          role: "img",
          "aria-label": `Time of a conversion of ${message.name} over the number of conversions. The last values are in the table below.`,
        },
        figure,
      );
      const counts = [...new Set(points.map(([n]) => n))].sort((a, b) => a - b);
      const times = points.map(([, ns]) => ns);
      const [low, high] = [Math.min(...times) * 0.8, Math.max(...times) * 1.25];
      const x = (n) => LEFT + (WIDTH - LEFT - RIGHT) * share(n, counts[0], counts.at(-1));
      const y = (ns) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share(ns, low, high);
      for (const value of decades(low, high, 30)) {
        svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }, drawing);
        svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, drawing, page.figures.time(value));
      }
      for (const n of counts) {
        const text = svg("text", { x: x(n), y: HEIGHT - 8, "text-anchor": "middle" }, drawing, "10");
        svg("tspan", { dy: -4, "font-size": 8 }, text, Math.round(Math.log10(n)));
      }
      for (const line of lines) {
        const at = line.steps.map(([n, ns]) => `${x(n).toFixed(1)} ${y(ns).toFixed(1)}`);
        const dash = codecs.get(line.codec).dash;
        const path = svg(
          "path",
          { d: `M${at.join("L")}`, stroke: colour(line.codec), "stroke-dasharray": dash },
          drawing,
        );
        svg("title", {}, path, line.codec);
      }
    }
    root.dataset.lines = document.querySelectorAll("#steps path[d]").length;
  }

  function drawAll() {
    drawBars();
    drawSteps();
    root.dataset.plots = "drawn";
  }

  function makeLegend() {
    const legend = document.querySelector(".legend");
    const measured = new Set(data.lines.filter((line) => line.steps.length > 0).map((line) => line.codec));
    for (const codec of data.codecs.filter(({ name }) => measured.has(name))) {
      const button = html("button", { type: "button", "aria-pressed": "true" }, legend);
      button.innerHTML = `<svg width="20" height="10" aria-hidden="true"><line x1="0" y1="5" x2="20" y2="5" stroke="${colour(codec.name)}" stroke-width="2" stroke-dasharray="${codec.dash}"/></svg>`;
      html("span", {}, button, codec.name);
      button.addEventListener("click", () => {
        const shown = state.hidden.delete(codec.name);
        if (!shown) state.hidden.add(codec.name);
        button.setAttribute("aria-pressed", String(shown));
        drawSteps();
      });
    }
  }

  for (const group of document.querySelectorAll("[data-choice]")) {
    group.addEventListener("click", ({ target }) => {
      if (!target.dataset.value) return;
      state[group.dataset.choice] = target.dataset.value;
      page.choose(group, target.dataset.value);
      drawAll();
    });
  }
  page.makeTheme();
  page.makeSortable(document.querySelector("#figures table"));
  makeLegend();
  drawSizes();
  drawAll();
})();
