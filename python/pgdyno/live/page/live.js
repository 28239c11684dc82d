// Shows a run as it goes on: named parts come as JSON over one stream, each whole, each the newest.
// Texts of others are only ever text; nothing here is made of HTML. The page asks for nothing else.
"use strict";
(() => {
  const STAGE_COLOURS = 6;
  const SVG = "http://www.w3.org/2000/svg";
  const LOST_AFTER_MS = 20000; // without a word; the server says something every 5 s
  // As in the report.
  const WHOLE = /(?<![\w-])(--[a-z][a-z-]{0,17}(?![\w-])|(?:\d[\d.,]* (?:h|min) )?\d[\d.,]* (?:h|min|[mµn]?s|(?:[KMGTP]i)?B(?:\/s)?)(?!\w))/;
  const root = document.documentElement;
  const parts = {};

  const at = (ident) => document.getElementById(ident);

  function put(ident, text) {
    const element = at(ident);
    if (element.textContent !== text) element.textContent = text;
  }

  function make(tag, name = "", ...inside) {
    const element = document.createElement(tag);
    if (name) element.className = name;
    for (const one of inside) if (one !== null && one !== undefined) element.append(one);
    return element;
  }

  function draw(tag, attributes = {}, text = null, colour = null) {
    const element = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== null) element.textContent = text;
    if (colour) element.style.setProperty("--colour", colour);
    return element;
  }

  const stages = () => (parts.head ? parts.head.stages : []);

  function colourOf(stage) {
    const index = Math.max(0, stages().findIndex((it) => it.name === stage));
    return `var(--stage-${(index % STAGE_COLOURS) + 1})`;
  }

  const count = (value) => Math.round(value).toLocaleString("en-GB");

  function short(value) {
    if (value >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
    return value >= 1e3 ? `${+(value / 1e3).toPrecision(3)}k` : `${+value.toPrecision(3)}`;
  }

  function clock(unixSeconds) {
    return new Date(unixSeconds * 1000).toLocaleTimeString("en-GB", {
      hour: "2-digit",
      minute: "2-digit",
    });
  }

  // -- parts of the head ------------------------------------------------------------------------

  function showHead(it) {
    document.title = `${it.plan} · pgdyno live`;
    put("kicker", it.kicker);
    put("question", it.question);
    const facts = it.about.map((one) => make("span", "", one));
    at("about").replaceChildren(make("strong", "", `${it.label}.`), " ", ...facts);
  }

  function showProgress(it) {
    const measured = it.number !== null;
    const where = measured ? `Trial ${it.number} of ${it.trials}` : "Before the first trial";
    put("count", measured ? `${where} · round ${it.round}` : it.step ? "Now" : where);
    put("stage", it.step || (measured ? it.stage : it.phase));
    put("phase", [measured ? it.phase : "", it.detail].filter(Boolean).join(": "));
    put("left", it.todo && it.done >= it.todo ? "none" : it.todo ? it.left : "–");
    const end = it.is_late ? "ends not before" : "ends at about";
    put("until", it.todo && it.left_s ? `${end} ${clock(Date.now() / 1000 + it.left_s)}` : "");
    const [first, second] = it.figures;
    put("rate", first ? first[0] : "–");
    put("rate-unit", first ? first[1] : "");
    put("rate-second", [second ? second.join(" ") : "", it.latency].filter(Boolean).join(", "));
    put("said", measured ? `${where}, stage ${it.stage}, ${it.phase}` : it.step || it.phase);
    showBar();
    showLine(it);
    const cost = it.cpu_s.toFixed(1);
    put("foot", `Served by pgdyno on the machine that drives; showing it has taken ${cost} s of CPU.`
      + " Nothing here can change the run.");
  }

  function showBar() {
    const trials = parts.trials || [];
    const now = parts.progress;
    const bar = at("bar");
    while (bar.children.length > trials.length) bar.lastChild.remove();
    while (bar.children.length < trials.length) bar.append(make("li", "", make("i")));
    trials.forEach((trial, index) => {
      const element = bar.children[index];
      const running = now && trial.number === now.number && !parts.end
        && (trial.state === "planned" || trial.state === "running");
      const broken = trial.state === "failed" || trial.state === "invalid";
      const share = trial.state === "finished" ? 1 : running ? now.share : 0;
      const round = index && trials[index - 1].round !== trial.round;
      element.className = `${broken ? "broken" : ""} ${round ? "new-round" : ""}`.trim();
      element.firstChild.style.setProperty("--share", share);
      element.firstChild.style.setProperty("--colour", colourOf(trial.stage));
      const state = running ? "is measured" : trial.value ? `${trial.value} ${trial.unit}` : trial.state;
      const words = `trial ${trial.number}, round ${trial.round}, ${trial.stage}: ${state}`;
      if (element.title !== words) {
        element.title = words;
        element.setAttribute("aria-label", words);
      }
    });
  }

  // -- charts: small, of lines and words ---------------------------------------------------------

  function canvas(ident, height, words) {
    const place = at(ident);
    const width = Math.max(200, place.clientWidth);
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": words });
    place.replaceChildren(svg);
    return { svg, width, height };
  }

  function step(most, wanted) {
    const rough = most / wanted;
    const size = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((it) => it * size).find((it) => it >= rough);
  }

  // Axes of values over seconds, from zero up, with bands behind what is drawn.
  function axes(ident, { from, to, highest, bands, words, scale = short }) {
    const { svg, width, height } = canvas(ident, 190, words);
    const box = { left: 44, right: width - 8, top: 8, bottom: height - 24 };
    const x = (s) => box.left + ((s - from) / Math.max(1e-9, to - from)) * (box.right - box.left);
    const y = (v) => box.bottom - (v / highest) * (box.bottom - box.top);
    for (const band of bands) {
      const [begin, end] = [Math.max(from, band.from), Math.min(to, band.to)];
      if (end <= begin) continue;
      svg.append(draw("rect", {
        class: "band", x: x(begin), width: Math.max(1, x(end) - x(begin)), y: box.top,
        height: box.bottom - box.top,
      }, null, band.colour));
    }
    const up = step(highest, 4);
    for (let value = 0; value <= highest; value += up) {
      svg.append(draw("line", { class: "rule", x1: box.left, x2: box.right, y1: y(value), y2: y(value) }));
      svg.append(draw("text", { x: box.left - 6, y: y(value) + 4, "text-anchor": "end" }, scale(value)));
    }
    const along = step(to - from, Math.max(2, width / 110));
    for (let second = Math.ceil(from / along) * along; second <= to; second += along) {
      const anchor = x(second) > box.right - 20 ? "end" : "middle";
      svg.append(draw("text", { x: x(second), y: height - 6, "text-anchor": anchor }, `${+second.toFixed(6)} s`));
    }
    return { svg, x, y };
  }

  // From the least of each point to the greatest, where a point is longer than a second.
  function envelope(svg, x, y, ends, colour) {
    for (const run of runs(ends)) {
      const edge = (side) => run.map(([s, both]) => `${x(s).toFixed(1)},${y(both[side]).toFixed(1)}`);
      const path = [...edge(0), ...edge(1).toReversed()].join(" ");
      svg.append(draw("polygon", { class: "ends", points: path }, null, colour));
    }
  }

  const middles = (values, stepOf) => values.map((value, index) => [(index + 0.5) * stepOf, value]);
  const greatest = (ends) => Math.max(0, ...ends.map((both) => (both ? both[1] : 0)));

  function overTime(ident, { points, ends, colour, ...of }) {
    const { svg, x, y } = axes(ident, of);
    envelope(svg, x, y, ends, colour);
    for (const run of runs(points)) {
      const path = run.map(([s, v]) => `${x(s).toFixed(1)},${y(v).toFixed(1)}`).join(" ");
      const [first, last] = [x(run[0][0]).toFixed(1), x(run.at(-1)[0]).toFixed(1)];
      svg.append(draw("polygon", { class: "below", points: `${first},${y(0)} ${path} ${last},${y(0)}` }, null, colour));
      svg.append(draw("polyline", { class: "curve", points: path }, null, colour));
    }
  }

  // Layers on top of each other, each as wide as its step; where nothing is known there is nothing.
  function stacked(ident, { layers, stepOf, ...of }) {
    const { svg, x, y } = axes(ident, of);
    const below = new Array(layers[0].values.length).fill(0);
    for (const layer of layers) {
      for (const run of runs(layer.values.map((value, index) => [index, value]))) {
        const upper = run.flatMap(([index, value]) => [
          [index * stepOf, below[index] + value], [(index + 1) * stepOf, below[index] + value]]);
        const lower = run.flatMap(([index]) => [[index * stepOf, below[index]], [(index + 1) * stepOf, below[index]]]);
        const path = [...upper, ...lower.toReversed()].map(([s, v]) => `${x(s).toFixed(1)},${y(v).toFixed(1)}`);
        svg.append(draw("polygon", { class: "layer", points: path.join(" ") }, null, layer.colour));
      }
      layer.values.forEach((value, index) => { below[index] += value ?? 0; });
    }
  }

  // Points without a value break a line.
  function runs(points) {
    const found = [[]];
    for (const point of points) {
      if (point[1] === null) found.push([]);
      else found.at(-1).push(point);
    }
    return found.filter((it) => it.length);
  }

  function showLine(it) {
    const line = it.line;
    const told = line && line.values.length > 0;
    at("line").hidden = !told;
    if (!told) return;
    put("line-title", `This trial: ${line.unit} since it began`);
    const points = middles(line.values, line.step_s);
    const values = line.values.filter((value) => value !== null);
    const to = Math.max(10, line.values.length * line.step_s);
    const warm = line.window_from_s === null ? to : line.window_from_s;
    overTime("line-plot", {
      from: 0, to, highest: Math.max(1, greatest(line.ends), ...values) * 1.08, points,
      ends: middles(line.ends, line.step_s), colour: colourOf(it.stage),
      bands: [{ from: 0, to: warm, colour: "var(--warmup)" }],
      words: `Line of ${line.unit} in this trial, now ${count(values.at(-1) || 0)}; grey is warm-up.`,
    });
  }

  // Ratios with their intervals, a row for each stage.
  function showRatios(ident, found, more = "") {
    const rows = found.filter((it) => it.ratio !== null);
    at(ident).hidden = rows.length === 0;
    if (!rows.length) return;
    const base = [...new Set(rows.map((it) => it.base))];
    put(`${ident}-caption`, (base.length === 1
      ? `The dot is the ratio to ${base[0]}, the bar its interval; the dashed line is no difference.`
      : "Each against the first stage of its load; the bar is the interval, the dashed line no difference.")
      + more);
    const words = rows.map((it) => `${it.stage} ${it.text} of ${it.base}, ${it.interval}, ${it.verdict}`);
    const each = 46;
    const { svg, width, height } = canvas(`${ident}-plot`, rows.length * each + 26, words.join("; "));
    const ends = rows.flatMap((it) => [it.ratio, it.low ?? it.ratio, it.high ?? it.ratio, 1]);
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    const margin = Math.max(0.02, (high - low) * 0.08);
    const [from, to] = [Math.max(0, low - margin), high + margin];
    const x = (v) => 8 + ((Math.min(to, Math.max(from, v)) - from) / (to - from)) * (width - 16);
    const along = step(to - from, Math.max(2, width / 130));
    for (let value = Math.ceil(from / along) * along; value <= to; value += along) {
      svg.append(draw("line", { class: "rule", x1: x(value), x2: x(value), y1: 0, y2: height - 20 }));
      svg.append(draw("text", { x: x(value), y: height - 5, "text-anchor": "middle" }, `×${+value.toFixed(4)}`));
    }
    svg.append(draw("line", { class: "one", x1: x(1), x2: x(1), y1: 0, y2: height - 20 }));
    rows.forEach((it, index) => {
      const y = index * each;
      const colour = colourOf(it.stage);
      svg.append(draw("text", { class: "name", x: 8, y: y + 14 }, fitted(it.stage, width - (it.of ? 290 : 190))));
      svg.append(draw("text", { class: "strong", x: width - 8, y: y + 14, "text-anchor": "end" }, `${it.of ? `${it.of} ` : ""}${it.text}, ${it.verdict.split(",")[0]}`));
      if (it.low !== null && it.high !== null) {
        svg.append(draw("line", { class: "whisker", x1: x(it.low), x2: x(it.high), y1: y + 28, y2: y + 28 }, null, colour));
      }
      svg.append(draw("circle", { class: "dot", cx: x(it.ratio), cy: y + 28, r: 5.5 }, null, colour));
    });
  }

  function fitted(text, width) {
    const most = Math.max(6, Math.floor(width / 7));
    return text.length > most ? `${text.slice(0, most - 1)}…` : text;
  }

  // -- the trial that runs ---------------------------------------------------------------------------

  function keys(ident, found) {
    at(ident).replaceChildren(...found.map(([label, colour]) => {
      const mark = make("span", "mark band");
      mark.style.setProperty("--colour", colour);
      return make("li", "", mark, label);
    }));
  }

  function showRunning(it) {
    at("running-none").hidden = it !== null;
    at("running-some").hidden = it === null;
    if (it === null) return;
    showSessions(it.sessions);
    showCpus(it.cpus);
    fill("classes", it.classes);
    fill("devices-now", it.devices);
    fill("events-now", it.events);
    at("log").hidden = !it.log;
    put("log", it.log);
  }

  function showSessions(it) {
    at("sessions").hidden = it === null;
    if (it === null) return;
    const layers = it.groups.map((one) => ({ ...one, colour: `var(--wait-${one.name})` }));
    const sums = layers[0].values.map((_, index) => layers.reduce((sum, one) => sum + (one.values[index] ?? 0), 0));
    keys("sessions-keys", layers.map((one) => [one.label, one.colour]));
    stacked("sessions-plot", {
      layers, stepOf: it.step_s, from: 0, to: Math.max(10, sums.length * it.step_s),
      highest: Math.max(1, ...sums) * 1.08, bands: [],
      words: `Active sessions in this trial, now ${short(sums.at(-1))}.`,
    });
    const highest = Math.max(1, ...layers.map((one) => greatest(one.ends))) * 1.08;
    at("sessions-apart").hidden = !layers.some((one) => one.ends.length);
    if (at("sessions-apart").hidden) return;
    const { svg, x, y } = axes("sessions-apart", {
      from: 0, to: Math.max(10, sums.length * it.step_s), highest, bands: [],
      words: `Each by itself, from the fewest to the most at once: at most ${short(highest / 1.08)}.`,
    });
    for (const one of layers) envelope(svg, x, y, middles(one.ends, it.step_s), one.colour);
  }

  function showCpus(it) {
    at("cpus").hidden = it === null;
    if (it === null) return;
    put("cpus-text", it.text);
    overTime("cpus-plot", {
      from: 0, to: Math.max(10, it.values.length * it.step_s), highest: 1, bands: [],
      points: middles(it.values, it.step_s), ends: middles(it.ends, it.step_s),
      colour: "var(--wait-cpu)", scale: (value) => `${Math.round(100 * value)}%`,
      words: `Line of how busy the CPUs are: ${it.text}`,
    });
  }

  // -- stages so far: the blocks of the report -----------------------------------------------------

  function rung(name) {
    const element = make("span", "rung", name);
    element.style.setProperty("--colour", `var(--rung-${name.toLowerCase().replace("?", "x")})`);
    return element;
  }

  // Text between backticks is code; no line ends within an option, or between a number and its unit.
  function inline(text) {
    const kept = (word) => make("span", word.startsWith("-") ? "option" : "whole", word);
    const whole = (part) => part.split(WHOLE).map((word, at) => (at % 2 ? kept(word) : word));
    return text.split("`").map((part, at) => (at % 2 ? make("code", "", ...whole(part)) : part));
  }

  function card(it) {
    const head = make("h3", "", it.name, " ", rung(it.rung));
    const value = make("p", "value", it.value, " ", make("span", "unit", it.unit));
    const against = it.verdict
      ? make("p", "against", make("span", it.tone, it.verdict), it.against || "no round to compare",
        it.interval ? make("small", "", it.interval) : null)
      : make("p", "against", it.against);
    const tail = it.tail ? make("p", "tail", make("span", it.tail.tone, it.tail.text)) : null;
    const element = make("li", "card", head, value, make("p", "second", it.second), against, tail,
      make("p", "risk", it.risk), ...it.doubts.map((one) => make("p", "doubt", ...inline(one))));
    element.style.setProperty("--colour", `var(--rung-${it.rung.toLowerCase().replace("?", "x")})`);
    return element;
  }

  function light(it) {
    const words = make("p", "", make("strong", "", `${it.text}.`), " ", it.meaning);
    const list = (reasons) => make("ul", "", ...reasons.map((one) => make("li", "", ...inline(one))));
    const besides = it.besides ? make("p", "besides", it.besides) : null;
    return make("div", `light ${it.tone}`, words, it.against.length ? list(it.against) : null,
      besides, it.unknown.length ? list(it.unknown) : null);
  }

  function inside(cell) {
    const text = cell.code ? make("code", "", cell.text)
      : cell.tone ? make("span", cell.tone, cell.text) : cell.text;
    return [cell.rung ? rung(cell.rung) : null, cell.rung ? " " : null, text,
      cell.note ? make("small", "", cell.note) : null];
  }

  function role(element, name) {
    element.setAttribute("role", name);
    return element;
  }

  function table(it) {
    const width = it.columns.length;
    const shape = width > 7 ? "widest wide" : width > 4 ? "wide" : width > 2 ? "middling" : "narrow";
    const heads = it.columns.map((one) => {
      const head = role(make("th", one.align, one.head, one.unit ? " " : null,
        one.unit ? make("small", "", one.unit) : null), "columnheader");
      head.scope = "col";
      return head;
    });
    const rows = it.rows.map((row) => role(make("tr", "", ...row.map((cell, index) => {
      const column = it.columns[index];
      if (index === 0) {
        const head = role(make("th", column.align, ...inside(cell)), "rowheader");
        head.scope = "row";
        return head;
      }
      const element = role(make("td", column.align, make("span", "cell", ...inside(cell))), "cell");
      element.dataset.head = column.unit ? `${column.head} ${column.unit}` : column.head;
      return element;
    })), "row"));
    const caption = make("p", "caption", it.caption);
    caption.ariaHidden = "true";
    const whole = role(make("table", shape, make("caption", "", it.caption),
      role(make("thead", "", role(make("tr", "", ...heads), "row")), "rowgroup"),
      role(make("tbody", "", ...rows), "rowgroup")), "table");
    const scroll = role(make("div", "scroll", whole), "region");
    scroll.tabIndex = 0;
    scroll.ariaLabel = it.caption;
    return make("div", "", caption, scroll);
  }

  // A table in place of the one before: whoever reads in it stays where they are.
  function fill(ident, found) {
    const before = at(ident).querySelector(".scroll");
    const [top, left] = before ? [before.scrollTop, before.scrollLeft] : [0, 0];
    const focused = before !== null && document.activeElement === before;
    at(ident).replaceChildren(...(found ? [table(found)] : []));
    const now = at(ident).querySelector(".scroll");
    if (!now) return;
    [now.scrollTop, now.scrollLeft] = [top, left];
    if (focused) now.focus({ preventScroll: true });
  }

  function showFound(it) {
    at("found-none").hidden = it !== null;
    at("found-some").hidden = it === null;
    if (it === null) return;
    at("answer").replaceChildren(...it.answer.map((one) => make("p", "", ...inline(one))));
    at("light").replaceChildren(...(it.light ? [light(it.light)] : []));
    at("cards").replaceChildren(...it.cards.map(card));
    put("caution", it.caution);
    at("tables").replaceChildren(...it.tables.map(table));
    showRatios("ratios", it.ratios);
    showRatios("tails", it.tails, " Above 1 they take longer.");
  }

  // -- the last trial ------------------------------------------------------------------------------

  function showLast(it) {
    at("last-none").hidden = it !== null;
    at("last-some").hidden = it === null;
    if (it === null) return;
    const name = `Trial ${it.number} · ${it.stage} · round ${it.round}`;
    put("timeline-title", it.state === "finished" ? name : `${name} · ${it.state}`);
    showTimeline(it);
    fill("devices", it.devices);
    fill("events", it.events);
  }

  function showTimeline(it) {
    const line = it.timeline;
    at("timeline").hidden = !line || !line.tpm.length;
    if (at("timeline").hidden) return;
    const from = line.second[0] - line.step_s / 2;
    const points = line.second.map((second, index) => [second, line.tpm[index]]);
    const checkpoints = line.checkpoints.map((one) => (
      { from: one.start_s, to: one.end_s, colour: "var(--checkpoint)" }));
    const outages = line.outages.map(([begin, end]) => (
      { from: begin, to: end, colour: "var(--outage)" }));
    const met = [];
    if (checkpoints.length) met.push(["checkpoint", "var(--checkpoint)"]);
    if (outages.length) met.push(["connections lost", "var(--outage)"]);
    if (from < 0) met.push(["warm-up, not counted", "var(--warmup)"]);
    keys("timeline-keys", met);
    overTime("timeline-plot", {
      from, to: Math.max(line.window_s, line.second.at(-1) + line.step_s / 2),
      highest: Math.max(1, ...line.tpm, ...line.greatest) * 1.08, points,
      ends: line.greatest.map((most, index) => [line.second[index], [line.least[index], most]]),
      colour: colourOf(it.stage),
      bands: [{ from, to: 0, colour: "var(--warmup)" }, ...checkpoints, ...outages],
      words: `Line of tpmTotal in trial ${it.number}, between ${count(Math.min(...line.tpm))} and`
        + ` ${count(Math.max(...line.tpm))}, with ${checkpoints.length} checkpoints.`,
    });
  }

  // -- notes and the end -----------------------------------------------------------------------------

  function showNotes(it) {
    at("notes-none").hidden = it.length > 0;
    at("notes-list").replaceChildren(...it.toReversed().map((one) => (
      make("li", "", make("time", "", clock(one.unix_s)), make("span", "", one.text)))));
  }

  function showTrouble(text) {
    at("trouble").hidden = text === null;
    put("trouble", text === null ? "" : `What was found so far could not be read: ${text}`);
  }

  function showEnd(it) {
    const report = it.report ? ` Its report: ${it.report}` : "";
    put("ended", `${it.text}${report}`);
    at("ended").hidden = false;
    at("desk").hidden = true;
    at("line").hidden = true;
    showRunning(null);
    link("over", "ended");
    showBar();
  }

  // -- the stream --------------------------------------------------------------------------------------

  function link(tone, text) {
    at("link").className = `link ${tone}`;
    put("link", text);
  }

  const shows = {
    head: showHead, progress: showProgress, running: showRunning, trials: showBar, found: showFound,
    last: showLast,
    notes: showNotes, trouble: showTrouble, end: showEnd, ping: () => {},
  };

  function show(name) {
    if (name in parts && !(["progress", "running"].includes(name) && parts.end)) shows[name](parts[name]);
  }

  let stream;
  let heard = 0;

  function listen() {
    heard = Date.now();
    stream = new EventSource("events");
    stream.onopen = () => link("good", "live");
    stream.onerror = () => {
      if (parts.end) return;
      // Closed: it was refused, as by another run on the same port. Else it tries again by itself.
      if (stream.readyState === EventSource.CLOSED) link("warn", "this run is not served any more");
      else link("warn", "connection lost, trying again");
    };
    for (const name of Object.keys(shows)) {
      stream.addEventListener(name, (event) => {
        heard = Date.now();
        parts[name] = JSON.parse(event.data);
        show(name);
        if (name === "head") for (const other of ["progress", "found", "last", "trials"]) show(other);
        if (name === "end") stream.close();
      });
    }
  }

  // A connection that hangs says nothing, and the browser does not notice it by itself.
  setInterval(() => {
    if (parts.end || Date.now() - heard < LOST_AFTER_MS) return;
    link("warn", "connection lost, trying again");
    stream.close();
    listen();
  }, 1000);

  let redraw;
  addEventListener("resize", () => {
    cancelAnimationFrame(redraw);
    redraw = requestAnimationFrame(() => ["progress", "running", "found", "last"].forEach(show));
  });

  // -- theme, as in the report ---------------------------------------------------------------------------

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const button = at("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const label = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  dark.addEventListener("change", label);
  label();

  listen();
})();
