// Plots beside each other, all on the same axes, both logarithmic: a panel has lines, a line cells at numbers `n`. Lines
// can be hidden, and values are told at the pointer.
const multiples = (() => {
  "use strict";

  const { element, share, decades, round } = plot;
  const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [340, 230, 52, 10, 8, 26];

  const stroke = (way) => ({ stroke: `var(--${way.colour})`, "stroke-width": way.width, "stroke-dasharray": way.dash });
  const shownLines = (panel, hidden) => panel.lines.filter(({ way }) => !hidden.has(way));

  // One scale for all panels: they are there to be compared.
  function scales({ panels, hidden, figure: { of, windows } }) {
    const cells = panels.flatMap((panel) => shownLines(panel, hidden).flatMap((line) => line.cells));
    const values = cells.flatMap((cell) => [of(cell), ...windows(cell)]).filter((value) => value > 0);
    const counts = panels.flatMap((panel) => panel.lines.flatMap((line) => line.cells.map((cell) => cell.n)));
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

  // Values at the nearest number, beside the pointer.
  function pointing(box, svg, panel, scale, { ways, hidden, figure: { of, ends, show }, at, beside }) {
    const tip = Object.assign(document.createElement("div"), { className: "tip", hidden: true });
    const mark = element("line", { class: "at", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" }, svg);
    box.append(tip);
    svg.addEventListener("pointermove", (event) => {
      const bounds = svg.getBoundingClientRect();
      const x = ((event.clientX - bounds.left) / bounds.width) * WIDTH;
      const n = scale.counts.reduce((a, b) => (Math.abs(scale.x(a) - x) <= Math.abs(scale.x(b) - x) ? a : b));
      const rows = shownLines(panel, hidden)
        .map((line) => ({ way: ways.get(line.way), cell: line.cells.find((cell) => cell.n === n) }))
        .filter(({ cell }) => cell)
        .sort((a, b) => of(b.cell) - of(a.cell));
      tip.innerHTML =
        `<b>${at(n)}</b>` +
        rows
          .map(
            ({ way, cell }) =>
              `<div>${swatch(way)}<span>${way.label}${beside(cell)}</span><span>${show(of(cell))}${between(ends(cell), show)}</span></div>`,
          )
          .join("");
      tip.hidden = rows.length === 0;
      const left = event.clientX - box.getBoundingClientRect().left;
      const room = box.clientWidth - tip.offsetWidth;
      tip.style.left = `${Math.max(-30, Math.min(left + 16, room + 30))}px`;
      tip.style.top = `${box.clientHeight - 6}px`;
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

  // What is drawn: panels with their `title`, `ways` by their ids, those that are `hidden`, a `figure` (its value `of` a
  // cell, the `ends` of its interval, its `windows`, and how to `show` it), what stands `at` a number and `beside` a
  // way's name, a `label` for those who do not see, and what is drawn `behind` the lines.
  function draw(box, drawing) {
    box.replaceChildren();
    const scale = scales(drawing);
    if (!scale) return;
    const { panels, ways, hidden, figure, label, behind } = drawing;
    for (const panel of panels) {
      const framed = document.createElement("figure");
      framed.append(Object.assign(document.createElement("figcaption"), { textContent: panel.title }));
      const attributes = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label(panel) };
      const svg = element("svg", attributes, framed);
      axes(svg, scale, figure.show);
      behind?.(svg, scale, panel);
      const lines = shownLines(panel, hidden);
      lines.forEach((line, i) => {
        const hue = stroke(ways.get(line.way));
        const shift = (i - (lines.length - 1) / 2) * Math.min(3, 14 / lines.length);
        drawLine(svg, line.cells, figure.of, scale, hue);
        drawSpread(svg, line.cells, figure, scale, hue.stroke, shift);
      });
      pointing(framed, svg, panel, scale, drawing);
      box.append(framed);
    }
  }

  // Choices of what is shown, and a button for each line.
  function controls(state, ways, redraw) {
    for (const group of document.querySelectorAll("[data-choice]")) {
      group.addEventListener("click", ({ target }) => {
        if (!target.dataset.value) return;
        state[group.dataset.choice] = target.dataset.value;
        page.choose(group, target.dataset.value);
        document.querySelector("[data-statistic]").textContent = document
          .querySelector('[data-choice="statistic"] [aria-pressed="true"]')
          .textContent.replace(/^m/, "M");
        redraw();
      });
    }
    const legend = document.querySelector(".legend");
    for (const way of ways) {
      const button = document.createElement("button");
      button.type = "button";
      button.innerHTML = swatch(way) + way.label;
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        const hide = !state.hidden.has(way.id);
        if (hide) state.hidden.add(way.id);
        else state.hidden.delete(way.id);
        button.setAttribute("aria-pressed", String(!hide));
        redraw();
      });
      legend.append(button);
    }
  }

  // What tests and styles are told once all is drawn.
  function drawn() {
    const root = document.documentElement;
    root.dataset.lines = document.querySelectorAll("#plots path.line").length;
    root.dataset.plots = "drawn";
  }

  return { size: [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM], draw, controls, drawn };
})();
