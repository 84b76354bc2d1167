// Draws a run over time, and the distribution of its latencies. Texts and tables are already in the page.
(() => {
  "use strict";

  const { time, heat, spread } = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const { figures } = page;
  const { colour, resolve, swatchOf, axis, figureAxis, tooltip, placeTip } = charts;
  const plots = new Map();
  const state = {
    shares: "linear",
    hidden: new Set(spread?.lines.filter((line) => line.is_hidden).map(({ name }) => name)),
  };

  const box = (name) => document.querySelector(`[data-plot="${name}"]`);
  const some = (values) => values.some((value) => value !== null && value > 0);
  const last = (values) => values[values.length - 1];
  const faint = (hue, share) => resolve(`color-mix(in srgb, var(--${hue}) ${share}%, transparent)`);
  const whole = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, "\u202f");

  // Replaces the plot in a box. `lines`: names, hues, values, and uPlot's drawing options.
  function draw(name, { xs, lines, ends = lines, x, y, axes, tell, cursor = {}, hooks = {} }) {
    const place = box(name);
    plots.get(name)?.plot.destroy();
    const tip = tooltip();
    const named = ends.map(({ label, hue, index }, i) => ({
      name: label,
      colour: `var(--${hue})`,
      index: index ?? i + 1,
    }));
    const plot = new uPlot(
      {
        width: place.clientWidth,
        height: place.clientHeight,
        padding: [10, lineEnds.room(endNames(name, lines)), 0, 0],
        legend: { show: false },
        cursor: { points: { size: 7, width: 2 }, y: false, drag: { x: true, y: false }, ...cursor },
        scales: { x: { time: false, ...x }, y },
        axes,
        series: [
          {},
          ...lines.map(({ hue, values, label, points = lone(values), ...given }) => ({
            stroke: colour(hue),
            width: 2,
            points: { show: true, filter: () => points, size: 6, fill: colour(hue) },
            ...given,
          })),
        ],
        hooks: {
          ...hooks,
          draw: [...(hooks.draw ?? []), (u) => lineEnds.place(u, named)],
          setCursor: [
            (u) => {
              const { left, event } = u.cursor;
              const told = left >= 0 && event ? tell(u) : "";
              tip.innerHTML = told;
              tip.hidden = told === "";
              if (told) placeTip(u, tip);
            },
          ],
        },
      },
      [xs, ...lines.map(({ values }) => values)],
      place,
    );
    plot.over.append(tip);
    plots.set(name, { plot, lines });
  }

  // Values without neighbours have no line and are drawn as points.
  const isGap = (value) => value === null || value === undefined;
  const lone = (values) =>
    [...values.keys()].filter((i) => !isGap(values[i]) && isGap(values[i - 1]) && isGap(values[i + 1]));

  // Plots over time have the same space on the right, so that their time axes align.
  const endNames = (name, lines) =>
    box(name).closest("#time") ? ["in flight", "scheduled"] : lines.map(({ label }) => label);

  const row = (swatch, name, shown) => `<div>${swatch}<span>${name}</span><span>${shown}</span></div>`;

  // ---- over time ----

  const edges = time?.edges ?? [0, 1];
  const [begin, end] = [edges[0], Math.max(last(edges), edges[0] + 1e-3)];
  const middles = edges.slice(1).map((to, i) => (edges[i] + to) / 2);
  const two = (n) => String(n).padStart(2, "0");
  // `12.5 s`; `3:20` for longer runs, `1:03:20` for hours.
  const clock = (s) => {
    if (end < 180) return `${Number(s.toFixed(2))} s`;
    const [h, m] = [Math.floor(s / 3600), Math.floor((s % 3600) / 60)];
    return h > 0 ? `${h}:${two(m)}:${two(Math.floor(s % 60))}` : `${m}:${two(Math.floor(s % 60))}`;
  };
  const span = (from, to) => `<b>${clock(from)} – ${clock(to)}</b>`;
  const scaleOfTime = {
    range: (u, min, max) => (min === null || (min === middles[0] && max === last(middles)) ? [begin, end] : [min, max]),
  };
  const axisOfTime = () => ({
    ...axis(),
    size: 28,
    space: 64,
    incrs: [
      0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800,
    ],
    values: (u, at) => at.map(clock),
  });
  const together = { sync: { key: "time" } };
  const fromZero = { range: (u, min, max) => [0, Math.max(1, max ?? 1) * 1.08] };
  const logarithmic = { distr: 3, range: (u, min, max) => (min > 0 ? [min * 0.8, max * 1.25] : [1e3, 1e6]) };

  function tellAt(u, lines, show) {
    const { idx } = u.cursor;
    if (idx === null || idx === undefined) return "";
    const told = lines.map(({ hue, label, values, dash }) =>
      row(swatchOf(hue, dash ?? []), label, values[idx] === null ? "–" : show(values[idx])),
    );
    return span(edges[idx], edges[idx + 1]) + told.join("");
  }

  function drawRate() {
    const lines = [
      ...(time.scheduled
        ? [{ label: "scheduled", hue: "muted", values: time.scheduled, dash: [6, 4], width: 1.8 }]
        : []),
      { label: "OK", hue: "unary", values: time.ok, fill: faint("unary", 12) },
      ...(some(time.late) ? [{ label: "late", hue: "peer-5", values: time.late, width: 1.6 }] : []),
      ...(some(time.failed)
        ? [{ label: "failed", hue: "slower", values: time.failed, fill: faint("slower", 22) }]
        : []),
    ];
    const tell = (u) => tellAt(u, lines, figures.rate);
    draw("rate", {
      xs: middles,
      lines,
      x: scaleOfTime,
      y: fromZero,
      axes: [axisOfTime(), figureAxis({ log: false, show: figures.rate })],
      cursor: together,
      tell,
    });
    const flight = [
      { label: "in flight", hue: "server-stream", values: time.in_flight, fill: faint("server-stream", 14) },
    ];
    draw("in-flight", {
      xs: middles,
      lines: flight,
      x: scaleOfTime,
      y: fromZero,
      axes: [axisOfTime(), { ...figureAxis({ log: false, show: whole }), space: 26 }],
      cursor: together,
      tell: (u) => tellAt(u, flight, whole),
    });
  }

  function drawLatency() {
    const lines = [
      { label: "max", hue: "bidi-stream", values: time.max, width: 1.3 },
      { label: "p99", hue: "client-stream", values: time.p99 },
      { label: "p90", hue: "unary", values: time.p90 },
      { label: "p50", hue: "server-stream", values: time.p50 },
    ];
    draw("latency", {
      xs: middles,
      lines,
      x: scaleOfTime,
      y: logarithmic,
      axes: [axisOfTime(), figureAxis({ log: true, show: figures.time })],
      cursor: together,
      tell: (u) => tellAt(u, lines, figures.time),
    });
  }

  // ---- all latencies over time ----

  const SHADES = 24;
  const most = heat ? heat.columns.flat().reduce((most, [, count]) => Math.max(most, count), 1) : 1;
  const bound = (bin, { per_decade, first }) => 10 ** ((first + bin) / per_decade);
  const shade = (count) => (most === 1 ? SHADES - 1 : Math.round((Math.log(count) / Math.log(most)) * (SHADES - 1)));
  const shades = () =>
    Array.from({ length: SHADES }, (_, i) => {
      const at = (2 * i) / (SHADES - 1);
      const [low, high] = at < 1 ? ["low", "middle"] : ["middle", "high"];
      return resolve(
        `color-mix(in srgb, var(--heat-${high}) ${100 * (at % 1.0000001 < 1 ? at % 1 : 1)}%, var(--heat-${low}))`,
      );
    });

  function paintHeat(u) {
    const { ctx, bbox } = u;
    const hues = shades();
    let painted = 0;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    const ys = Array.from({ length: heat.rows + 1 }, (_, bin) => Math.round(u.valToPos(bound(bin, heat), "y", true)));
    for (const [i, column] of heat.columns.entries()) {
      const [left, right] = [heat.edges[i], heat.edges[i + 1]].map((at) => Math.round(u.valToPos(at, "x", true)));
      for (const [bin, count] of column) {
        ctx.fillStyle = hues[shade(count)];
        ctx.fillRect(left, ys[bin + 1], Math.max(1, right - left), Math.max(1, ys[bin] - ys[bin + 1]));
        painted += 1;
      }
    }
    ctx.restore();
    box("heat").closest("figure").dataset.fields = painted;
  }

  function tellField(u) {
    const at = u.posToVal(u.cursor.left, "x");
    const ns = u.posToVal(u.cursor.top, "y");
    const column = heat.edges.findIndex((from, i) => at >= from && at < heat.edges[i + 1]);
    if (column < 0) return "";
    const bin = Math.floor(Math.log10(ns) * heat.per_decade) - heat.first;
    const all = heat.columns[column].reduce((sum, [, count]) => sum + count, 0);
    const count = heat.columns[column].find(([at]) => at === bin)?.[1] ?? 0;
    const between = `${figures.time(bound(bin, heat))} – ${figures.time(bound(bin + 1, heat))}`;
    return (
      span(heat.edges[column], heat.edges[column + 1]) +
      row("<i></i>", between, `${whole(count)} of ${whole(all)}`) +
      (all > 0 ? row("<i></i>", "share", count ? figures.percent(count / all) : "0 %") : "")
    );
  }

  function drawHeat() {
    const figure = box("heat").closest("figure");
    figure.querySelector("[data-least]").textContent = "1";
    figure.querySelector("[data-most]").textContent = `${whole(most)} ${most === 1 ? "call" : "calls"}`;
    draw("heat", {
      xs: middles,
      // Only provides the scale; the visible cells are painted.
      lines: [{ label: "", hue: "muted", values: time.p50, paths: () => null, points: [] }],
      ends: [],
      x: scaleOfTime,
      y: { distr: 3, range: () => [bound(0, heat), bound(heat.rows, heat)] },
      axes: [
        { ...axisOfTime(), grid: { show: false } },
        { ...figureAxis({ log: true, show: figures.time }), grid: { show: false } },
      ],
      cursor: { ...together, y: true, points: { show: false } },
      tell: tellField,
      hooks: { drawClear: [paintHeat] },
    });
  }

  // ---- distributions ----

  const shownLines = () => spread.lines.filter(({ name }) => !state.hidden.has(name));
  const atEnd = (values, length) => Array.from({ length }, (_, i) => values[i] ?? null);

  function drawPercentiles() {
    const { nines } = spread;
    const lines = shownLines().map(({ name, colour: hue, curve }) => ({
      label: name,
      hue,
      values: atEnd(curve, nines.length),
    }));
    const top = Math.max(last(nines), 1);
    draw("percentiles", {
      xs: nines,
      lines,
      x: { range: (u, min, max) => (min === null || max === last(nines) ? [nines[0], top] : [min, max]) },
      y: logarithmic,
      axes: [
        {
          ...axis(),
          size: 28,
          splits: () => charts.nines.splits(top).filter((at) => at >= nines[0]),
          values: charts.nines.labels,
        },
        figureAxis({ log: true, show: figures.time }),
      ],
      tell(u) {
        const { idx } = u.cursor;
        if (idx === null || idx === undefined) return "";
        const there = lines.filter(({ values }) => values[idx] !== null);
        const rows = there.map(({ hue, label, values }) => row(swatchOf(hue, []), label, figures.time(values[idx])));
        return `<b>${charts.nines.percent(nines[idx])} took no longer than</b>${rows.join("")}`;
      },
    });
  }

  function drawHistogram() {
    const isLog = state.shares === "log";
    const count = spread.lines[0].shares.length;
    const xs = Array.from({ length: count + 1 }, (_, bin) => bound(bin, spread));
    const least = Math.min(...spread.lines.map(({ count }) => 1 / count));
    const lines = shownLines().map(({ name, colour: hue, shares }) => ({
      label: name,
      hue,
      values: [...shares, last(shares)].map((share) => (isLog && share === 0 ? null : share)),
      fill: faint(hue, 20),
      width: 1.6,
      paths: uPlot.paths.stepped({ align: 1 }),
      points: [],
    }));
    const percent = (share) => (share === 0 ? "0 %" : figures.percent(share));
    const y = isLog
      ? { distr: 3, range: (u, min, max) => [least * 0.7, Math.min(1.2, (max || 1) * 1.5)] }
      : { range: (u, min, max) => [0, (max || 1) * 1.08] };
    draw("histogram", {
      xs,
      lines,
      ends: [],
      x: { distr: 3, range: (u, min, max) => [min ?? xs[0], max ?? last(xs)] },
      y,
      axes: [
        {
          ...axis(),
          size: 28,
          splits: (u, i, min, max) => charts.decades(u, i, min, max),
          values: (u, at) => spaced(u, at, charts.tick(figures.time)),
        },
        figureAxis({ log: isLog, show: percent }),
      ],
      tell(u) {
        const ns = u.posToVal(u.cursor.left, "x");
        const bin = Math.min(count - 1, Math.max(0, Math.floor(Math.log10(ns) * spread.per_decade) - spread.first));
        const rows = shownLines().map(({ name, colour: hue, shares }) =>
          row(swatchOf(hue, []), name, percent(shares[bin])),
        );
        // Times below a microsecond are in the first bin, too.
        const from = bin === 0 ? "up to" : `${figures.time(xs[bin])} –`;
        return `<b>${from} ${figures.time(xs[bin + 1])}</b>${rows.join("")}`;
      },
    });
  }

  // Returns as many values as fit side by side.
  function spaced(u, values, show) {
    let free = -Infinity;
    return values.map((value) => {
      // If there are many powers, not all are labelled.
      if (value === null) return "";
      const [at, label] = [u.valToPos(value, "x"), show(value)];
      if (at - 4 * label.length < free) return "";
      free = at + 4 * label.length + 6;
      return label;
    });
  }

  // ---- the page ----

  function drawAll() {
    if (time) drawRate();
    if (box("latency")) drawLatency();
    if (box("heat")) drawHeat();
    if (spread) drawSpread();
  }

  function drawSpread() {
    drawPercentiles();
    drawHistogram();
  }

  function makeControls() {
    const legend = document.querySelector("#spread .legend");
    for (const { name, colour: hue } of spread.lines) {
      const button = document.createElement("button");
      button.type = "button";
      button.innerHTML = swatchOf(hue, []) + name;
      button.setAttribute("aria-pressed", String(!state.hidden.has(name)));
      button.addEventListener("click", () => {
        const hide = !state.hidden.has(name);
        if (hide) state.hidden.add(name);
        else state.hidden.delete(name);
        button.setAttribute("aria-pressed", String(!hide));
        drawSpread();
      });
      legend.append(button);
    }
    const shares = document.querySelector('[data-choice="shares"]');
    shares.addEventListener("click", ({ target }) => {
      if (!target.dataset.value) return;
      state.shares = target.dataset.value;
      page.choose(shares, state.shares);
      drawHistogram();
    });
  }

  // Downloads of the page's data.
  function makeLinks() {
    for (const link of document.querySelectorAll("[data-saves]")) {
      const source = document.getElementById(link.dataset.saves);
      link.href = URL.createObjectURL(new Blob([source.textContent], { type: source.type }));
    }
    document.querySelector(".saved").hidden = false;
  }

  // Records on each plot how many of its lines are visible on the canvas, so that a blank plot is detected.
  function countDrawn() {
    for (const [name, { plot, lines }] of plots) {
      const there = lines.filter(({ values }) => values.some((value) => value !== null));
      const drawn = there.filter(({ hue, values }) => charts.isDrawn(plot, plot.data[0], hue, values));
      Object.assign(box(name).dataset, { linesShown: there.length, linesDrawn: drawn.length });
    }
    root.dataset.plots = "drawn";
  }

  // Printed pages are light, and as wide as the paper.
  function makePrintable() {
    let theme;
    addEventListener("beforeprint", () => {
      theme = root.dataset.theme;
      root.dataset.theme = "light";
      document.body.style.width = "720px";
      drawAll();
    });
    addEventListener("afterprint", () => {
      if (theme) root.dataset.theme = theme;
      else delete root.dataset.theme;
      document.body.style.width = "";
      drawAll();
    });
  }

  page.makeTheme(drawAll);
  if (spread) makeControls();
  makeLinks();
  makePrintable();
  drawAll();
  // uPlot draws in its own microtask.
  setTimeout(countDrawn, 0);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    drawAll();
  });
})();
