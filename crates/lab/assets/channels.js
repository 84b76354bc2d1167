// Draws the plots of a channels study and makes its table sortable. The words and the tables are in the page already.
(() => {
  "use strict";

  const data = JSON.parse(document.getElementById("data").textContent);
  const state = { call: data.calls[0], statistic: "p50", hidden: new Set() };
  const { element } = plot;
  const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = multiples.size;

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

  const panels = () =>
    data.panels.filter(({ call }) => call === state.call).map((panel) => ({ ...panel, title: panel.network }));
  const ways = new Map(data.ways.map((way) => [way.id, way]));

  // Ideal scaling, cut where it leaves the plot.
  function ideal(svg, scale, panel) {
    if (!panel.ideal) return;
    const last = Math.min(scale.counts.at(-1), scale.high / panel.ideal);
    const first = Math.max(scale.counts[0], scale.low / panel.ideal);
    const at = (n) => `${scale.x(n).toFixed(1)} ${scale.y(n * panel.ideal).toFixed(1)}`;
    if (last > first) element("path", { class: "ideal", d: `M${at(first)}L${at(last)}` }, svg);
  }

  function draw(name) {
    multiples.draw(document.querySelector(`[data-figure="${name}"]`), {
      panels: panels(),
      ways,
      hidden: state.hidden,
      figure: figures[name],
      at: (n) => `${n} in flight`,
      beside: (cell) => (cell.connections === null ? "" : ` (${cell.connections})`),
      label: (panel) => `${name} over calls in flight, ${panel.network}. All values are in the table below.`,
      behind: name === "rate" ? ideal : null,
    });
  }

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
    multiples.drawn();
  }

  page.makeTheme();
  page.makeSortable(document.querySelector("#figures table"));
  multiples.controls(state, data.ways, drawAll);
  drawAll();
  drawLanes();
})();
