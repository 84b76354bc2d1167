// Shared by all uPlot charts: colours for the canvas, axes, tooltips, and a check that a line has been drawn.
const charts = (() => {
  "use strict";

  // Ticks are rounded to as many digits as needed to distinguish them.
  const tick = (show) => (value) =>
    show(value)
      .replace(/(\.\d*?)0+(?=\D)/, "$1")
      .replace(/\.(?=\D)/, "");

  // A canvas needs resolved colours: the browser resolves them on an element.
  const probe = document.body.appendChild(document.createElement("i"));
  probe.hidden = true;
  const resolve = (css) => {
    probe.style.color = css;
    return getComputedStyle(probe).color;
  };
  const colour = (name) => resolve(`var(--${name})`);
  // `hue`: a custom property's name, or a colour.
  const swatchOf = (hue, dashes) =>
    `<svg width="18" height="10" aria-hidden="true"><line x1="0" y1="5" x2="18" y2="5" stroke-width="2.5"` +
    ` style="stroke:${hue.includes("(") ? hue : `var(--${hue})`}" stroke-dasharray="${dashes.join(" ")}"/></svg>`;

  const axis = () => ({
    stroke: colour("muted"),
    font: '12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif',
    ticks: { show: false },
    grid: { stroke: colour("grid"), width: 1 },
  });

  const figureAxis = ({ log, show }) => ({
    ...axis(),
    size: 76,
    gap: 8,
    ...(log && { splits: decades }),
    values: (u, splits) => splits.map((v) => (v === null ? "" : tick(show)(v))),
  });

  // Powers of ten; if fewer than three are visible, their halves and fifths too.
  function decades(u, i, min, max) {
    const first = Math.floor(Math.log10(min));
    const powers = Array.from({ length: Math.ceil(Math.log10(max)) - first + 1 }, (_, n) => 10 ** (first + n));
    const parts = max / min < 1e3 ? [1, 2, 5] : [1];
    return powers
      .flatMap((power) => parts.map((part) => part * power))
      .filter((v) => v >= min * 0.999 && v <= max * 1.001);
  }

  // An axis that gives each nine the same space: 1 is 90 %, 2 is 99 %.
  const nines = (() => {
    // 0 → "0 %", 1 → "90 %", 2 → "99 %", 3 → "99.9 %"; half of all lie at 0.3.
    const percent = (nines) => {
      const above = 100 * 10 ** -nines;
      return `${(100 - above).toFixed(Math.max(0, Math.ceil(nines - 2)))} %`;
    };

    // Returns as many labels as fit side by side.
    function labels(u, values) {
      let free = -Infinity;
      return values.map((value) => {
        const [x, label] = [u.valToPos(value, "x"), percent(value)];
        const half = 4 * label.length;
        if (x - half < free) return "";
        free = x + half;
        return label;
      });
    }

    const splits = (last) => [0, Math.log10(2), ...Array.from({ length: Math.floor(last) }, (_, i) => i + 1)];

    return { percent, labels, splits };
  })();

  function tooltip() {
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    return tip;
  }

  function placeTip(u, tip) {
    const { left, top } = u.cursor;
    const { clientWidth: width, clientHeight: height } = u.over;
    if (width < 1.6 * tip.offsetWidth) {
      // There is no space next to the pointer; below the plot, the values hide nothing.
      tip.style.left = `${Math.min(0, width - tip.offsetWidth)}px`;
      tip.style.top = `${height + 34}px`;
      return;
    }
    const beside = left + 18 + tip.offsetWidth <= width ? left + 18 : left - 18 - tip.offsetWidth;
    const fits = Math.min(Math.max(beside, 4 - u.over.offsetLeft), width - tip.offsetWidth);
    tip.style.left = `${fits}px`;
    tip.style.top = `${Math.min(Math.max(top - tip.offsetHeight / 2, 0), Math.max(0, height - tip.offsetHeight))}px`;
  }

  // Whether a line's colour is on the canvas at one of its points.
  function isDrawn({ ctx, valToPos }, positions, hue, values) {
    const wanted = (hue.includes("(") ? resolve(hue) : colour(hue)).match(/[\d.]+/g).map(Number);
    return values.some((value, at) => {
      if (value === null || value === undefined) return false;
      const x = Math.round(valToPos(positions[at], "x", true));
      const y = Math.round(valToPos(value, "y", true));
      const { data: pixels } = ctx.getImageData(x - 8, y - 8, 17, 17);
      for (let p = 0; p < pixels.length; p += 4) {
        if (pixels[p + 3] > 200 && [0, 1, 2].every((c) => Math.abs(pixels[p + c] - wanted[c]) < 12)) return true;
      }
      return false;
    });
  }

  return { tick, resolve, colour, swatchOf, axis, figureAxis, decades, nines, tooltip, placeTip, isDrawn };
})();
