// Draws the charts with the colours of the style sheet, again when the theme changes, and in
// light colours and paper's width for printing. Everything it needs is in the page.
"use strict";
(() => {
  const PAPER_PX = 680; // A4 or Letter less their margins
  const GAP_PX = 20;
  // A chart with its heading takes less than half a sheet, for it leaves that much of one blank.
  const PAPER_SHARE = 0.8;
  const PAPER_HEIGHT_PX = 320;
  const SLICE_MS = 12; // of drawing, before the page may scroll again
  const root = document.documentElement;
  const { figures, above } = JSON.parse(document.getElementById("figures").textContent);
  for (const figure of Object.values(figures)) { // what happened in a trial is told once
    if (figure.above !== undefined) figure.data = [...figure.data, ...above[figure.above]];
  }
  const config = { displayModeBar: false, responsive: true };

  function coloured(value) {
    if (Array.isArray(value)) return value.map(coloured);
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, it]) => [key, coloured(it)]));
    }
    const name = typeof value === "string" && value.match(/^var\((--[\w-]+)\)$/);
    return name ? colour(name[1]) : value;
  }

  // To run plotly.js takes as long as to read the rest of a long page: who only reads, need not wait.
  function plotly() {
    if (!window.Plotly) {
      const script = document.createElement("script");
      script.textContent = document.getElementById("plotly").textContent;
      document.head.append(script);
    }
    return window.Plotly;
  }

  function drawOne(ident, paper) {
    const plot = document.getElementById(ident);
    const { data, layout } = coloured(figures[ident]);
    layout.font = { ...layout.font, family: getComputedStyle(document.body).fontFamily };
    plot.style.height = "";
    if (paper) {
      const height = Math.min(plot.clientHeight * PAPER_SHARE, PAPER_HEIGHT_PX);
      plot.style.height = `${height}px`;
    }
    layout.height = plot.clientHeight;
    layout.autosize = !paper;
    if (paper) {
      const across = Number(getComputedStyle(plot).getPropertyValue("--across"));
      layout.width = (PAPER_PX - GAP_PX * (across - 1)) / across;
    }
    plotly().react(plot, data, layout, config);
  }

  // Long reports have hundreds of charts: those in sight come first, wherever the reader is by
  // then, the others while the page can be read, a few at a time. Paper gets all of them at once.
  const waiting = new Set();
  const inSight = new Set();
  let timer = 0;
  let whole = null; // since when: for who measures how long a page takes to open
  const sight = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) inSight.add(target.id);
      else inSight.delete(target.id);
    }
  }, { rootMargin: "50% 0px" });
  for (const ident of Object.keys(figures)) sight.observe(document.getElementById(ident));

  function draw(paper) {
    clearTimeout(timer);
    delete root.dataset.drawn;
    waiting.clear();
    for (const ident of Object.keys(figures)) {
      if (paper) drawOne(ident, true);
      else waiting.add(ident);
    }
    if (!paper) timer = setTimeout(drawSome);
  }

  function drawSome() {
    const until = performance.now() + SLICE_MS;
    while (waiting.size && performance.now() < until) {
      const seen = [...inSight].find((ident) => waiting.has(ident));
      const [first] = waiting;
      const next = seen ?? first;
      waiting.delete(next);
      drawOne(next, false);
    }
    if (![...inSight].some((ident) => waiting.has(ident))) whole ??= performance.mark("in sight");
    if (waiting.size) timer = setTimeout(drawSome);
    else root.dataset.drawn = "all";
  }

  // One cursor through all charts over time: the same second of the window in each.
  const overTime = Object.entries(figures)
    .filter(([, figure]) => figure.layout.meta?.axis === "time")
    .map(([ident]) => document.getElementById(ident));
  for (const plot of overTime) {
    const cursor = document.createElement("i");
    cursor.className = "cursor";
    cursor.hidden = true;
    plot.after(cursor);
    plot.addEventListener("pointermove", (event) => {
      if (!plot._fullLayout) return; // not drawn yet
      const { xaxis } = plot._fullLayout;
      const at = event.clientX - plot.getBoundingClientRect().left - xaxis._offset;
      if (at < 0 || at > xaxis._length) hideCursor();
      else showCursor(plot, xaxis.p2d(at));
    });
    plot.addEventListener("pointerleave", hideCursor);
  }

  function showCursor(pointed, second) {
    for (const plot of overTime.filter((it) => it._fullLayout)) { // those that are drawn
      const cursor = plot.nextElementSibling;
      const { xaxis, yaxis, yaxis3 } = plot._fullLayout;
      const lowest = yaxis3 ?? yaxis; // a second drawing below has the same seconds
      cursor.style.left = `${plot.offsetLeft + xaxis._offset + xaxis.d2p(second)}px`;
      cursor.style.top = `${plot.offsetTop + yaxis._offset}px`;
      cursor.style.height = `${lowest._offset + lowest._length - yaxis._offset}px`;
      if (plot === pointed) cursor.dataset.second = `${second.toFixed(1)} s`;
      else delete cursor.dataset.second;
      cursor.hidden = false;
    }
  }

  function hideCursor() {
    for (const plot of overTime) plot.nextElementSibling.hidden = true;
  }

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");

  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
  }

  function labelled() {
    button.textContent = isDark() ? "Light theme" : "Dark theme";
  }

  function refresh() {
    labelled();
    draw(false);
  }

  labelled();
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    refresh();
  });
  dark.addEventListener("change", refresh);

  let theme;
  const folded = [...document.querySelectorAll("details")];
  let opened = [];
  addEventListener("beforeprint", () => {
    theme = root.dataset.theme;
    root.dataset.theme = "light";
    opened = folded.filter((it) => !it.open);
    for (const it of opened) it.open = true;
    draw(true);
  });
  addEventListener("afterprint", () => {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    for (const it of opened) it.open = false;
    draw(false);
  });

  // Marks the section being read in the contents.
  const links = new Map(
    [...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]),
  );
  const watch = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        for (const link of links.values()) link.removeAttribute("aria-current");
        links.get(entry.target.id).setAttribute("aria-current", "true");
      }
    },
    { rootMargin: "-10% 0px -80% 0px" },
  );
  for (const ident of links.keys()) watch.observe(document.getElementById(ident));

  // A frame later than the load: by then the page is painted.
  addEventListener("load", () => requestAnimationFrame(() => setTimeout(draw, 0, false)));
})();
