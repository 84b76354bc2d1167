// The part of the report's script that draws a comparison. It shares the figures, colours and axes of the rest.
function comparison(shared) {
  "use strict";

  const data = JSON.parse(document.getElementById("against-data").textContent);
  const { figures, colour, swatchOf, axes, tooltip, placeTip, choose } = shared;
  const ours = data.pairs[0];
  // Mixed pairs are in the matrix only.
  const stacks = data.pairs.map((pair, index) => ({ ...pair, index })).filter(({ mixed }) => !mixed);
  const hues = ["ours", "peer-1", "peer-2", "peer-3", "peer-4", "peer-5"];
  const hueOf = (stack) => hues[stacks.indexOf(stack) % hues.length];
  const hidden = new Set();
  let line = Math.max(
    0,
    data.lines.findIndex(({ label }) => label.includes("in flight")),
  );

  const escape = (text) =>
    text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const ratioText = (ratio) =>
    ratio.toFixed(ratio < 0.0995 || Math.abs(ratio - 1) < 0.005 ? 3 : ratio < 1.995 ? 2 : ratio < 19.95 ? 1 : 0);
  const rateText = (rate) => (rate === undefined ? "–" : figures.rate(rate));
  const interval = (numbers) => (numbers[1] === null ? "" : ` (${ratioText(numbers[1])}–${ratioText(numbers[2])})`);
  const words = {
    faster: `${ours.name} is faster`,
    same: "no difference",
    slower: `${ours.name} is slower`,
    unclear: "cannot tell: the interval is too wide, or there are too few windows",
    missing: "not measured",
  };
  // The depth of a field's colour: the end of the interval that is nearest to 1, as in the other tables.
  const certain = ([ratio, low, high]) =>
    Math.min(
      1,
      Math.max(0.12, Math.min(...[low ?? ratio, high ?? ratio].map((end) => Math.abs(Math.log(end)))) / Math.log(8)),
    );
  const sideOf = (cell, pair) => cell?.sides.find((side) => side.pair === pair);

  // Sizes lie where they lie in the other plots: 0 B two powers of two below the smallest.
  const smallest = data.sizes.find(({ bytes }) => bytes > 0)?.bytes ?? 1;
  const positions = data.sizes.map(({ bytes }) => Math.log2(bytes || smallest / 4));
  const cellsBySize = () => data.sizes.map((_, i) => data.lines[line].cells.find(({ size }) => size === i));
  const lineName = ({ label, transport }) => `${label}, ${transport}`;

  const plots = new Map();

  function series(name) {
    const cells = cellsBySize();
    const column = (figure) => cells.map((cell) => (cell ? (figure(cell) ?? null) : null));
    if (name === "against-rate") {
      const socket = { name: "bare socket", hue: "socket", values: column((cell) => cell.reference), key: "reference" };
      const all = stacks.map((stack) => ({
        name: stack.name,
        hue: hueOf(stack),
        key: stack.index,
        values: column((cell) => sideOf(cell, stack.index)?.rate),
      }));
      return [...all, socket].filter(({ values }) => values.some((value) => value !== null));
    }
    return stacks
      .slice(1)
      .map((stack) => ({
        name: stack.name,
        hue: hueOf(stack),
        key: stack.index,
        values: column((cell) => sideOf(cell, stack.index)?.ratio?.[0]),
        bars: cells.map((cell) => sideOf(cell, stack.index)?.ratio),
      }))
      .filter(({ values }) => values.some((value) => value !== null));
  }

  function draw(name) {
    const box = document.querySelector(`[data-chart="${name}"] .plot`);
    const isRatio = name === "against-ratio";
    const all = series(name);
    const isShown = ({ key }) => !hidden.has(key);
    plots.get(name)?.plot.destroy();
    const tip = tooltip();
    const show = isRatio ? (value) => `${ratioText(value)} ×` : figures.rate;
    const { floor } = data.lines[line];
    const bounds = all
      .filter(isShown)
      .flatMap(({ values, bars }) =>
        bars ? bars.filter(Boolean).flatMap(([ratio, low, high]) => [ratio, low ?? ratio, high ?? ratio]) : values,
      )
      .filter(Boolean);
    const range = isRatio
      ? [Math.min(...bounds, 1 / floor, 0.9) * 0.92, Math.max(...bounds, floor, 1.1) * 1.08]
      : [Math.min(...bounds) * 0.7, Math.max(...bounds) * 1.5];
    const plot = new uPlot(
      {
        width: box.clientWidth,
        height: box.clientHeight,
        padding: [10, 12, 0, 0],
        legend: { show: false },
        cursor: {
          points: { size: 9, width: 2 },
          y: false,
          drag: { x: false, y: false },
          move: (u, left, top) => [left < 0 ? left : u.valToPos(positions[u.posToIdx(left)], "x"), top],
        },
        scales: { x: { time: false, range: (u, min, max) => [min - 0.7, max + 0.7] }, y: { distr: 3, range } },
        axes: axes({ positions, sizes: data.sizes, log: true, show: isRatio ? ratioTick : show }),
        series: [
          {},
          ...all.map((one) => ({
            show: isShown(one),
            stroke: colour(one.hue),
            width: one.hue === "ours" ? 2.8 : one.key === "reference" ? 1.6 : 2,
            dash: one.key === "reference" ? [2, 3] : [],
            spanGaps: false,
            points: { show: true, size: 6.5, width: 1.5, stroke: colour(one.hue), fill: colour("panel") },
          })),
        ],
        hooks: {
          drawAxes: [(u) => isRatio && noiseBand(u, floor)],
          draw: [(u) => isRatio && intervals(u, all.filter(isShown))],
          setCursor: [(u) => pointAt(u, tip, all, show)],
        },
      },
      [positions, ...all.map(({ values }) => values)],
      box,
    );
    plot.over.append(tip);
    plots.set(name, { plot, all, isShown });
  }

  const ratioTick = (value) => `${String(Number(value.toPrecision(2)))} ×`;

  // Where a ratio makes nobody faster, and the line of 1.
  function noiseBand(u, floor) {
    const { ctx, bbox } = u;
    const y = (value) => Math.min(Math.max(u.valToPos(value, "y", true), bbox.top), bbox.top + bbox.height);
    ctx.save();
    ctx.globalAlpha = 0.16;
    ctx.fillStyle = colour("muted");
    ctx.fillRect(bbox.left, y(floor), bbox.width, y(1 / floor) - y(floor));
    ctx.globalAlpha = 1;
    ctx.strokeStyle = colour("muted");
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(bbox.left, y(1));
    ctx.lineTo(bbox.left + bbox.width, y(1));
    ctx.stroke();
    ctx.restore();
  }

  function intervals(u, shown) {
    const { ctx } = u;
    const cap = 3.5 * devicePixelRatio;
    ctx.save();
    ctx.lineWidth = 1.6 * devicePixelRatio;
    for (const { hue, bars } of shown) {
      ctx.strokeStyle = colour(hue);
      ctx.beginPath();
      for (const [i, numbers] of bars.entries()) {
        if (!numbers || numbers[1] === null) continue;
        const x = u.valToPos(positions[i], "x", true);
        const [low, high] = [numbers[1], numbers[2]].map((end) => u.valToPos(end, "y", true));
        ctx.moveTo(x, low);
        ctx.lineTo(x, high);
        for (const end of [low, high]) {
          ctx.moveTo(x - cap, end);
          ctx.lineTo(x + cap, end);
        }
      }
      ctx.stroke();
    }
    ctx.restore();
  }

  function pointAt(u, tip, all, show) {
    const { idx, left, event } = u.cursor;
    if (idx === null || idx === undefined || left < 0 || !event) {
      tip.hidden = true;
      return;
    }
    const rows = all
      .filter(({ key, values }) => !hidden.has(key) && values[idx] !== null)
      .sort((a, b) => b.values[idx] - a.values[idx]);
    const ends = ({ bars }) => (bars?.[idx] ? interval(bars[idx]) : "");
    tip.innerHTML =
      `<b>${data.sizes[idx].label}</b>` +
      rows
        .map(
          (one) =>
            `<div>${swatchOf(one.hue, one.key === "reference" ? [2, 3] : [])}<span>${escape(one.name)}</span><span>${show(one.values[idx])}${ends(one)}</span></div>`,
        )
        .join("");
    tip.hidden = rows.length === 0;
    placeTip(u, tip);
  }

  // The table of costs: for each size a row for each stack.
  function costs() {
    const table = document.querySelector(".costs");
    const time = (cost) =>
      cost
        ? `${figures.time(cost[0] + cost[1])}<small>${figures.time(cost[0])} + ${figures.time(cost[1])}</small>`
        : "–";
    const number = (value) =>
      value === null || value === undefined
        ? "–"
        : value >= 0.0095
          ? String(Number(value.toPrecision(2)))
          : value.toFixed(3).replace("0.000", "0");
    const groups = ["CPU time", "Context switches", "System calls"];
    const head =
      `<thead><tr><th scope="col" rowspan="2">Size</th><th scope="col" class="words" rowspan="2">Stack</th><th scope="col" rowspan="2">Rate</th><th scope="col" rowspan="2">${escape(ours.name)} ÷ it</th>` +
      `${groups.map((name) => `<th scope="colgroup" colspan="2">${name}</th>`).join("")}</tr><tr>${groups.map(() => `<th scope="col">client</th><th scope="col">server</th>`).join("")}</tr></thead>`;
    const row = (cell, side, isFirst) => {
      const [client, server] = side.cost ?? [];
      const pair = data.pairs[side.pair];
      const ratio =
        side.pair === 0
          ? ""
          : side.ratio
            ? `${ratioText(side.ratio[0])} ×<small> ${interval(side.ratio)}</small>`
            : "not measured";
      return (
        `<tr class="${isFirst ? "first" : ""}${side.pair === 0 ? " own" : ""}"><th scope="row">${isFirst ? data.sizes[cell.size].label : `<span class="unseen">${data.sizes[cell.size].label}</span>`}</th>` +
        `<td class="words">${swatchOf(hueOf(stacks.find(({ index }) => index === side.pair)), [])} ${escape(pair.name)}</td><td>${rateText(side.rate)}</td><td>${ratio}</td>` +
        `<td class="split">${time(client)}</td><td class="split">${time(server)}</td><td>${number(client?.[2])}</td><td>${number(server?.[2])}</td><td>${number(client?.[3])}</td><td>${number(server?.[3])}</td></tr>`
      );
    };
    const rows = data.lines[line].cells.flatMap((cell) =>
      cell.sides
        .filter(({ pair }) => stacks.some(({ index }) => index === pair))
        .map((side, i) => row(cell, side, i === 0)),
    );
    table.innerHTML = `${head}<tbody>${rows.join("")}</tbody>`;
  }

  function drawAll() {
    for (const name of ["against-rate", "against-ratio"]) draw(name);
  }

  function look(index) {
    line = index;
    document.querySelector("[data-look]").value = String(index);
    document.querySelector("[data-looked]").textContent = lineName(data.lines[line]);
    document.querySelector("[data-operation]").textContent = data.lines[line].operation;
    drawAll();
    costs();
  }

  // What a field of the tables stands for: both rates and latencies, and the ratio of each pair of windows.
  function details(at, peer) {
    const [index, size] = at.split(",").map(Number);
    const cell = data.lines[index].cells.find((one) => one.size === size);
    const stack = stacks.find(({ name }) => name === peer);
    const [own, theirs] = [sideOf(cell, 0), sideOf(cell, stack.index)];
    const latency = (side) =>
      side.latency
        ? `median ${figures.time(side.latency[0])}, p99 ${figures.time(side.latency[1])}, max ${figures.time(side.latency[2])}`
        : "";
    const row = (hue, name, side) =>
      `<div>${swatchOf(hue, [])}<span>${escape(name)}</span><span>${rateText(side.rate)}</span></div><p>${latency(side)}</p>` +
      (side.excluded ?? []).map((reason) => `<p class="failed">left out: ${escape(reason)}</p>`).join("") +
      (side.limited ? `<p>${side.limited} of ${side.windows.length} windows: its client was the limit</p>` : "");
    const share = cell.share
      ? `<div>${swatchOf("socket", [2, 3])}<span>bare socket</span><span>${rateText(cell.reference)}</span></div><p>${escape(ours.name)} reaches ${figures.percent(cell.share[0])} of it</p>`
      : "";
    const ratio = theirs.ratio
      ? `<p><strong>${ratioText(theirs.ratio[0])} ×${interval(theirs.ratio)}</strong>, ${theirs.ratio[3]} pairs of windows: ${words[theirs.verdict]}</p>`
      : `<p><strong>${words[theirs.verdict]}</strong></p>`;
    const median = theirs.median
      ? `<p>median time <strong>${ratioText(theirs.median[0])} ×${interval(theirs.median)}</strong>: ${words[theirs.median_verdict]}</p>`
      : "";
    return `<b>${lineName(data.lines[index])}, ${data.sizes[size].label}</b>${row("ours", ours.name, own)}${row(hueOf(stack), stack.name, theirs)}${share}${ratio}${median}${strip(own, theirs)}`;
  }

  // One dot for the ratio of each round, so that a spread is seen and not only told.
  function strip(own, theirs) {
    const ratios = own.windows.map((rate, i) => (rate && theirs.windows[i] ? rate / theirs.windows[i] : null));
    const known = ratios.filter((ratio) => ratio !== null);
    if (known.length < 2) return "";
    const [low, high] = [Math.min(...known, 1) * 0.97, Math.max(...known, 1) * 1.03].map(Math.log);
    const x = (ratio) => (6 + (228 * (Math.log(ratio) - low)) / (high - low)).toFixed(1);
    const dots = ratios.map((ratio, i) =>
      ratio === null ? "" : `<circle cx="${x(ratio)}" cy="${10 + (i % 2) * 6}" r="3"/>`,
    );
    return `<svg class="strip" viewBox="0 0 240 34" width="240" height="34" aria-hidden="true"><line x1="${x(1)}" x2="${x(1)}" y1="2" y2="24"/><text x="${x(1)}" y="33">1</text>${dots.join("")}</svg>`;
  }

  function makeTables() {
    const tip = tooltip();
    tip.classList.add("fixed");
    document.body.append(tip);
    const hide = () => {
      tip.hidden = true;
    };
    const tell = (field) => {
      tip.innerHTML = details(field.dataset.at, field.closest("[data-peer]").dataset.peer);
      tip.hidden = false;
      const box = field.getBoundingClientRect();
      const left = Math.min(
        Math.max(8, box.left + box.width / 2 - tip.offsetWidth / 2),
        innerWidth - tip.offsetWidth - 8,
      );
      const above = box.top - tip.offsetHeight - 8;
      tip.style.left = `${Math.max(8, left)}px`;
      tip.style.top = `${above > 56 ? above : box.bottom + 8}px`;
    };
    for (const table of document.querySelectorAll(".peer .heat")) {
      const fields = () => [...table.tBodies[0].rows].map((row) => [...row.querySelectorAll("[data-at]")]);
      // One stop of the tab key for each table; the arrows move within it.
      fields().flat()[0]?.setAttribute("tabindex", "0");
      const field = (event) => event.target.closest("[data-at]");
      table.addEventListener("pointerover", (event) => (field(event) ? tell(field(event)) : hide()));
      table.addEventListener("pointerleave", hide);
      table.addEventListener("focusin", (event) => field(event) && tell(field(event)));
      table.addEventListener("focusout", hide);
      const open = (event) => look(Number(field(event).dataset.at.split(",")[0]));
      table.addEventListener("click", (event) => {
        if (!field(event)) return;
        field(event).focus({ preventScroll: true });
        open(event);
      });
      table.addEventListener("keydown", (event) => {
        const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
        if (event.key === "Escape") hide();
        if (!field(event)) return;
        if (event.key === "Enter") open(event);
        if (!move) return;
        event.preventDefault();
        const rows = fields().filter((row) => row.length > 0);
        const y = rows.findIndex((row) => row.includes(field(event)));
        const x = rows[y].indexOf(field(event));
        const next = rows[y + move[0]]?.[x + move[1]];
        if (!next) return;
        field(event).tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      });
    }
    addEventListener("scroll", hide, { passive: true, capture: true });
  }

  function makeControls() {
    const peers = document.querySelector('[data-choice="peer"]');
    const shows = (name) => {
      for (const peer of document.querySelectorAll("[data-peer]")) peer.hidden = peer.dataset.peer !== name;
      choose(peers, name);
    };
    peers.addEventListener("click", ({ target }) => target.dataset.value && shows(target.dataset.value));
    if (stacks.length > 1) shows(stacks[1].name);

    const select = document.querySelector("[data-look]");
    select.innerHTML = data.lines.map((one, i) => `<option value="${i}">${lineName(one)}</option>`).join("");
    select.addEventListener("change", () => look(Number(select.value)));

    const legend = document.querySelector('[data-legend="stacks"]');
    const all = [...stacks.map((stack) => ({ name: stack.name, hue: hueOf(stack), key: stack.index }))];
    if (data.lines.some(({ cells }) => cells.some(({ reference }) => reference)))
      all.push({ name: "bare socket", hue: "socket", key: "reference" });
    for (const { name, hue, key } of all) {
      const button = document.createElement("button");
      button.type = "button";
      button.innerHTML = swatchOf(hue, key === "reference" ? [2, 3] : []) + escape(name);
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        const hide = !hidden.has(key);
        if (hide) hidden.add(key);
        else hidden.delete(key);
        button.setAttribute("aria-pressed", String(!hide));
        drawAll();
      });
      legend.append(button);
    }
  }

  // Clients in rows, servers in columns, at one cell.
  function makeMatrix() {
    const select = document.querySelector("[data-matrix]");
    if (!select) return;
    const mixed = (cell) => cell.sides.some(({ pair }) => data.pairs[pair].mixed);
    const cells = data.lines.flatMap((one) => one.cells.filter(mixed).map((cell) => ({ one, cell })));
    select.innerHTML = cells
      .map(({ one, cell }, i) => `<option value="${i}">${lineName(one)}, ${data.sizes[cell.size].label}</option>`)
      .join("");
    const names = (end) => [...new Set(data.pairs.map((pair) => pair[end]))];
    const table = document.querySelector(".matrix");
    const signs = { faster: "▲", same: "=", slower: "▼", unclear: "?", missing: "" };
    const fill = () => {
      const { cell } = cells[Number(select.value)];
      const field = (client, server) => {
        const side = cell.sides.find(
          ({ pair }) => data.pairs[pair].client === client && data.pairs[pair].server === server,
        );
        if (!side) return "<td></td>";
        if (side.pair === 0) return `<td class="same own"><b>${rateText(side.rate)}</b><small>ours</small></td>`;
        const { ratio, verdict } = side;
        const depth = ratio ? certain(ratio) : 0;
        const below = ratio ? `${ratioText(ratio[0])} ×${interval(ratio)}` : words[verdict];
        return `<td class="${verdict}" style="--d:${depth.toFixed(2)}"><i aria-hidden="true">${signs[verdict]}</i><span class="unseen">${words[verdict]}, </span><b>${rateText(side.rate)}</b><small>${below}</small></td>`;
      };
      table.innerHTML =
        `<caption>Rates of clients at servers</caption><thead><tr><th scope="col">Client ↓ at server →</th>${names(
          "server",
        )
          .map((name) => `<th scope="col">${escape(name)}</th>`)
          .join("")}</tr></thead>` +
        `<tbody>${names("client")
          .map(
            (client) =>
              `<tr><th scope="row">${escape(client)}</th>${names("server")
                .map((server) => field(client, server))
                .join("")}</tr>`,
          )
          .join("")}</tbody>`;
    };
    select.addEventListener("change", fill);
    fill();
  }

  makeTables();
  if (data.lines.length > 0) {
    makeControls();
    makeMatrix();
    look(line);
  }
  // For the rest of the script: its drawing again, and what each plot shows.
  return {
    drawAll,
    plots: () =>
      [...plots].map(([name, { plot, all, isShown }]) => ({
        name,
        plot,
        positions,
        shown: all.map((one, i) => [one.hue, i + 1, isShown(one)]).filter(([, , is]) => is),
      })),
  };
}
