// Draws the report's plots and makes its table sortable. The words and the table are in the page already.
(() => {
  "use strict";

  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const { figures, choose } = page;
  const state = {
    transport: data.transports[0],
    statistic: "p50",
    hidden: new Set(data.kinds.filter((kind) => kind.hidden).map((kind) => kind.id)),
    scale: {
      "latency-log": "log",
      "latency-linear": "linear",
      pace: "log",
      gap: "log",
      rate: "log",
      throughput: "linear",
    },
  };

  const { colour, swatchOf, axis, figureAxis, tooltip, placeTip } = charts;
  const figuresOf = {
    "latency-log": { field: () => state.statistic, show: figures.time },
    "latency-linear": { field: () => state.statistic, show: figures.time },
    pace: { field: () => "pace", show: figures.time },
    gap: { field: () => "gap", show: figures.time },
    rate: { field: () => "rate", show: figures.rate },
    throughput: { field: () => "throughput", show: figures.throughput },
  };

  // Positions on the size axis: powers of two, and 0 B two of them below the smallest size that has a logarithm.
  const smallest = data.sizes.find(({ bytes }) => bytes > 0)?.bytes ?? 1;
  const positions = data.sizes.map(({ bytes }) => Math.log2(bytes || smallest / 4));
  const isSocket = (kind) => kind.id.startsWith("socket");
  const kinds = new Map(data.kinds.map((kind) => [kind.id, kind]));
  const isShown = (line) =>
    !state.hidden.has(line.kind) && (state.transport === "both" || state.transport === line.transport);

  // Where the windows of a cell stand.
  const anchor = (kind, transport, bytes) => `w-${kind}-${transport}-${bytes}`;
  const goTo = (id) => {
    if (document.getElementById(id)) location.hash = id;
  };
  const dash = (line) => {
    if (isSocket(kinds.get(line.kind)))
      return line.transport === "UDS" && state.transport === "both" ? [7, 3, 2, 3] : [2, 3];
    return line.transport === "UDS" && state.transport === "both" ? [7, 4] : [];
  };
  const swatch = (line) => swatchOf(kinds.get(line.kind).colour, dash(line));

  // The size axis, and one of figures.
  const axes = ({ positions, sizes, log, show }) => [
    {
      ...axis(),
      label: "message size",
      labelFont: axis().font,
      labelSize: 22,
      size: 38,
      gap: 11,
      grid: { show: false },
      splits: () => positions,
      values: (u) => sizeLabels(u, positions, sizes),
    },
    figureAxis({ log, show }),
  ];

  const plots = new Map();

  function draw(name) {
    const figure = document.querySelector(`[data-chart="${name}"]`);
    const box = figure.querySelector(".plot");
    const { field, show } = figuresOf[name];
    const log = state.scale[name] === "log";
    const value = (line, i) => line[field()]?.[i] ?? null;
    const column = (line) => positions.map((_, i) => (log && value(line, i) === 0 ? null : value(line, i)));

    const ends = data.lines.map((line, i) => ({
      index: i + 1,
      name: kinds.get(line.kind).short + (state.transport === "both" ? `, ${line.transport}` : ""),
      colour: `var(--${kinds.get(line.kind).colour})`,
    }));
    const named = ends.filter(({ index }) => isShown(data.lines[index - 1]) && hasValue(column(data.lines[index - 1])));

    plots.get(name)?.destroy();
    const tip = tooltip();
    const plot = new uPlot(
      {
        width: box.clientWidth,
        height: box.clientHeight,
        padding: [10, lineEnds.room(named.map(({ name }) => name)), 0, 0],
        legend: { show: false },
        cursor: {
          sync: { key: "sizes" },
          drag: { x: true, y: true, uni: 40 },
          points: { size: 9, width: 2 },
          y: false,
          // The line stands on the size whose values are told, not between two.
          move: (u, left, top) => [
            left < 0 || u.select.width > 0 ? left : u.valToPos(positions[u.posToIdx(left)], "x"),
            top,
          ],
        },
        scales: {
          x: { time: false, range: (u, min, max) => [min - 0.7, max + 0.7] },
          y: log ? { distr: 3 } : { range: (u, min, max) => [min < max * 0.5 ? 0 : min, max * 1.06] },
        },
        axes: axes({ positions, sizes: data.sizes, log, show }),
        series: [
          {},
          ...data.lines.map((line) => {
            const stroke = colour(kinds.get(line.kind).colour);
            const socket = isSocket(kinds.get(line.kind));
            return {
              show: isShown(line),
              stroke,
              width: socket ? 1.6 : 2.2,
              dash: dash(line),
              spanGaps: true,
              points: {
                show: true,
                size: socket ? 4 : 6.5,
                width: 1.5,
                stroke,
                fill: socket ? stroke : colour("panel"),
              },
            };
          }),
        ],
        hooks: {
          setCursor: [(u) => pointAt(u, tip, show)],
          draw: [(u) => drawSpread(u, name), (u) => lineEnds.place(u, ends)],
        },
      },
      [positions, ...data.lines.map(column)],
      box,
    );
    plot.over.append(tip);
    plot.over.addEventListener("click", () => {
      const line = lineAt(plot);
      if (line) goTo(anchor(line.kind, line.transport, data.sizes[plot.cursor.idx].bytes));
    });
    plots.set(name, plot);
  }

  // The line whose point is near the pointer.
  function lineAt(u) {
    const { idx, top } = u.cursor;
    const near = data.lines
      .map((line, i) => ({ line, value: u.data[i + 1][idx] }))
      .filter(({ line, value }) => isShown(line) && value !== null && value !== undefined)
      .map(({ line, value }) => ({ line, distance: Math.abs(u.valToPos(value, "y") - top) }))
      .filter(({ distance }) => distance < 12);
    return near.sort((a, b) => a.distance - b.distance)[0]?.line;
  }

  // How sure a figure is: its interval of 95 % as a bar, and the windows that it was told from as dots.
  function drawSpread(u, name) {
    const bytes = (i) => (name === "throughput" ? data.sizes[i].bytes : 1);
    const isRate = name === "rate" || name === "throughput";
    const isMedian = name.startsWith("latency") && state.statistic === "p50";
    if (!isRate && !isMedian) return;
    const { ctx, bbox } = u;
    const cap = 3.5 * devicePixelRatio;
    const dot = 1.3 * devicePixelRatio;
    const y = (value) => u.valToPos(value, "y", true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.lineWidth = 1.4 * devicePixelRatio;
    for (const line of data.lines.filter(isShown)) {
      ctx.strokeStyle = ctx.fillStyle = colour(kinds.get(line.kind).colour);
      const [lows, highs] = isRate ? [line.rate_low, line.rate_high] : [line.p50_low, line.p50_high];
      for (const [i, position] of positions.entries()) {
        const x = u.valToPos(position, "x", true);
        const [low, high] = [lows, highs].map((ends) => (ends?.[i] ?? 0) * bytes(i));
        if (low > 0) {
          ctx.beginPath();
          ctx.moveTo(x, y(low));
          ctx.lineTo(x, y(high));
          for (const end of [low, high]) {
            ctx.moveTo(x - cap, y(end));
            ctx.lineTo(x + cap, y(end));
          }
          ctx.stroke();
        }
        ctx.globalAlpha = 0.5;
        for (const rate of isRate ? line.windows[i] : []) {
          if (rate * bytes(i) === 0) continue;
          ctx.beginPath();
          ctx.arc(x, y(rate * bytes(i)), dot, 0, 2 * Math.PI);
          ctx.fill();
        }
        ctx.globalAlpha = 1;
      }
    }
    ctx.restore();
  }

  // As many sizes as fit are named, the first and the last always.
  function sizeLabels(u, positions, sizes) {
    const wanted = 56;
    const x = (i) => u.valToPos(positions[i], "x");
    const last = positions.length - 1;
    let named = -Infinity;
    return sizes.map(({ label }, i) => {
      const inside = positions[i] >= u.scales.x.min && positions[i] <= u.scales.x.max;
      const fits = x(i) - named >= wanted && (i === last || x(last) - x(i) >= wanted);
      if (!inside || !(fits || i === last)) return "";
      named = x(i);
      return label;
    });
  }

  function pointAt(u, tip, show) {
    const { idx, left, event } = u.cursor;
    // Plots follow each other's cursor; only the one pointed at tells values.
    if (idx === null || idx === undefined || left < 0 || !event) {
      tip.hidden = true;
      return;
    }
    const rows = data.lines
      .map((line, i) => ({ line, value: u.data[i + 1][idx] }))
      .filter(({ line, value }) => isShown(line) && value !== null && value !== undefined)
      .sort((a, b) => b.value - a.value);
    const both = state.transport === "both";
    tip.innerHTML =
      `<b>${data.sizes[idx].label}</b>` +
      rows
        .map(
          ({ line, value }) =>
            `<div>${swatch(line)}<span>${kinds.get(line.kind).label}${both ? `, ${line.transport}` : ""}</span><span>${show(value)}</span></div>`,
        )
        .join("");
    tip.hidden = rows.length === 0;
    placeTip(u, tip);
  }

  function drawAll() {
    for (const name of Object.keys(figuresOf)) draw(name);
    curves?.drawAll();
    time?.drawAll();
    against?.drawAll();
  }

  // Says on each figure how many of its lines left their colour on the canvas: a blank plot cannot pass for a drawn one.
  function countDrawn() {
    const own = [...plots].map(([name, plot]) => ({
      name,
      plot,
      positions,
      shown: data.lines
        .map((line, i) => [kinds.get(line.kind).colour, i + 1, isShown(line) && hasValue(plot.data[i + 1])])
        .filter(([, , shown]) => shown),
    }));
    const others = [curves, time, against].flatMap((part) => part?.plots() ?? []);
    for (const { name, plot, positions, shown } of [...own, ...others]) {
      const drawn = shown.filter(([hue, i]) => charts.isDrawn(plot, positions, hue, plot.data[i]));
      const figure = document.querySelector(`[data-chart="${name}"]`);
      figure.dataset.linesShown = shown.length;
      figure.dataset.linesDrawn = drawn.length;
    }
    root.dataset.plots = "drawn";
  }

  // A stream one way has no latency, and all others have no pace.
  const hasValue = (values) => values.some((value) => value !== null && value !== undefined);

  function makeControls() {
    const transports = document.querySelector('[data-choice="transport"]');
    const offered = data.transports.length > 1 ? [...data.transports, "both"] : data.transports;
    transports.innerHTML = offered
      .map((name) => `<button type="button" data-value="${name}">${name}</button>`)
      .join("");
    choose(transports, state.transport);
    for (const group of document.querySelectorAll("#plots [data-choice]")) {
      group.addEventListener("click", ({ target }) => {
        if (!target.dataset.value) return;
        state[group.dataset.choice] = target.dataset.value;
        choose(group, target.dataset.value);
        for (const name of document.querySelectorAll("[data-statistic]")) {
          name.textContent = document.querySelector('[data-choice="statistic"] [aria-pressed="true"]').textContent;
        }
        drawAll();
      });
    }
    for (const group of document.querySelectorAll("figure .choices")) {
      group.addEventListener("click", ({ target }) => {
        if (!target.dataset.scale) return;
        const { chart } = group.closest("figure").dataset;
        state.scale[chart] = target.dataset.scale;
        choose(group, target.dataset.scale);
        draw(chart);
      });
    }

    const legend = document.querySelector('[data-legend="own"]');
    for (const kind of data.kinds) {
      const button = document.createElement("button");
      button.type = "button";
      button.innerHTML = swatch({ kind: kind.id, transport: "TCP" }) + kind.label;
      button.setAttribute("aria-pressed", String(!state.hidden.has(kind.id)));
      button.addEventListener("click", () => {
        const hide = !state.hidden.has(kind.id);
        if (hide) state.hidden.add(kind.id);
        else state.hidden.delete(kind.id);
        button.setAttribute("aria-pressed", String(!hide));
        drawAll();
      });
      legend.append(button);
    }
  }

  function makeTable() {
    const table = document.querySelector("#figures table");
    const rows = [...table.tBodies[0].rows];
    const filters = [...document.querySelectorAll("[data-filter]")];
    const count = document.querySelector(".count");
    const filter = () => {
      for (const row of rows)
        row.hidden = filters.some(({ value, dataset }) => value && row.dataset[dataset.filter] !== value);
      const shown = rows.filter((row) => !row.hidden).length;
      count.textContent = `${shown} of ${rows.length} rows`;
    };
    for (const select of filters) select.addEventListener("change", filter);
    filter();

    page.makeSortable(table);
  }

  // A comparison brings its own part of the script.
  const against =
    typeof comparison === "function"
      ? comparison({ figures, colour, swatchOf, axes, tooltip, placeTip, choose })
      : null;

  const shared = {
    data,
    figures,
    colour,
    resolve: charts.resolve,
    swatchOf,
    axes,
    tooltip,
    placeTip,
    choose,
    kinds,
    anchor,
    goTo,
  };
  const curves = data.lines.length > 0 ? percentiles(shared) : null;
  const time = data.lines.length > 0 ? throughTime(shared) : null;

  page.makeTheme(drawAll);
  makeTable();
  if (data.lines.length > 0) {
    makeControls();
    drawAll();
    // uPlot draws in a microtask of its own.
    setTimeout(countDrawn, 0);
    let width = innerWidth;
    addEventListener("resize", () => {
      if (innerWidth === width) return;
      width = innerWidth;
      // Drawn anew: uPlot's own resizing brings points of hidden lines to light.
      drawAll();
    });
  }
})();
