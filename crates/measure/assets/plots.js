// Draws a page's charts from their data, and applies the reader's choices. Texts, tables and bars are already in the
// page.
(() => {
  "use strict";

  const { colour, resolve, swatchOf, tooltip, placeTip } = charts;
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const isKnown = (value) => value !== null && value !== undefined;

  const factor = (value) =>
    value.toFixed(value < 0.0995 || Math.abs(value - 1) < 0.005 ? 3 : value < 1.995 ? 2 : value < 19.95 ? 1 : 0);
  const figures = {
    ...page.figures,
    percent: (share) => (share === 0 ? "0 %" : page.figures.percent(share)),
    ratio: (value) => `${factor(value)} ×`,
    count: (value) => String(Number(value.toPrecision(4))),
  };
  const clock = (s) => `${Math.floor(s / 60)}:${String(Math.floor(s % 60)).padStart(2, "0")}`;

  const seconds = (s) => (s === 0 ? "0 s" : figures.time(s * 1e9));

  // The reader's selections, by the names of the choices, and the hidden lines.
  const state = {};
  const hidden = new Set(all('.legend [data-key][aria-pressed="false"]').map(({ dataset }) => dataset.key));
  // An empty choice matches everything.
  const holds = (when) =>
    Object.entries(when).every(([name, values]) => state[name] === "" || values.includes(state[name]));

  const made = all("figure[data-chart]").map((figure) => ({
    figure,
    box: figure.querySelector(".plot"),
    data: JSON.parse(figure.querySelector("script").textContent),
  }));
  for (const { data } of made) {
    if (data.x.same_as) data.x = made.find(({ figure }) => figure.dataset.chart === data.x.same_as).data.x;
  }
  const isVisible = ({ figure }) => !figure.closest("[hidden]");

  // The visible series, each with its style.
  const shownIn = ({ data }) =>
    data.series.flatMap((series) => {
      const found = series.shown.find(([, when]) => holds(when));
      const way = found && data.ways[found[0]];
      return way && !hidden.has(way.key) && series.y.some(isKnown) ? [{ ...series, way }] : [];
    });

  const cssOf = ({ colour: hue }) => (hue.includes("(") ? hue : `var(--${hue})`);
  const canvasColour = (way) => resolve(cssOf(way));

  const isAtEdge = ({ mark }) => mark === "crosses" || mark === "triangles";

  // The range of values over all charts that share a scale.
  function rangeOf(chart) {
    const { group, log, includes = [] } = chart.data.y;
    const fellows = group ? made.filter((other) => other.data.y.group === group && isVisible(other)) : [chart];
    const values = fellows
      .flatMap(shownIn)
      .filter((line) => !line.is_reference && !isAtEdge(line))
      .flatMap(({ y, low = [], high = [], windows = [] }) => [...y, ...low, ...high, ...windows.flat()])
      .concat(includes, ...(chart.data.shades ?? []).filter(([, when]) => holds(when)).map(([ends]) => ends))
      .filter((value) => isKnown(value) && (!log || value > 0));
    if (values.length === 0) return [1, 10];
    const [low, high] = [Math.min(...values), Math.max(...values)];
    if (log) return [low * 0.87, high * 1.15];
    return [low < high * 0.5 ? 0 : low, high === low ? high + 1 : high * 1.06];
  }

  const pathsOf = {
    points: () => undefined,
    line: () => undefined,
    steps: () => uPlot.paths.stepped({ align: 1 }),
  };

  function seriesOf({ way, mark }, isSmall) {
    const stroke = canvasColour(way);
    const isDots = mark === "dots";
    const points = {
      show: mark === "points" || isDots,
      size: isDots ? 4.5 : isSmall || way.width < 1.7 ? 4.5 : 6.5,
      width: isDots ? 0 : 1.5,
      stroke,
      fill: isDots || isSmall || way.width < 1.7 ? stroke : colour("panel"),
    };
    const paths = mark in pathsOf ? pathsOf[mark]() : () => null;
    return { stroke, width: way.width, dash: way.dash, spanGaps: mark !== "steps" || undefined, points, paths };
  }

  // Positions, then a column for each line, then the bounds of bands.
  function columnsOf(lines, { at }, log) {
    const valid = (y) => (log ? y.map((value) => (value > 0 ? value : null)) : y);
    if (lines.some(({ x }) => x)) return uPlot.join(lines.map(({ x, y }) => [x ?? at, valid(y)]));
    const ends = lines.filter(({ band }) => band).flatMap(({ low, high }) => [low, high]);
    const whole = (column) => at.map((_, i) => column[i] ?? null);
    return [at, ...[...lines.map(({ y }) => valid(y)), ...ends].map(whole)];
  }

  function bandsOf(lines) {
    return lines
      .filter(({ band }) => band)
      .map(({ way }, i) => ({
        series: [lines.length + 2 * i + 2, lines.length + 2 * i + 1],
        fill: canvasColour(way).replace(/rgba?\(([^)]*?)\)/, "rgba($1, 0.16)"),
      }));
  }

  function xAxis(x) {
    const base = { ...charts.axis(), size: 30, grid: { show: false } };
    const label = x.label ? { label: x.label, labelFont: base.font, labelSize: 22, size: 38, gap: 11 } : {};
    if (x.nines) return { ...base, splits: () => charts.nines.splits(x.at.at(-1)), values: charts.nines.labels };
    if (x.labels) {
      const splits = () => x.at;
      return { ...base, ...label, splits, values: (u) => fittingLabels(u, x), filter: (u, values) => values };
    }
    if (x.clock) {
      const incrs = [0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200];
      const shown = (values) => (values.at(-1) < 10 ? values.map(seconds) : values.map(clock));
      return { ...base, ...label, space: 56, incrs, values: (u, values) => shown(values) };
    }
    return { ...base, ...label };
  }

  // Returns as many labels as fit, always including the first and the last.
  function fittingLabels(u, { at, labels }) {
    const wide = Math.max(...labels.map((label) => label.length)) * 7 + 8;
    const x = (i) => u.valToPos(at[i], "x");
    const last = at.length - 1;
    let named = -Infinity;
    return labels.map((label, i) => {
      const inside = at[i] >= u.scales.x.min && at[i] <= u.scales.x.max;
      const fits = x(i) - named >= wide && (i === last || x(last) - x(i) >= wide);
      if (!inside || !(fits || i === last)) return "";
      named = x(i);
      return label;
    });
  }

  function yAxis({ log, unit }, isSmall) {
    const show = unit === "ratio" ? (value) => `${Number(value.toPrecision(2))} ×` : figures[unit];
    const axis = charts.figureAxis({ log, show });
    const size = isSmall ? 58 : axis.size;
    if (unit !== "ratio" || !log) return { ...axis, size };
    const marks = [0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 1, 1.25, 1.5, 2, 3, 5, 7, 10, 20, 50, 100];
    const splits = (u, i, min, max) => marks.filter((value) => value >= min && value <= max);
    return { ...axis, size, splits, filter: (u, values) => values };
  }

  function draw(chart) {
    const { figure, box, data } = chart;
    chart.plot?.destroy();
    chart.plot = undefined;
    chart.lines = isVisible(chart) ? shownIn(chart) : [];
    const { lines } = chart;
    if (!isVisible(chart)) return;
    box.textContent = lines.length ? "" : (data.empty ?? "Nothing was measured here.");
    if (lines.length === 0) return;
    const isSmall = figure.closest(".multiples") !== null;
    const names = lines.filter(({ way }) => way.short);
    const ends = lines.map(({ way }, i) => ({ index: i + 1, name: way.short, colour: cssOf(way) }));
    const tip = tooltip();
    const [low, high] = rangeOf(chart);
    const columns = columnsOf(lines, data.x, data.y.log);
    const apart = data.x.labels && data.x.at.length > 1 ? 0.05 * (data.x.at.at(-1) - data.x.at[0]) : 0;
    const margin = data.x.labels ? Math.max(apart, data.x.at.length > 1 ? 0 : 1) : 0;
    const edge = { stroke: "transparent", width: 0, points: { show: false } };
    const plot = new uPlot(
      {
        width: box.clientWidth,
        height: box.clientHeight,
        padding: [10, names.length ? lineEnds.room(names.map(({ way }) => way.short)) : data.x.clock ? 24 : 12, 0, 0],
        legend: { show: false },
        cursor: {
          ...(data.x.sync && { sync: { key: data.x.sync } }),
          drag: isSmall ? { x: false, y: false } : { x: true, y: !data.x.clock, uni: 40 },
          points: { show: lines.some(({ mark }) => mark === "points" || mark === "line"), size: 8, width: 2 },
          y: false,
          // If positions have labels, the cursor line is on one, not between two.
          move: (u, left, top) => [
            left < 0 || !data.x.labels || u.select.width > 0
              ? left
              : u.valToPos(u.data[0][u.posToIdx(left)], "x"),
            top,
          ],
        },
        scales: {
          x: { time: false, range: (u, min, max) => [min - margin, Math.max(max, min + 1e-9) + margin] },
          y: { distr: data.y.log ? 3 : 1, range: () => [low, high] },
        },
        axes: [xAxis(data.x), yAxis(data.y, isSmall)],
        series: [{}, ...lines.map((line) => seriesOf(line, isSmall)), ...columns.slice(lines.length + 1).map(() => edge)],
        bands: bandsOf(lines),
        hooks: {
          drawAxes: [(u) => behind(u, chart)],
          draw: [
            (u) => clipped(u, (ctx) => lines.forEach((line, i) => marks(ctx, u, line, i, lines.length))),
            (u) => names.length && lineEnds.place(u, ends),
          ],
          setCursor: [(u) => pointAt(u, tip, chart)],
        },
      },
      columns,
      box,
    );
    plot.over.append(tip);
    plot.over.addEventListener("click", () => followLink(chart));
    chart.plot = plot;
  }

  function clipped(u, paint) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    paint(ctx, bbox);
    ctx.restore();
  }

  // Shaded ranges and horizontal lines.
  function behind(u, { data }) {
    clipped(u, (ctx, { left, top, width, height }) => {
      const y = (value) => u.valToPos(value, "y", true);
      ctx.strokeStyle = ctx.fillStyle = colour("muted");
      ctx.lineWidth = devicePixelRatio;
      ctx.globalAlpha = 0.16;
      for (const [[low, high]] of (data.shades ?? []).filter(([, when]) => holds(when))) {
        ctx.fillRect(left, y(high), width, y(low) - y(high));
      }
      ctx.globalAlpha = 0.8;
      ctx.beginPath();
      if (isKnown(data.y.line)) {
        ctx.moveTo(left, y(data.y.line));
        ctx.lineTo(left + width, y(data.y.line));
      }
      ctx.stroke();
      ctx.beginPath();
      ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
      ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      for (const [at, text] of data.x.marks ?? []) {
        const x = u.valToPos(at, "x", true);
        ctx.moveTo(x, top);
        ctx.lineTo(x, top + height);
        ctx.fillText(text, x + 4 * devicePixelRatio, top + height - 6 * devicePixelRatio);
      }
      ctx.stroke();
    });
  }

  // Intervals as bars, windows as dots next to them, and markers that uPlot lacks. Lines are slightly offset, so that
  // their bars do not hide each other.
  function marks(ctx, u, { way, mark, y: ys, x: own, low, high, band, windows }, index, count) {
    const px = devicePixelRatio;
    const aside = low && !band ? (index - (count - 1) / 2) * Math.min(2.4, 12 / count) * px : 0;
    const { top, height } = u.bbox;
    const at = own ?? u.data[0];
    const y = (value) => u.valToPos(value, "y", true);
    ctx.strokeStyle = ctx.fillStyle = canvasColour(way);
    ctx.lineWidth = 1.4 * px;
    for (let i = 0; i < at.length; i++) {
      const x = u.valToPos(at[i], "x", true) + aside;
      if (low && !band && isKnown(low[i]) && isKnown(high[i])) {
        ctx.beginPath();
        ctx.moveTo(x, y(low[i]));
        ctx.lineTo(x, y(high[i]));
        for (const end of [low[i], high[i]]) {
          ctx.moveTo(x - 2.5 * px, y(end));
          ctx.lineTo(x + 2.5 * px, y(end));
        }
        ctx.stroke();
      }
      ctx.globalAlpha = 0.5;
      for (const value of windows?.[i] ?? []) {
        if (!(value > 0)) continue;
        ctx.beginPath();
        ctx.arc(x + 2.5 * px, y(value), 1.3 * px, 0, 2 * Math.PI);
        ctx.fill();
      }
      ctx.globalAlpha = 1;
      if (!isKnown(ys[i])) continue;
      ctx.beginPath();
      if (mark === "stems" && ys[i] > 0) {
        const beside = x + (index - (count - 1) / 2) * 2.4 * px;
        ctx.moveTo(beside, top + height);
        ctx.lineTo(beside, y(ys[i]));
        ctx.stroke();
      } else if (mark === "rings") {
        ctx.arc(x, y(ys[i]), 4.5 * px, 0, 2 * Math.PI);
        ctx.stroke();
      } else if (mark === "crosses") {
        for (const side of [-1, 1]) {
          ctx.moveTo(x - 4 * px, top + height - (7 + 4 * side) * px);
          ctx.lineTo(x + 4 * px, top + height - (7 - 4 * side) * px);
        }
        ctx.stroke();
      } else if (mark === "triangles") {
        ctx.moveTo(x - 4 * px, top);
        ctx.lineTo(x + 4 * px, top);
        ctx.lineTo(x, top + 7 * px);
        ctx.fill();
      }
    }
  }

  const escape = (text) =>
    text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

  // Index of a position's title and key on the axis.
  function nameAt({ at, title_of }, value) {
    const i = at.indexOf(value);
    return title_of?.[i] ?? i;
  }

  function titleAt({ x }, value) {
    if (x.nines) return `${charts.nines.percent(value)} took no longer than`;
    const title = (x.titles ?? x.labels)?.[nameAt(x, value)];
    if (x.clock) return [title, value < 10 ? seconds(value) : clock(value)].filter(Boolean).join(", ");
    return title ?? String(value);
  }

  // A line's row in the tooltip. A line with its own positions shows its value there, or its last one.
  function rowAt(u, { data }, line, index) {
    const { idx } = u.cursor;
    let value = u.data[index + 1][idx];
    if (line.mark === "steps") for (let i = idx; i >= 0 && !isKnown(value); i--) value = u.data[index + 1][i];
    if (!isKnown(value) || line.is_reference) return [];
    const own = (line.x ?? data.x.at).indexOf(u.data[0][idx]);
    const note = line.notes?.[own] ? escape(line.notes[own]) : "";
    const show = figures[data.y.unit];
    const ends = isKnown(line.low?.[own]) && isKnown(line.high?.[own]);
    const interval = ends ? `<small>${show(line.low[own])} – ${show(line.high[own])}</small>` : "";
    const shown = isAtEdge(line) ? "" : show(value);
    const text = `<span>${escape(line.way.name)}${note}</span><span>${shown}${interval}</span>`;
    return [{ value, html: `<div>${swatchOf(line.way.colour, line.way.dash)}${text}</div>` }];
  }

  function pointAt(u, tip, chart) {
    const { idx, left, event } = u.cursor;
    // Charts share the cursor; only the one under the pointer shows values.
    tip.hidden = !isKnown(idx) || left < 0 || !event;
    if (tip.hidden) return;
    const rows = chart.lines.flatMap((line, i) => rowAt(u, chart, line, i)).sort((a, b) => b.value - a.value);
    tip.hidden = rows.length === 0;
    tip.innerHTML =
      `<b>${escape(titleAt(chart.data, u.data[0][idx]))}</b>` + rows.map(({ html }) => html).join("");
    placeTip(u, tip);
  }

  // A click near a point follows its link.
  function followLink({ data, lines, plot }) {
    const { idx, top } = plot.cursor;
    if (!isKnown(idx)) return;
    const distance = ({ value }) => Math.abs(plot.valToPos(value, "y") - top);
    const [nearest] = lines
      .map((line, i) => ({ link: line.link, value: plot.data[i + 1][idx] }))
      .filter(({ link, value }) => isKnown(link) && isKnown(value))
      .filter((it) => distance(it) < 16)
      .sort((a, b) => distance(a) - distance(b));
    const id = nearest && nearest.link + (data.x.keys?.[nameAt(data.x, plot.data[0][idx])] ?? "");
    if (id && document.getElementById(id)) location.hash = id;
  }

  function drawAll() {
    made.forEach(draw);
  }

  // Records on each figure how many of its lines are visible on the canvas, so that a blank plot is detected.
  function countDrawn() {
    let sum = 0;
    for (const { figure, plot, lines } of made) {
      const inside = (lines ?? []).map((line, i) => ({ ...line, i })).filter((line) => !isAtEdge(line));
      const drawn = inside.filter(({ way, i }) => charts.isDrawn(plot, plot.data[0], way.colour, plot.data[i + 1]));
      figure.dataset.linesShown = inside.length;
      figure.dataset.linesDrawn = drawn.length;
      sum += drawn.length;
    }
    root.dataset.lines = sum;
    if (made.length > 0) root.dataset.plots = "drawn";
  }

  // Shows the parts that match the choices, and updates texts that name them.
  function follow() {
    for (const element of all("[data-when]")) element.hidden = !holds(JSON.parse(element.dataset.when));
    for (const element of all("[data-says]")) {
      const control = document.querySelector(`[data-choice="${element.dataset.says}"]`);
      const chosen = control?.selectedOptions?.[0] ?? control?.querySelector('[aria-pressed="true"]');
      element.textContent = chosen?.textContent ?? "";
    }
    for (const count of all("[data-count]")) {
      const rows = all("tbody tr", count.closest("section"));
      count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
    }
    drawAll();
  }

  function choose(control, value) {
    state[control.dataset.choice] = value;
    if (control.tagName === "SELECT") control.value = value;
    else page.choose(control, value);
    follow();
  }

  // Table fields with tooltips. The arrow keys move between them, a click applies their choice.
  function tellDetails() {
    const tip = tooltip();
    tip.classList.add("fixed");
    document.body.append(tip);
    const fieldOf = (event) => event.target.closest("td:has(> template)");
    const hide = () => {
      tip.hidden = true;
    };
    const tell = (event) => {
      const field = fieldOf(event);
      if (!field) return hide();
      tip.innerHTML = field.querySelector("template").innerHTML;
      tip.hidden = false;
      const { left, width, top, bottom } = field.getBoundingClientRect();
      const middle = Math.min(left + width / 2 - tip.offsetWidth / 2, innerWidth - tip.offsetWidth - 8);
      const above = top - tip.offsetHeight - 8;
      tip.style.left = `${Math.max(8, middle)}px`;
      tip.style.top = `${above > 56 ? above : bottom + 8}px`;
    };
    const open = (field) => {
      const [name, value] = field.dataset.sets.split("=");
      choose(document.querySelector(`[data-choice="${name}"]`), value);
    };
    function move(event, field, rows) {
      const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (event.key === "Escape") hide();
      if (event.key === "Enter") open(field);
      if (!step) return;
      event.preventDefault();
      const y = rows.findIndex((row) => row.includes(field));
      const next = rows[y + step[0]]?.[rows[y].indexOf(field) + step[1]];
      if (!next) return;
      field.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    }
    for (const table of all("table:has(td > template)")) {
      const rows = all("tbody tr", table).map((row) => all("td:has(> template)", row)).filter((row) => row.length > 0);
      // One tab stop per table.
      for (const field of rows.flat()) field.tabIndex = field === rows[0][0] ? 0 : -1;
      for (const name of ["pointerover", "focusin"]) table.addEventListener(name, tell);
      for (const name of ["pointerleave", "focusout"]) table.addEventListener(name, hide);
      table.addEventListener("click", (event) => {
        fieldOf(event)?.focus({ preventScroll: true });
        if (fieldOf(event)) open(fieldOf(event));
      });
      table.addEventListener("keydown", (event) => fieldOf(event) && move(event, fieldOf(event), rows));
    }
    addEventListener("scroll", hide, { passive: true, capture: true });
  }

  for (const control of all("[data-choice]")) {
    const first = control.tagName === "SELECT" ? control.value : control.querySelector("button")?.dataset.value;
    state[control.dataset.choice] = first;
    if (control.tagName === "SELECT") control.addEventListener("change", () => choose(control, control.value));
    control.addEventListener("click", ({ target }) => target.dataset.value && choose(control, target.dataset.value));
  }
  for (const button of all(".legend [data-key]")) {
    button.addEventListener("click", () => {
      const show = hidden.delete(button.dataset.key);
      if (!show) hidden.add(button.dataset.key);
      button.setAttribute("aria-pressed", String(show));
      drawAll();
    });
  }
  for (const chart of made) {
    chart.figure.querySelector(".choices")?.addEventListener("click", ({ target }) => {
      if (!target.dataset.scale) return;
      chart.data.y.log = target.dataset.scale === "log";
      page.choose(target.parentElement, target.dataset.scale);
      draw(chart);
    });
  }
  for (const table of all("table")) {
    if (table.querySelector("thead button")) page.makeSortable(table);
  }
  tellDetails();
  page.makeTheme(drawAll);
  follow();
  // uPlot draws in its own microtask.
  setTimeout(countDrawn, 0);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    drawAll();
  });
})();
