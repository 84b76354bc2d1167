// What several studies draw plots with: elements of SVG, and logarithmic axes.
const plot = (() => {
  "use strict";

  function element(name, attributes, parent, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent?.append(made);
    return made;
  }

  // Where a value lies between two others by its logarithm, from 0 to 1.
  const share = (value, from, to) => (to === from ? 0.5 : Math.log(value / from) / Math.log(to / from));

  // Powers of ten, with their halves and fifths where few of them are in sight.
  function decades(min, max, few = 1e3) {
    const first = Math.floor(Math.log10(min));
    const powers = Array.from({ length: Math.ceil(Math.log10(max)) - first + 1 }, (_, n) => 10 ** (first + n));
    const parts = max / min < few ? [1, 2, 5] : [1];
    return powers
      .flatMap((power) => parts.map((part) => part * power))
      .filter((v) => v >= min * 0.999 && v <= max * 1.001);
  }

  // Without zeros that say nothing: `5.00 ms` is `5 ms`.
  const round = (text) => text.replace(/(\.\d*?)0+(?=\D)/, "$1").replace(/\.(?=\D)/, "");

  return { element, share, decades, round };
})();
