// Shared by the pages of all studies: formatted figures, choices, light and dark themes, sortable tables.
const page = (() => {
  "use strict";

  // Figures: three digits and a unit, as in the page's text.
  const scaled = (value, steps) => {
    const [unit, per] = steps.find(([, per], i) => Math.abs(value) < 999.5 * per || i === steps.length - 1);
    const shown = value / per;
    const digits = shown === 0 || Number.isInteger(shown) ? 0 : Math.max(0, 2 - Math.floor(Math.log10(shown)));
    return `${shown.toFixed(Math.min(digits, 3))} ${unit}`.trim();
  };
  const figures = {
    time: (ns) =>
      scaled(ns, [
        ["ns", 1],
        ["µs", 1e3],
        ["ms", 1e6],
        ["s", 1e9],
      ]),
    percent: (share) => `${(share * 100).toPrecision(share < 0.995 ? 2 : 3)} %`,
    rate: (rate) =>
      `${scaled(rate, [
        ["", 1],
        ["k", 1e3],
        ["M", 1e6],
        ["G", 1e9],
      ])}/s`,
    throughput: (bytes) =>
      scaled(bytes, [
        ["B/s", 1],
        ["kB/s", 1e3],
        ["MB/s", 1e6],
        ["GB/s", 1e9],
      ]),
  };

  function choose(group, value) {
    for (const button of group.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String((button.dataset.value ?? button.dataset.scale) === value));
    }
  }

  // `changed` is called when the theme changes.
  function makeTheme(changed = () => {}) {
    const root = document.documentElement;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    // A page opened as a file may not use storage; the theme then lasts as long as the page.
    try {
      const stored = localStorage.getItem("thalweg-theme");
      if (stored) root.dataset.theme = stored;
    } catch {
      /* see above */
    }
    document.getElementById("theme").addEventListener("click", () => {
      const isDark = root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
      root.dataset.theme = isDark ? "light" : "dark";
      try {
        localStorage.setItem("thalweg-theme", root.dataset.theme);
      } catch {
        /* see above */
      }
      changed();
    });
    dark.addEventListener("change", changed);
  }

  // A button that copies a command; if the browser forbids that, the command is selected.
  for (const button of document.querySelectorAll("[data-copies]")) {
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(button.dataset.copies);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(button.previousElementSibling);
      }
    });
  }

  // Column headers have buttons that sort the table's rows.
  function makeSortable(table) {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const value = (row, i) => row.cells[i]?.dataset.v ?? row.cells[i]?.textContent ?? "";
    for (const [i, head] of [...table.tHead.rows[0].cells].entries()) {
      head.querySelector("button").addEventListener("click", () => {
        const descending = head.ariaSort === "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        const order = (a, b) => {
          const [x, y] = [value(a, i), value(b, i)];
          // Cells without a value come last in either order.
          if (x === "" || y === "") return (x === "") - (y === "");
          const by = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
          return descending ? -by : by;
        };
        body.append(...rows.sort(order));
      });
    }
  }

  // The target of a link may be collapsed: opens it for browsers that do not.
  function unfold() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = target?.closest("details:not([open])");
    if (!folded) return;
    folded.open = true;
    target.scrollIntoView();
  }
  addEventListener("hashchange", unfold);
  addEventListener("load", unfold);

  return { figures, choose, makeTheme, makeSortable };
})();
