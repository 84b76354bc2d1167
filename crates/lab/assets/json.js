// Chooses the message whose bars are shown, has tables sort, and draws when calls took long and what sizes make of the
// ratio. The words and the bars are in the page already.
(() => {
  "use strict";

  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const { element, share, decades, round } = plot;
  const { time } = page.figures;
  const [WIDTH, LEFT, RIGHT, TOP, BOTTOM] = [340, 52, 10, 8, 26];

  function panel(box, title, height, label) {
    const figure = document.createElement("figure");
    figure.append(Object.assign(document.createElement("figcaption"), { textContent: title }));
    box.append(figure);
    return element("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label }, figure);
  }

  // A logarithmic axis; where a value is on it.
  function upwards(svg, height, [low, high], show, marks = decades(low, high)) {
    const y = (value) => height - BOTTOM - (height - TOP - BOTTOM) * share(value, low, high);
    for (const value of marks) {
      element("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }, svg);
      element("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, svg, round(show(value)));
    }
    return y;
  }

  // The windows of each way behind each other: half of all calls lie under the line, 99 % under the one of dashes, and
  // the longest are dots.
  function drawSpikes(box) {
    const HEIGHT = 170;
    const windows = data.spikes.flatMap(({ windows }) => windows);
    const times = windows.flatMap(({ p50, calls }) => [p50, ...calls.map(([, took]) => took)]);
    const ends = [Math.min(...times) * 0.8, Math.max(...times) * 1.25];
    for (const { way, colour, windows } of data.spikes) {
      const svg = panel(box, way, HEIGHT, `The longest calls of ${way} over time. The table below has the longest.`);
      const y = upwards(svg, HEIGHT, ends, time);
      const all = windows.reduce((sum, { s }) => sum + s, 0);
      const x = (s) => LEFT + ((WIDTH - LEFT - RIGHT) * s) / all;
      let begin = 0;
      windows.forEach(({ s, p50, p99, calls }, i) => {
        if (i > 0) element("line", { class: "at", x1: x(begin), x2: x(begin), y1: TOP, y2: HEIGHT - BOTTOM }, svg);
        for (const [name, value] of Object.entries({ median: p50, p99 })) {
          const d = `M${x(begin).toFixed(1)} ${y(value).toFixed(1)}H${x(begin + s).toFixed(1)}`;
          element("path", { class: `line ${name}`, d, stroke: `var(--${colour})` }, svg);
        }
        for (const [at, took] of calls) {
          const dot = { cx: x(begin + at).toFixed(1), cy: y(took).toFixed(1), r: 2.2, fill: `var(--${colour})` };
          const title = `${time(took)}, ${time(at * 1e9)} into window ${i + 1}`;
          element("title", {}, element("circle", dot, svg), title);
        }
        begin += s;
      });
      element("text", { x: LEFT, y: HEIGHT - 8, "text-anchor": "middle" }, svg, "0 s");
      element("text", { x: WIDTH - RIGHT, y: HEIGHT - 8, "text-anchor": "end" }, svg, time(all * 1e9));
    }
  }

  // Both axes are logarithmic.
  function drawSizes(box) {
    const HEIGHT = 230;
    const points = data.sizes.flatMap(({ lines }) => lines.flatMap(({ points }) => points));
    const ratios = points.flatMap(({ ratio, ends }) => [ratio, ...(ends ?? [])]);
    const ends = [Math.min(0.9, ...ratios) * 0.95, Math.max(1.1, ...ratios) * 1.05];
    const marks = [0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 20, 50, 100];
    const seen = marks.filter((value) => value >= ends[0] && value <= ends[1]);
    const counts = [...new Set(points.map(({ n }) => n))].sort((a, b) => a - b);
    for (const { title, lines } of data.sizes) {
      const svg = panel(box, title, HEIGHT, `${title}, over the number of strings. The table below has all values.`);
      const y = upwards(svg, HEIGHT, ends, (value) => `${value} ×`, seen);
      const x = (n) => LEFT + 8 + (WIDTH - LEFT - RIGHT - 16) * share(n, counts[0], counts.at(-1));
      element("line", { class: "one", x1: LEFT, x2: WIDTH - RIGHT, y1: y(1), y2: y(1) }, svg);
      let free = -Infinity;
      for (const n of counts) {
        const [text, half] = [n.toLocaleString("en").replaceAll(",", " "), 3.2 * String(n).length];
        if (x(n) - half < free) continue;
        free = x(n) + half + 6;
        const anchor = n === counts.at(-1) && counts.length > 1 ? "end" : "middle";
        element("text", { x: x(n) + (anchor === "end" ? 8 : 0), y: HEIGHT - 8, "text-anchor": anchor }, svg, text);
      }
      lines.forEach(({ name, colour, points }, i) => {
        const stroke = `var(--${colour})`;
        // Lines stand a little apart, so that their intervals do not hide each other.
        const at = ({ n }) => (x(n) + 2.4 * (i - (lines.length - 1) / 2)).toFixed(1);
        const d = `M${points.map((point) => `${at(point)} ${y(point.ratio).toFixed(1)}`).join("L")}`;
        element("path", { class: "line", d, stroke, "stroke-width": 2 }, svg);
        for (const point of points) {
          if (point.ends) {
            const [low, high] = point.ends.map((value) => y(value).toFixed(1));
            element("path", { class: "bar-of", d: `M${at(point)} ${low}V${high}`, stroke }, svg);
          }
          const dot = element("circle", { cx: at(point), cy: y(point.ratio).toFixed(1), r: 2.8, fill: stroke }, svg);
          element("title", {}, dot, `${name}, ${point.n} strings: ${point.ratio.toPrecision(3)} ×`);
        }
      });
    }
  }

  const drawings = { spikes: drawSpikes, sizes: drawSizes };
  for (const [name, draw] of Object.entries(drawings)) {
    const box = document.querySelector(`[data-plots="${name}"]`);
    if (box) draw(box);
  }
  for (const group of document.querySelectorAll("[data-choice]")) {
    group.addEventListener("click", ({ target }) => {
      if (!target.dataset.value) return;
      page.choose(group, target.dataset.value);
      for (const bars of group.closest("section").querySelectorAll("[data-shape]")) {
        bars.hidden = bars.dataset.shape !== target.dataset.value;
      }
    });
  }
  page.makeTheme();
  for (const table of document.querySelectorAll(".scroll > table")) {
    if (table.querySelector("thead button")) page.makeSortable(table);
  }
  const count = (selector) => document.querySelectorAll(selector).length;
  Object.assign(root.dataset, {
    bars: count(".way"),
    dots: count('[data-plots="spikes"] circle'),
    lines: count('[data-plots="sizes"] path.line'),
  });
})();
