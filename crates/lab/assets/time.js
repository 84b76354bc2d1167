// Draws every window at its time: its rate beside that of its cell, and what the machine did meanwhile.
function throughTime(shared) {
  "use strict";

  const { data, figures, colour, axes, tooltip, placeTip, kinds, anchor } = shared;
  const section = document.getElementById("time");
  const { time } = data;
  if (time.at.length === 0) {
    section.hidden = true;
    return { drawAll() {}, plots: () => [] };
  }
  // The line is the median of so many windows that stand next to each other.
  const neighbours = Math.min(25, 2 * Math.floor(time.at.length / 8) + 1);
  section.querySelector("[data-neighbours]").textContent = neighbours;
  const cellOf = (i) => time.cells[time.cell[i]];
  const median = (values) => {
    const sorted = values.toSorted((a, b) => a - b);
    const middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  };
  const around = time.at.map((_, i) => {
    const near = time.rate.slice(Math.max(0, i - (neighbours >> 1)), i + (neighbours >> 1) + 1);
    const rates = near.filter((rate) => rate !== null);
    return rates.length > 2 ? median(rates) : null;
  });
  const clock = (s) => `${Math.floor(s / 60)}:${String(Math.floor(s % 60)).padStart(2, "0")}`;
  const ratio = (value) => value.toFixed(value < 0.1 ? 3 : 2);
  const share = (value) => (value === 0 ? "0 %" : figures.percent(value));
  const plots = new Map();

  function draw(part) {
    const box = section.querySelector(`[data-chart="time-${part}"]`);
    plots.get(part)?.destroy();
    const { columns, series, range, show, drawn, splits } = parts[part]();
    const tip = tooltip();
    const [timeAxis, figureAxis] = axes({ positions: [], sizes: [], log: false, show });
    const plot = new uPlot(
      {
        width: box.clientWidth,
        height: box.clientHeight,
        padding: [8, 12, 0, 0],
        legend: { show: false },
        cursor: { sync: { key: "time" }, points: { show: false }, y: false, drag: { x: true, y: false } },
        scales: { x: { time: false }, y: range },
        axes: [
          {
            ...timeAxis,
            label: undefined,
            size: 26,
            splits: undefined,
            incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200],
            values: (u, at) => at.map(clock),
          },
          {
            ...figureAxis,
            splits,
            filter: (u, values) => values,
            values: (u, values) => values.map((value) => (value === null ? "" : show(value))),
          },
        ],
        series: [{}, ...series],
        hooks: { draw: [drawn], setCursor: [(u) => pointAt(u, tip)] },
      },
      [time.at, ...columns],
      box,
    );
    plot.over.append(tip);
    plot.over.addEventListener("click", () => {
      const { idx } = plot.cursor;
      const cell = idx === null || idx === undefined ? undefined : cellOf(idx);
      if (cell && !cell.against_itself) shared.goTo(anchor(cell.kind, cell.transport, cell.size_bytes));
    });
    plots.set(part, plot);
  }

  const parts = {
    rate: () => {
      const dots = data.kinds.map(({ id, colour: hue }) => ({
        stroke: colour(hue),
        paths: () => null,
        points: { show: true, size: 4.5, width: 0, fill: colour(hue), stroke: colour(hue) },
        column: time.rate.map((rate, i) => (cellOf(i).kind === id ? rate : null)),
      }));
      const rates = time.rate.filter((rate) => rate > 0);
      const [low, high] = [Math.min(0.8, ...rates) * 0.94, Math.max(1.25, ...rates) * 1.06];
      return {
        columns: [...dots.map(({ column }) => column), around],
        series: [
          ...dots.map(({ column, ...one }) => one),
          { stroke: colour("text"), width: 2, points: { show: false }, spanGaps: true },
        ],
        range: { distr: 3, range: [low, high] },
        splits: () => [0.1, 0.2, 0.5, 0.8, 1, 1.25, 2, 5, 10].filter((value) => value >= low && value <= high),
        show: (value) => `${Number(ratio(value))} ×`,
        drawn: marks,
      };
    },
    waited: () => ({
      columns: [time.client_waited, time.server_waited],
      series: ["ours", "peer-1"].map(stems),
      range: { range: (u, min, max) => [0, Math.max(0.01, max) * 1.08] },
      show: share,
      drawn: (u) => ["ours", "peer-1"].forEach((hue, i) => drawStems(u, i + 1, hue, 1.2 * (2 * i - 1))),
    }),
    taken: () => ({
      columns: [time.taken_away],
      series: [stems("muted")],
      range: { range: (u, min, max) => [0, Math.max(1, max) * 1.08] },
      show: (value) => figures.rate(value),
      drawn: (u) => drawStems(u, 1, "muted", 0),
    }),
  };

  const stems = (hue) => ({ stroke: colour(hue), paths: () => null, points: { show: false } });

  function clipped(u, paint) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    paint(ctx, bbox);
    ctx.restore();
  }

  function drawStems(u, index, hue, aside) {
    clipped(u, (ctx, { top, height }) => {
      ctx.strokeStyle = colour(hue);
      ctx.lineWidth = 1.6 * devicePixelRatio;
      ctx.beginPath();
      for (const [i, value] of u.data[index].entries()) {
        if (!value) continue;
        const x = u.valToPos(time.at[i], "x", true) + aside * devicePixelRatio;
        ctx.moveTo(x, top + height);
        ctx.lineTo(x, u.valToPos(value, "y", true));
      }
      ctx.stroke();
    });
  }

  // Rings around windows whose client was the limit, crosses for those that are not valid, triangles for long waits.
  function marks(u) {
    const px = devicePixelRatio;
    clipped(u, (ctx, { top, height }) => {
      ctx.strokeStyle = ctx.fillStyle = colour("warn");
      ctx.lineWidth = 1.5 * px;
      for (const [i, state] of time.state.entries()) {
        const x = u.valToPos(time.at[i], "x", true);
        ctx.beginPath();
        if (state === 1) {
          ctx.arc(x, u.valToPos(time.rate[i], "y", true), 4.5 * px, 0, 2 * Math.PI);
        } else if (state === 2) {
          const y = top + height - 7 * px;
          for (const side of [-1, 1]) {
            ctx.moveTo(x - 4 * px, y - 4 * px * side);
            ctx.lineTo(x + 4 * px, y + 4 * px * side);
          }
        }
        ctx.stroke();
      }
      ctx.fillStyle = colour("muted");
      for (const { at } of time.spikes) {
        const x = u.valToPos(at, "x", true);
        ctx.beginPath();
        ctx.moveTo(x - 4 * px, top);
        ctx.lineTo(x + 4 * px, top);
        ctx.lineTo(x, top + 7 * px);
        ctx.fill();
      }
    });
  }

  function pointAt(u, tip) {
    const { idx, left, event } = u.cursor;
    tip.hidden = idx === null || idx === undefined || left < 0 || !event;
    if (tip.hidden) return;
    const cell = cellOf(idx);
    const kind = kinds.get(cell.kind);
    const row = (name, shown) => `<div><i></i><span>${name}</span><span>${shown}</span></div>`;
    const told = (value, show) => (value === null ? "–" : show(value));
    const spike = time.spikes.find(({ window }) => window === idx);
    tip.innerHTML =
      `<b>${kind?.label ?? cell.kind}, ${cell.transport}, ${cell.size}</b>` +
      row("at", clock(time.at[idx])) +
      row("round", time.round[idx] + (cell.against_itself ? ", ours against ours" : "")) +
      row("rate ÷ its cell’s", told(time.rate[idx], (value) => `${ratio(value)} ×`)) +
      row("client waited", told(time.client_waited[idx], share)) +
      row("server waited", told(time.server_waited[idx], share)) +
      row("taken away", told(time.taken_away[idx], figures.rate)) +
      (spike ? row("longest wait", figures.time(spike.took_ns)) : "") +
      ["", row("limit", "the client"), row("not valid", "see its remark")][time.state[idx]];
    placeTip(u, tip);
  }

  // What each plot should have left on its canvas: dots of each kind, and stems.
  const hues = { rate: data.kinds.map(({ colour: hue }) => hue), waited: ["ours", "peer-1"], taken: ["muted"] };
  return {
    drawAll: () => Object.keys(parts).forEach(draw),
    plots: () =>
      [...plots].map(([part, plot]) => ({
        name: `time-${part}`,
        plot,
        positions: time.at,
        shown: hues[part].map((hue, i) => [hue, i + 1, plot.data[i + 1].some((value) => value !== null)]),
      })),
  };
}
