// Draws how operations spread: latency over percentile, on an axis on which each nine has the same room.
function percentiles(shared) {
  "use strict";

  const { data, figures, resolve, axes, tooltip, placeTip, choose, kinds, anchor } = shared;
  const section = document.getElementById("percentiles");
  const figure = section.querySelector("figure");
  const box = figure.querySelector(".plot");
  const { curves, steps_per_nine: steps } = data;
  if (curves.length === 0) {
    section.querySelector(".controls").hidden = true;
    box.textContent = "No percentiles: streams one way have no latency that their client could see.";
    return { drawAll() {}, plots: () => [] };
  }
  const distinct = (values) => [...new Set(values)];
  const has = (kind) => curves.some((curve) => curve.kind === kind);
  const offered = {
    kind: data.kinds.filter(({ id }) => has(id)).map(({ id, label }) => [id, label]),
    size: data.sizes
      .filter(({ bytes }) => curves.some((curve) => curve.size_bytes === bytes))
      .map(({ bytes, label }) => [String(bytes), label]),
    carrier: distinct(curves.map(({ transport }) => transport)),
  };
  const state = { curves: "size", kind: offered.kind[0][0], size: offered.size[0][0], carrier: offered.carrier[0] };
  let plot;

  const shown = () =>
    curves.filter(
      ({ kind, size_bytes, transport }) =>
        transport === state.carrier &&
        (state.curves === "size" ? kind === state.kind : String(size_bytes) === state.size),
    );
  // Sizes are hues of one row, from small to large; calls have those of the other plots.
  function look(curve) {
    const kind = kinds.get(curve.kind);
    if (state.curves === "kind") {
      return { css: `var(--${kind.colour})`, name: kind.short, dash: kind.id.startsWith("socket") ? [2, 3] : [] };
    }
    const sizes = offered.size.map(([bytes]) => bytes);
    const hue = 205 + (150 * sizes.indexOf(String(curve.size_bytes))) / Math.max(1, sizes.length - 1);
    const css = `light-dark(hsl(${hue} 75% 38%), hsl(${hue} 75% 70%))`;
    return { css, name: data.sizes.find(({ bytes }) => bytes === curve.size_bytes).label, dash: [] };
  }

  function draw() {
    plot?.destroy();
    plot = undefined;
    const all = shown().map((curve) => ({ curve, ...look(curve) }));
    figure.dataset.linesShown = all.length;
    section.querySelector('[data-of="size"]').hidden = state.curves !== "size";
    section.querySelector('[data-of="kind"]').hidden = state.curves !== "kind";
    box.textContent = all.length ? "" : `No valid window of this was measured over ${state.carrier}.`;
    if (all.length === 0) return;
    const points = Math.max(...all.map(({ curve }) => curve.all.length));
    const nines = Array.from({ length: points }, (_, i) => i / steps);
    const column = (values) => nines.map((_, i) => values[i] || null);
    const ends = all.map(({ name, css }, i) => ({ index: 3 * i + 1, name, colour: css }));
    const tip = tooltip();
    const [, figureAxis] = axes({ positions: nines, sizes: [], log: true, show: figures.time });
    plot = new uPlot(
      {
        width: box.clientWidth,
        height: box.clientHeight,
        padding: [10, lineEnds.room(ends.map(({ name }) => name)), 0, 0],
        legend: { show: false },
        cursor: { points: { size: 7, width: 2 }, y: false, drag: { x: true, y: true, uni: 40 } },
        scales: {
          x: { time: false, range: (u, min, max) => [min, Math.max(max, 1)] },
          y: { distr: 3, range: (u, min, max) => [min * 0.8, max * 1.25] },
        },
        axes: [
          {
            ...figureAxis,
            size: 30,
            splits: () => charts.nines.splits(nines.at(-1)),
            values: charts.nines.labels,
          },
          figureAxis,
        ],
        series: [
          {},
          ...all.flatMap(({ css, dash }) => {
            const stroke = resolve(css);
            const edge = { stroke: "transparent", width: 0, points: { show: false } };
            return [{ stroke, width: 2.2, dash, points: { show: false } }, edge, edge];
          }),
        ],
        bands: all.map(({ css }, i) => ({
          series: [3 * i + 3, 3 * i + 2],
          fill: resolve(css).replace(/rgba?\(([^)]*?)\)/, "rgba($1, 0.16)"),
        })),
        hooks: {
          draw: [(u) => lineEnds.place(u, ends)],
          setCursor: [(u) => pointAt(u, tip, all)],
        },
      },
      [nines, ...all.flatMap(({ curve }) => [curve.all, curve.low, curve.high].map(column))],
      box,
    );
    plot.over.append(tip);
    plot.over.addEventListener("click", () => {
      const near = nearest(plot, all);
      if (near) shared.goTo(anchor(near.curve.kind, near.curve.transport, near.curve.size_bytes));
    });
  }

  function nearest(u, all) {
    const { idx, top } = u.cursor;
    const distance = ({ value }) => Math.abs(u.valToPos(value, "y") - top);
    return all
      .map(({ curve }) => ({ curve, value: curve.all[idx] }))
      .filter(({ value }) => value)
      .filter((it) => distance(it) < 16)
      .sort((a, b) => distance(a) - distance(b))[0];
  }

  function pointAt(u, tip, all) {
    const { idx, left, event } = u.cursor;
    const rows = all.filter(({ curve }) => curve.all[idx]);
    tip.hidden = idx === null || idx === undefined || left < 0 || !event || rows.length === 0;
    if (tip.hidden) return;
    const range = ({ low, high }) =>
      high[idx] ? `<small>${figures.time(low[idx])} – ${figures.time(high[idx])}</small>` : "";
    tip.innerHTML =
      `<b>${charts.nines.percent(idx / steps)} took no longer than</b>` +
      rows
        .sort((a, b) => b.curve.all[idx] - a.curve.all[idx])
        .map(
          ({ curve, name, css, dash }) =>
            `<div>${shared.swatchOf(css, dash)}<span>${name}</span>` +
            `<span>${figures.time(curve.all[idx])}${range(curve)}</span></div>`,
        )
        .join("");
    placeTip(u, tip);
  }

  function makeControls() {
    for (const select of section.querySelectorAll("[data-curve]")) {
      const name = select.dataset.curve;
      for (const [value, label] of offered[name]) select.add(new Option(label, value));
      select.addEventListener("change", () => {
        state[name] = select.value;
        draw();
      });
    }
    const carriers = section.querySelector('[data-choice="carrier"]');
    carriers.innerHTML = offered.carrier
      .map((name) => `<button type="button" data-value="${name}">${name}</button>`)
      .join("");
    choose(carriers, state.carrier);
    for (const group of section.querySelectorAll("[data-choice]")) {
      group.addEventListener("click", ({ target }) => {
        if (!target.dataset.value) return;
        state[group.dataset.choice] = target.dataset.value;
        choose(group, target.dataset.value);
        draw();
      });
    }
  }

  makeControls();
  return {
    drawAll: draw,
    plots: () => {
      if (!plot) return [];
      const all = shown().map(look);
      return [
        { name: "percentiles", plot, positions: plot.data[0], shown: all.map(({ css }, i) => [css, 3 * i + 1, true]) },
      ];
    },
  };
}
