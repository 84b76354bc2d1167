// Draws the plots of a channels study and makes its table sortable. The words and the tables are in the page already.
(() => {
  "use strict";

  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const state = { call: data.calls[0], statistic: "p50", hidden: new Set() };
  const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [340, 230, 52, 10, 8, 26];

  const { choose } = page;
  const { rate, time } = page.figures;
  const figures = {
    rate: { of: (cell) => cell.rate, ends: (cell) => cell.rate_ends, windows: (cell) => cell.windows, show: rate },
    latency: {
      of: (cell) => cell[state.statistic],
      // Of the median alone it is known how sure it is.
      ends: (cell) => (state.statistic === "p50" ? cell.p50_ends : null),
      windows: () => [],
      show: time,
    },
  };

  const { element, share, decades, round } = plot;
  const panels = () => data.panels.filter(({ call }) => call === state.call);
  const ways = new Map(data.ways.map((way) => [way.id, way]));
  const shownLines = (panel) => panel.lines.filter(({ way }) => !state.hidden.has(way));
  const stroke = (way) => ({ stroke: `var(--${way.colour})`, "stroke-width": way.width, "stroke-dasharray": way.dash });

  // One scale for all delays: they are there to be compared.
  function scales(name) {
    const { of, windows } = figures[name];
    const cells = panels().flatMap((panel) => shownLines(panel).flatMap((line) => line.cells));
    const values = cells.flatMap((cell) => [of(cell), ...windows(cell)]).filter((value) => value > 0);
    const counts = panels().flatMap((panel) => panel.lines.flatMap((line) => line.cells.map((cell) => cell.n)));
    if (values.length === 0) return null;
    const [low, high] = [Math.min(...values) * 0.8, Math.max(...values) * 1.25];
    const [first, last] = [Math.min(...counts), Math.max(...counts)];
    const x = (n) => LEFT + (WIDTH - LEFT - RIGHT) * share(n, first, last);
    const y = (value) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share(value, low, high);
    return { low, high, x, y, counts: [...new Set(counts)].sort((a, b) => a - b) };
  }

  function axes(svg, { low, high, x, y, counts }, show) {
    for (const value of decades(low, high)) {
      element("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }, svg);
      element("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, svg, round(show(value)));
    }
    let named = -Infinity;
    for (const n of counts) {
      if (x(n) - named < 26) continue;
      named = x(n);
      element("text", { x: x(n), y: HEIGHT - 8, "text-anchor": "middle" }, svg, n);
    }
  }

  function drawLine(svg, cells, of, { x, y }, attributes) {
    const points = cells
      .filter((cell) => of(cell) > 0)
      .map((cell) => `${x(cell.n).toFixed(1)} ${y(of(cell)).toFixed(1)}`);
    if (points.length === 0) return;
    element("path", { class: "line", d: `M${points.join("L")}`, ...attributes }, svg);
    for (const point of points) {
      const [cx, cy] = point.split(" ");
      element("circle", { cx, cy, r: 2.4, fill: attributes.stroke }, svg);
    }
  }

  // How sure a figure is: its interval as a bar, and beside it the windows that it was told from as dots. Lines stand
  // a little apart, so that their bars do not hide each other.
  function drawSpread(svg, cells, { of, ends, windows }, scale, hue, shift) {
    const inside = (value) => Math.min(HEIGHT - BOTTOM, Math.max(TOP, scale.y(value))).toFixed(1);
    for (const cell of cells.filter((cell) => of(cell) > 0)) {
      const x = scale.x(cell.n) + shift;
      for (const value of windows(cell)) {
        element("circle", { class: "window", cx: (x + 2.2).toFixed(1), cy: inside(value), r: 0.9, fill: hue }, svg);
      }
      if (!ends(cell)) continue;
      const [low, high] = ends(cell).map(inside);
      const cap = `${(x - 1.6).toFixed(1)}`;
      const d = `M${x.toFixed(1)} ${low}V${high}M${cap} ${low}h3.2M${cap} ${high}h3.2`;
      element("path", { class: "bar-of", d, stroke: hue }, svg);
    }
  }

  function draw(name) {
    const box = document.querySelector(`[data-figure="${name}"]`);
    box.replaceChildren();
    const scale = scales(name);
    if (!scale) return;
    const { of, ends, show } = figures[name];
    for (const panel of panels()) {
      const figure = document.createElement("figure");
      figure.append(Object.assign(document.createElement("figcaption"), { textContent: panel.network }));
      const svg = element(
        "svg",
        {
          viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
          role: "img",
          "aria-label": `${name} over calls in flight, ${panel.network}. All values are in the table below.`,
        },
        figure,
      );
      axes(svg, scale, show);
      if (name === "rate" && panel.ideal) {
        // Cut where it leaves the plot.
        const last = Math.min(scale.counts.at(-1), scale.high / panel.ideal);
        const first = Math.max(scale.counts[0], scale.low / panel.ideal);
        const at = (n) => `${scale.x(n).toFixed(1)} ${scale.y(n * panel.ideal).toFixed(1)}`;
        if (last > first) element("path", { class: "ideal", d: `M${at(first)}L${at(last)}` }, svg);
      }
      const lines = shownLines(panel);
      lines.forEach((line, i) => {
        const hue = stroke(ways.get(line.way));
        const shift = (i - (lines.length - 1) / 2) * Math.min(3, 14 / lines.length);
        drawLine(svg, line.cells, of, scale, hue);
        drawSpread(svg, line.cells, figures[name], scale, hue.stroke, shift);
      });
      pointing(figure, svg, panel, scale, { of, ends, show });
      box.append(figure);
    }
  }

  // Values at the nearest number in flight, beside the pointer.
  function pointing(figure, svg, panel, scale, { of, ends, show }) {
    const tip = Object.assign(document.createElement("div"), { className: "tip", hidden: true });
    const mark = element("line", { class: "at", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" }, svg);
    figure.append(tip);
    svg.addEventListener("pointermove", (event) => {
      const bounds = svg.getBoundingClientRect();
      const at = ((event.clientX - bounds.left) / bounds.width) * WIDTH;
      const n = scale.counts.reduce((a, b) => (Math.abs(scale.x(a) - at) <= Math.abs(scale.x(b) - at) ? a : b));
      const rows = shownLines(panel)
        .map((line) => ({ way: ways.get(line.way), cell: line.cells.find((cell) => cell.n === n) }))
        .filter(({ cell }) => cell)
        .sort((a, b) => of(b.cell) - of(a.cell));
      tip.innerHTML =
        `<b>${n} in flight</b>` +
        rows
          .map(
            ({ way, cell }) =>
              `<div>${swatch(way)}<span>${way.label}${cell.connections === null ? "" : ` (${cell.connections})`}</span><span>${show(of(cell))}${between(ends(cell), show)}</span></div>`,
          )
          .join("");
      tip.hidden = rows.length === 0;
      const left = event.clientX - figure.getBoundingClientRect().left;
      const room = figure.clientWidth - tip.offsetWidth;
      tip.style.left = `${Math.max(-30, Math.min(left + 16, room + 30))}px`;
      tip.style.top = `${figure.clientHeight - 6}px`;
      for (const key of ["x1", "x2"]) mark.setAttribute(key, scale.x(n));
      mark.setAttribute("visibility", "visible");
    });
    svg.addEventListener("pointerleave", () => {
      tip.hidden = true;
      mark.setAttribute("visibility", "hidden");
    });
  }

  const between = (ends, show) => (ends ? ` <small>${ends.map(show).join(" – ")}</small>` : "");

  const swatch = (way) =>
    `<svg width="18" height="10" aria-hidden="true"><line x1="0" y1="5" x2="18" y2="5" stroke="var(--${way.colour})"` +
    ` stroke-width="${way.width}" stroke-dasharray="${way.dash}"/></svg>`;

  // Steps of lanes: from the warm-up to the end of the window.
  function drawLanes() {
    for (const box of document.querySelectorAll("[data-lanes]")) {
      const panel = data.lanes[Number(box.dataset.lanes)];
      const svg = element(
        "svg",
        { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Lanes over time" },
        box,
      );
      const steps = panel.series.flatMap(({ steps }) => steps);
      const begin = Math.min(...steps.map(([at]) => at));
      const end = Math.max(...panel.series.map((series) => series.end));
      const most = Math.max(2, ...steps.map(([, lanes]) => lanes));
      const x = (at) => LEFT + ((WIDTH - LEFT - RIGHT) * (at - begin)) / Math.max(end - begin, 1e-9);
      const y = (lanes) => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * lanes) / (most * 1.08);
      for (let lanes = 0; lanes <= most; lanes += Math.max(1, Math.ceil(most / 6))) {
        element("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(lanes), y2: y(lanes) }, svg);
        element("text", { x: LEFT - 6, y: y(lanes) + 4, "text-anchor": "end" }, svg, lanes);
      }
      element("line", { class: "at", x1: x(0), x2: x(0), y1: TOP, y2: HEIGHT - BOTTOM }, svg);
      element("text", { x: x(0), y: HEIGHT - 8, "text-anchor": "middle" }, svg, "measured from here");
      const ends = new Map();
      panel.series.forEach((series, i) => {
        let path = "";
        series.steps.forEach(([at, lanes], step) => {
          const until = series.steps[step + 1]?.[0] ?? series.end;
          path += `${step === 0 ? "M" : "L"}${x(at).toFixed(1)} ${y(lanes).toFixed(1)}L${x(until).toFixed(1)} ${y(lanes).toFixed(1)}`;
        });
        const shade = `color-mix(in srgb, var(--ours) ${Math.round(100 - (70 * i) / Math.max(1, panel.series.length - 1))}%, var(--muted))`;
        element("path", { class: "line", d: path, stroke: shade, "stroke-width": 2 }, svg);
        // Those that end at the same number stand beside each other.
        const [, last] = series.steps.at(-1);
        ends.set(last, [...(ends.get(last) ?? []), series.n]);
      });
      for (const [lanes, names] of ends) {
        element("text", { x: WIDTH - RIGHT, y: y(lanes) - 4, "text-anchor": "end" }, svg, names.join(", "));
      }
    }
  }

  function drawAll() {
    for (const name of Object.keys(figures)) draw(name);
    const shown = document.querySelectorAll("#plots path.line");
    root.dataset.lines = shown.length;
    root.dataset.plots = "drawn";
  }

  function makeControls() {
    for (const group of document.querySelectorAll("[data-choice]")) {
      group.addEventListener("click", ({ target }) => {
        if (!target.dataset.value) return;
        state[group.dataset.choice] = target.dataset.value;
        choose(group, target.dataset.value);
        document.querySelector("[data-statistic]").textContent = document
          .querySelector('[data-choice="statistic"] [aria-pressed="true"]')
          .textContent.replace(/^m/, "M");
        drawAll();
      });
    }
    const legend = document.querySelector(".legend");
    for (const way of data.ways) {
      const button = document.createElement("button");
      button.type = "button";
      button.innerHTML = swatch(way) + way.label;
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        const hide = !state.hidden.has(way.id);
        if (hide) state.hidden.add(way.id);
        else state.hidden.delete(way.id);
        button.setAttribute("aria-pressed", String(!hide));
        drawAll();
      });
      legend.append(button);
    }
  }

  page.makeTheme();
  page.makeSortable(document.querySelector("#figures table"));
  makeControls();
  drawAll();
  drawLanes();
})();
