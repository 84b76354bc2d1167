// Labels the lines of a plot at their ends, which avoids a legend.
const lineEnds = (() => {
  "use strict";

  // Distance between the middles of adjacent labels, px.
  const apart = 15;
  // Space for the connecting lines between plot and labels, px.
  const lead = 14;

  // Space for the labels next to a plot: the width of the longest.
  function room(names, font = "12px system-ui, sans-serif") {
    const { ctx } = (room.canvas ??= { ctx: document.createElement("canvas").getContext("2d") });
    ctx.font = font;
    return lead + 6 + Math.ceil(Math.max(0, ...names.map((name) => ctx.measureText(name).width)));
  }

  // Positions in the order of the wanted ones, as close to them as possible, inside, and at least `apart` apart.
  function spread(wanted, low, high) {
    const placed = [];
    for (const y of wanted) placed.push(Math.max(y, placed.length ? placed.at(-1) + apart : low));
    let limit = high;
    for (let i = placed.length - 1; i >= 0; i--) {
      placed[i] = Math.min(placed[i], limit);
      limit = placed[i] - apart;
    }
    return placed;
  }

  // `ends`: index in the plot's series, name and colour of each line. Called whenever the plot is drawn.
  function place(u, ends) {
    const { over } = u;
    const wrap = over.parentElement;
    wrap.querySelector(".ends")?.remove();
    const [width, height] = [over.clientWidth, over.clientHeight];
    const { min, max } = u.scales.x;
    const last = ({ index }) => {
      const [xs, ys] = [u.data[0], u.data[index]];
      for (let i = xs.length - 1; i >= 0; i--) {
        if (xs[i] >= min && xs[i] <= max && ys[i] !== null && ys[i] !== undefined) return i;
      }
      return -1;
    };
    const found = ends
      .map((end) => ({ ...end, at: last(end) }))
      .filter(({ index, at }) => at >= 0 && u.series[index].show)
      .map((end) => ({ ...end, x: u.valToPos(u.data[0][end.at], "x"), y: u.valToPos(u.data[end.index][end.at], "y") }))
      .filter(({ y }) => y >= -1 && y <= height + 1)
      .sort((a, b) => a.y - b.y);
    const ys = spread(
      found.map(({ y }) => y),
      6,
      height - 6,
    );
    const layer = document.createElement("div");
    layer.className = "ends";
    layer.setAttribute("aria-hidden", "true");
    layer.style.left = `${over.offsetLeft}px`;
    layer.style.top = `${over.offsetTop}px`;
    const paths = found.map(
      ({ x, y, colour }, i) =>
        `<path d="M${x + 4} ${y}L${width + 1} ${y}L${width + lead - 3} ${ys[i]}" stroke="${colour}"/>`,
    );
    layer.innerHTML = `<svg width="${width + lead}" height="${height}">${paths.join("")}</svg>`;
    for (const [i, { name }] of found.entries()) {
      const span = document.createElement("span");
      span.textContent = name;
      span.style.left = `${width + lead}px`;
      span.style.top = `${ys[i]}px`;
      layer.append(span);
    }
    wrap.append(layer);
  }

  return { room, place };
})();
