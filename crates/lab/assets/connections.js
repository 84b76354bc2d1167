// Draws the plots of a connections study and makes its tables sortable. The words and the tables are in the page already.
(() => {
  "use strict";

  const data = JSON.parse(document.getElementById("data").textContent);
  const state = { statistic: "p50", hidden: new Set() };
  const { rate, time } = page.figures;
  const ways = new Map(data.ways.map((way) => [way.id, way]));
  const figures = {
    server: {
      of: (cell) => cell.server,
      ends: (cell) => cell.server_ends,
      windows: (cell) => cell.server_windows,
      show: time,
    },
    rate: {
      of: (cell) => cell.rate,
      ends: (cell) => cell.rate_ends,
      windows: (cell) => cell.rate_windows,
      show: rate,
    },
    latency: { of: (cell) => cell[state.statistic], ends: () => null, windows: () => [], show: time },
  };

  function drawAll() {
    for (const [name, figure] of Object.entries(figures)) {
      multiples.draw(document.querySelector(`[data-figure="${name}"]`), {
        panels: data.panels,
        ways,
        hidden: state.hidden,
        figure,
        at: (n) => (n === 1 ? "1 connection" : `${n} connections`),
        beside: () => "",
        label: (panel) => `${name} over connections, ${panel.title}. All values are in the table below.`,
      });
    }
    multiples.drawn();
  }

  page.makeTheme();
  for (const table of document.querySelectorAll("#servers table, #clients table, #arrivals table")) {
    page.makeSortable(table);
  }
  multiples.controls(state, data.ways, drawAll);
  drawAll();
})();
