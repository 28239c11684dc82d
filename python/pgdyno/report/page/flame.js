// Flame graphs, roots at the top, drawn on a canvas when they come into view. A figure shows one
// stage, or one stage against another: then colour says more or less, only where the difference
// is more than chance, and hatching that a stage did not have a function at all. Everything can be
// reached by keyboard and by touch; what is chosen is told in words beside the canvas.
"use strict";
(() => {
  const ROW_PX = 20;
  const LEAST_PX = 0.6; // narrower frames are not drawn
  const LABEL_PX = 26; // nor are names in frames narrower than this
  const PAD_PX = 4;
  const data = JSON.parse(document.getElementById("flames").textContent);

  function number(value) {
    const size = Math.abs(value);
    const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
    return value.toLocaleString("en-GB", {
      minimumFractionDigits: digits, maximumFractionDigits: digits,
    });
  }

  const signed = (value) => (value > 0 ? "+" : value < 0 ? "-" : "") + number(Math.abs(value));
  const percent = (share) => `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)}%`;

  class Flame {
    constructor(figure) {
      this.figure = figure;
      this.tree = data[figure.dataset.flame];
      this.canvas = figure.querySelector("canvas");
      this.told = figure.querySelector(".flame-told");
      this.found = figure.querySelector(".flame-found");
      this.stage = figure.querySelector(".flame-stage");
      this.base = figure.querySelector(".flame-base");
      this.search = figure.querySelector("input");
      this.whole = figure.querySelector(".flame-whole");
      this.zoomed = -1; // node that fills the width; -1: all roots
      this.chosen = -1;
      this.children = this.tree.parents.map(() => []);
      this.roots = [];
      this.depths = [];
      this.tree.parents.forEach((parent, node) => {
        (parent < 0 ? this.roots : this.children[parent]).push(node);
        this.depths.push(parent < 0 ? 0 : this.depths[parent] + 1);
      });
      this.offer();
      this.listen();
    }

    offer() {
      this.tree.stages.forEach(({ name }, index) => {
        this.stage.add(new Option(name, index));
        this.base.add(new Option(name, index));
      });
      this.base.closest("label").hidden = this.tree.stages.length < 2;
    }

    listen() {
      const again = () => { this.weigh(); this.draw(); this.tell(); };
      this.stage.addEventListener("change", again);
      this.base.addEventListener("change", again);
      this.search.addEventListener("input", () => { this.match(); this.draw(); });
      this.whole.addEventListener("click", () => this.zoom(-1));
      this.canvas.addEventListener("click", (event) => {
        const node = this.at(event);
        if (node < 0) return;
        this.chosen = node;
        this.zoom(node === this.zoomed ? this.tree.parents[node] : node);
      });
      this.canvas.addEventListener("mousemove", (event) => {
        const node = this.at(event);
        this.canvas.style.cursor = node < 0 ? "default" : "pointer";
        if (node >= 0) this.tell(node);
      });
      this.canvas.addEventListener("mouseleave", () => this.tell());
      this.canvas.addEventListener("keydown", (event) => this.key(event));
      this.canvas.addEventListener("focus", () => {
        if (this.chosen < 0) this.choose(this.top()[0] ?? -1);
      });
      new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
      new MutationObserver(() => this.draw()).observe(document.documentElement, {
        attributeFilter: ["data-theme"],
      });
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    }

    // Values of the two stages, and widths: of a frame that one of them lacks, the other's.
    weigh() {
      this.mine = this.tree.stages[Number(this.stage.value)];
      this.theirs = this.base.value === "" ? null : this.tree.stages[Number(this.base.value)];
      const { mine, theirs } = this;
      this.widths = mine.values.map((value, n) => Math.max(value, theirs ? theirs.values[n] : 0));
      for (let node = this.widths.length - 1; node >= 0; node--) {
        const below = this.children[node].reduce((sum, child) => sum + this.widths[child], 0);
        this.widths[node] = Math.max(this.widths[node], below);
      }
      const wider = (a, b) => this.widths[b] - this.widths[a];
      for (const some of [this.roots, ...this.children]) some.sort(wider);
      this.match();
    }

    match() {
      const wanted = this.search.value.trim().toLowerCase();
      this.matches = null;
      this.found.textContent = "";
      if (wanted === "") return;
      const hits = this.tree.functions.map(
        ([name, module]) => `${name} ${this.tree.modules[module]}`.toLowerCase().includes(wanted),
      );
      this.matches = this.tree.names.map((name) => hits[name]);
      let sum = 0;
      let count = 0;
      const within = []; // a function found below another one is counted once
      this.tree.parents.forEach((parent, node) => {
        within[node] = this.matches[node] || (parent >= 0 && within[parent]);
        if (this.matches[node] && this.mine.values[node] > 0) {
          count += 1;
          if (parent < 0 || !within[parent]) sum += this.mine.values[node];
        }
      });
      const share = this.mine.whole > 0 ? ` (${percent(sum / this.mine.whole)})` : "";
      this.found.textContent = count === 0
        ? `Nothing in ${this.mine.name} is called so.`
        : `${count} ${count === 1 ? "frame" : "frames"} of ${this.mine.name}, together ` +
          `${number(sum)} ${this.tree.unit}${share}.`;
    }

    top() { return this.zoomed < 0 ? this.roots : [this.zoomed]; }

    // Places of all frames that are wide enough, those above the zoomed one at full width.
    lay(width) {
      const frames = [];
      const above = [];
      for (let n = this.zoomed; n >= 0; n = this.tree.parents[n]) above.unshift(n);
      for (const node of above.slice(0, -1)) {
        frames.push({ node, x: 0, width, y: this.depths[node] * ROW_PX, above: true });
      }
      const tops = this.top();
      const sum = tops.reduce((total, node) => total + this.widths[node], 0);
      const scale = sum > 0 ? width / sum : 0;
      const put = (nodes, from) => {
        let x = from;
        for (const node of nodes) {
          const own = this.widths[node] * scale;
          if (own < LEAST_PX) break; // sorted: all that follow are narrower
          frames.push({ node, x, width: own, y: this.depths[node] * ROW_PX, above: false });
          put(this.children[node], x);
          x += own;
        }
      };
      put(tops, 0);
      return frames;
    }

    draw() {
      if (!this.mine) return;
      const width = this.canvas.parentElement.clientWidth;
      if (width === 0) return;
      this.frames = this.lay(width);
      const height = Math.max(ROW_PX, ...this.frames.map(({ y }) => y + ROW_PX));
      const ratio = devicePixelRatio || 1;
      this.canvas.width = width * ratio;
      this.canvas.height = height * ratio;
      this.canvas.style.height = `${height}px`;
      const pen = this.canvas.getContext("2d");
      pen.scale(ratio, ratio);
      pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
      pen.textBaseline = "middle";
      const look = this.look();
      for (const frame of this.frames) this.paint(pen, frame, look);
      this.canvas.dataset.frames = this.frames.length;
      this.whole.disabled = this.zoomed < 0;
    }

    look() {
      const names = ["program", "kernel", "library", "role", "same", "more", "less", "line", "ink"];
      return Object.fromEntries(names.map((name) => [name, colour(`--flame-${name}`)]));
    }

    paint(pen, { node, x, y, width, above }, look) {
      const dim = above || (this.matches && !this.matches[node]);
      pen.globalAlpha = dim ? 0.35 : 1;
      pen.fillStyle = this.theirs ? this.difference(node, look) : this.kind(node, look);
      pen.fillRect(x, y, Math.max(width - 0.7, LEAST_PX), ROW_PX - 1);
      if (this.theirs && (this.mine.values[node] === 0) !== (this.theirs.values[node] === 0)) {
        this.hatch(pen, x, y, width, look.line);
      }
      pen.globalAlpha = dim ? 0.7 : 1;
      if (node === this.chosen) {
        pen.strokeStyle = look.ink;
        pen.lineWidth = 2;
        pen.strokeRect(x + 1, y + 1, Math.max(width - 2.7, 1), ROW_PX - 3);
      }
      if (width >= LABEL_PX) {
        pen.fillStyle = look.ink;
        pen.save();
        pen.beginPath();
        pen.rect(x, y, width - 2, ROW_PX);
        pen.clip();
        const text = this.fitted(pen, this.label(node), width - 2 * PAD_PX);
        pen.fillText(text, x + PAD_PX, y + ROW_PX / 2);
        pen.restore();
      }
      pen.globalAlpha = 1;
    }

    hatch(pen, x, y, width, ink) {
      pen.save();
      pen.beginPath();
      pen.rect(x, y, width - 0.7, ROW_PX - 1);
      pen.clip();
      pen.strokeStyle = ink;
      pen.lineWidth = 1;
      pen.beginPath();
      for (let at = x - ROW_PX; at < x + width; at += 7) {
        pen.moveTo(at, y + ROW_PX);
        pen.lineTo(at + ROW_PX, y);
      }
      pen.stroke();
      pen.restore();
    }

    kind(node, look) {
      const module = this.tree.functions[this.tree.names[node]][1];
      const name = this.tree.modules[module];
      if (name === "") return look.role;
      if (module === this.tree.kernel) return look.kernel;
      return /\.so\b/.test(name) ? look.library : look.program;
    }

    // Difference to the other stage, its half interval, and whether that excludes 0.
    delta(node) {
      const delta = this.mine.values[node] - this.theirs.values[node];
      const half = this.tree.quantile * Math.hypot(this.mine.errors[node], this.theirs.errors[node]);
      return { delta, half, differs: Math.abs(delta) > half };
    }

    difference(node, look) {
      const { delta, differs } = this.delta(node);
      return !differs ? look.same : delta > 0 ? look.more : look.less;
    }

    name(node) { return this.tree.functions[this.tree.names[node]][0]; }

    label(node) {
      if (!this.theirs) return this.name(node);
      const { delta, differs } = this.delta(node);
      return differs ? `${signed(delta)} ${this.name(node)}` : this.name(node);
    }

    // As much of a name as there is room for, nothing instead of a letter; a number is never cut.
    fitted(pen, text, room) {
      const whole = pen.measureText(text).width;
      if (whole <= room) return text;
      let letters = Math.floor((text.length * room) / whole);
      while (letters > 0 && pen.measureText(`${text.slice(0, letters)}…`).width > room) letters--;
      const figure = /^[+-][\d,.]+(?= )/.exec(text)?.[0] ?? "";
      if (letters >= figure.length + 2) return `${text.slice(0, letters)}…`;
      return pen.measureText(figure).width <= room ? figure : "";
    }

    tell(node = this.chosen) {
      if (node < 0) {
        this.told.textContent = `${number(this.mine.whole)} ${this.tree.unit} in ${this.mine.name}.`;
        return;
      }
      const [name, module] = this.tree.functions[this.tree.names[node]];
      const where = this.tree.modules[module];
      const value = this.mine.values[node];
      const below = this.children[node].reduce((sum, child) => sum + this.mine.values[child], 0);
      const share = this.mine.whole > 0 ? `, ${percent(value / this.mine.whole)}` : "";
      const chance = number(this.tree.quantile * this.mine.errors[node]);
      let text = `${name}${where ? ` (${where})` : ""}: ` +
        `${number(value)} ± ${chance} ${this.tree.unit}${share}, ` +
        `of these ${number(Math.max(0, value - below))} itself`;
      if (this.theirs) {
        const { delta, half, differs } = this.delta(node);
        text += `; ${signed(delta)} against ${this.theirs.name}, between ` +
          `${signed(delta - half)} and ${signed(delta + half)}: ` +
          (differs ? (delta > 0 ? "more" : "less") : "chance may explain it");
      }
      this.told.textContent = `${text}.`;
    }

    at(event) {
      const box = this.canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      const hit = (this.frames ?? []).find(
        (it) => x >= it.x && x < it.x + it.width && y >= it.y && y < it.y + ROW_PX,
      );
      return hit ? hit.node : -1;
    }

    zoom(node) {
      this.zoomed = node;
      this.draw();
      this.tell();
    }

    choose(node) {
      if (node < 0) return;
      this.chosen = node;
      this.draw();
      this.tell();
      const frame = this.frames.find((it) => it.node === node);
      const port = this.canvas.parentElement;
      if (!frame) return;
      if (frame.y < port.scrollTop) port.scrollTop = frame.y;
      const end = frame.y + ROW_PX - port.clientHeight;
      if (end > port.scrollTop) port.scrollTop = end;
    }

    beside(step) {
      const parent = this.tree.parents[this.chosen];
      const row = parent < 0 ? this.roots : this.children[parent];
      return row[row.indexOf(this.chosen) + step] ?? this.chosen;
    }

    key(event) {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const keys = {
        ArrowDown: () => this.choose(this.children[this.chosen]?.[0] ?? this.chosen),
        ArrowUp: () => this.choose(this.tree.parents[this.chosen] ?? -1),
        ArrowRight: () => this.choose(this.beside(1)),
        ArrowLeft: () => this.choose(this.beside(-1)),
        Enter: () => this.zoom(this.chosen),
        " ": () => this.zoom(this.chosen),
        Escape: () => this.zoom(-1),
      };
      const act = keys[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    }

    show() {
      this.weigh();
      this.draw();
      this.tell();
    }
  }

  const watch = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        watch.unobserve(entry.target);
        new Flame(entry.target).show();
      }
    },
    { rootMargin: "200px 0px" },
  );
  for (const figure of document.querySelectorAll(".flame")) watch.observe(figure);
})();
