// The flame graphs: the outermost function on top, each frame as wide as the time of waiting in it.

/** The height of a frame, and the narrowest that is drawn, in pixels. */
const FRAME = 22, NARROWEST = 0.4;
/** The width of a character of the frames' font, and the least room for which a name is written. */
const LETTER = 7.25, LEAST_ROOM = 24;
const SVG = "http://www.w3.org/2000/svg";

/** Creates an element of a picture with these attributes. */
function drawn(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  return made;
}

/** Puts stacks together to a tree, the widest children first. */
function treeOf(stacks) {
  const root = { frame: null, ns: 0, from: 0, depth: 0, parent: null, children: [], byFrame: new Map() };
  for (const [stack, ns] of stacks) {
    let node = root;
    node.ns += ns;
    for (const frame of stack) {
      let child = node.byFrame.get(frame);
      if (!child) {
        child = { frame, ns: 0, from: 0, depth: node.depth + 1, parent: node, children: [], byFrame: new Map() };
        node.byFrame.set(frame, child);
        node.children.push(child);
      }
      child.ns += ns;
      node = child;
    }
  }
  const open = [root];
  while (open.length > 0) {
    const node = open.pop();
    node.children.sort((a, b) => b.ns - a.ns);
    let from = node.from;
    for (const child of node.children) {
      child.from = from;
      from += child.ns;
      open.push(child);
    }
  }
  return root;
}

class Flames {
  constructor() {
    const by = id => document.getElementById(id);
    this.box = by("flame");
    this.said = by("flame-said");
    this.reset = by("flame-reset");
    this.by = facts.by;
    this.idle = facts.idle;
    this.sought = "";
    this.trees = new Map();
    this.tip = element("div", "tip");
    this.tip.hidden = true;
    const idle = by("idle"), find = by("find");
    idle.checked = this.idle;
    idle.addEventListener("change", () => this.turn(this.by, idle.checked));
    for (const who of ["waiter", "holder"]) {
      by("by-" + who).addEventListener("click", () => this.turn(who, this.idle));
    }
    find.addEventListener("input", () => {
      this.sought = find.value.trim().toLowerCase();
      this.draw();
    });
    this.reset.addEventListener("click", () => this.zoom(this.tree));
    this.box.addEventListener("click", event => this.at(event, node => this.zoom(node)));
    this.box.addEventListener("keydown", event => this.key(event));
    this.box.addEventListener("pointermove", event => this.hover(event));
    this.box.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    this.box.addEventListener("focusin", event => this.at(event, node => this.tell(node)));
    let width = 0;
    new ResizeObserver(() => {
      if (this.box.clientWidth !== width) {
        width = this.box.clientWidth;
        this.draw();
      }
    }).observe(this.box);
    // Without waits for locks those for something to happen are all that there is.
    this.turn(this.by, this.idle || facts.flames[this.by].length === 0);
    idle.checked = this.idle;
  }

  /** Shows one of the graphs. */
  turn(by, idle) {
    this.by = by;
    this.idle = idle;
    const name = idle ? by + "_idle" : by;
    if (!this.trees.has(name)) {
      this.trees.set(name, treeOf(facts.flames[name]));
    }
    this.tree = this.trees.get(name);
    for (const who of ["waiter", "holder"]) {
      document.getElementById("by-" + who).setAttribute("aria-pressed", String(by === who));
    }
    this.zoom(this.tree);
  }

  /** Shows a frame as wide as all. */
  zoom(node) {
    const hadFocus = this.box.contains(document.activeElement);
    this.top = node;
    this.current = node;
    this.reset.hidden = node === this.tree;
    this.draw();
    if (hadFocus) {
      this.focus(node);
    }
  }

  /** Returns the name of a frame. */
  name(node) {
    return node.frame === null ? "all waiting" : facts.frames[node.frame][0];
  }

  /** Returns what is said of a frame: its name, its place, its time. */
  words(node) {
    const site = node.frame === null ? "" : facts.frames[node.frame][1];
    const share = node.ns * 100 / Math.max(1, this.tree.ns);
    const part = `${time(node.ns)}, ${share.toFixed(1)}% of all`;
    return [this.name(node), site, part];
  }

  isFound(node) {
    return this.sought !== "" && this.words(node).slice(0, 2).join(" ").toLowerCase().includes(this.sought);
  }

  draw() {
    const { top, tree } = this;
    const width = this.box.clientWidth;
    this.nodes = [];
    this.groups = new Map();
    if (width === 0 || tree.ns === 0) {
      this.box.replaceChildren();
      this.said.textContent = tree.ns === 0 ? "No thread waited for a lock." : "";
      return;
    }
    this.box.classList.toggle("finding", this.sought !== "");
    const above = [];
    for (let node = top.parent; node; node = node.parent) {
      above.unshift(node);
    }
    let deepest = 0, found = 0;
    const picture = drawn("svg", { width: "100%" });
    const put = (node, left, part) => {
      deepest = Math.max(deepest, node.depth);
      const group = this.group(node, left, part, width);
      picture.append(group);
      this.nodes.push(node);
      this.groups.set(node, group);
    };
    above.forEach(node => put(node, 0, 1));
    const least = NARROWEST / width;
    const open = [[top, false]];
    while (open.length > 0) {
      const [node, isWithin] = open.pop();
      const part = node.ns / top.ns;
      const isFirst = !isWithin && this.isFound(node);
      found += isFirst ? node.ns : 0;
      if (part >= least) {
        put(node, (node.from - top.from) / top.ns, part);
      }
      // Last pushed, first drawn: the widest child follows its parent.
      if (part >= least || this.sought !== "") {
        for (let at = node.children.length - 1; at >= 0; at--) {
          open.push([node.children[at], isWithin || isFirst]);
        }
      }
    }
    picture.setAttribute("height", String((deepest + 1) * FRAME));
    this.box.replaceChildren(picture, this.tip);
    this.box.dataset.ns = String(tree.ns);
    if (this.sought !== "") {
      const share = found * 100 / top.ns;
      this.said.textContent = `“${this.sought}” has ${time(found)}, ${share.toFixed(1)}% of what is shown.`;
    } else {
      this.tell(top);
    }
  }

  /** Draws one frame, in a picture of its own, which cuts its name off. */
  group(node, left, part, width) {
    const name = this.name(node);
    const isLeaf = node.children.length === 0 && node.frame !== null;
    const tone = this.by === "holder" ? "cool" : "warm";
    const classes = ["frame", node.depth <= 1 ? "root" : name.startsWith("[nobody") ? "unknown" : tone];
    classes.push(isLeaf ? "leaf" : node.depth % 2 === 1 ? "odd" : "even");
    if (this.isFound(node)) {
      classes.push("found");
    }
    const group = drawn("svg", {
      class: classes.join(" "), x: `${left * 100}%`, width: `${part * 100}%`,
      y: String(node.depth * FRAME), height: String(FRAME),
      role: "treeitem", "aria-level": String(node.depth + 1), "aria-label": this.words(node).filter(Boolean).join(", "),
      tabindex: node === this.current ? "0" : "-1",
    });
    group.append(drawn("rect", { width: "100%", height: "100%" }));
    const room = part * width - 8;
    if (room >= LEAST_ROOM) {
      const most = Math.floor(room / LETTER);
      const text = drawn("text", { x: "5", y: "15" });
      text.textContent = name.length > most ? name.slice(0, most - 1) + "…" : name;
      group.append(text);
    }
    group.node = node;
    return group;
  }

  /** Calls `does` with the frame that an event is at. */
  at(event, does) {
    const node = event.target.closest?.(".frame")?.node;
    if (node) {
      does(node);
    }
    return node;
  }

  /** Says below the buttons what a frame is. */
  tell(node) {
    if (this.sought === "") {
      this.said.textContent = this.words(node).filter(Boolean).join(" · ");
    }
  }

  hover(event) {
    this.tip.hidden = true;
    this.at(event, node => {
      const [name, site, part] = this.words(node);
      this.tip.replaceChildren(element("p", "what site", name), element("p", "site faint", site), element("p", "", part));
      this.tip.hidden = false;
      const box = this.box.getBoundingClientRect();
      const room = box.width - this.tip.offsetWidth - 4;
      this.tip.style.left = Math.max(4, Math.min(room, event.clientX - box.left + 14)) + "px";
      this.tip.style.top = event.clientY - box.top + 18 + "px";
    });
  }

  focus(node) {
    const group = this.groups.get(node);
    if (group) {
      this.groups.get(this.current)?.setAttribute("tabindex", "-1");
      this.current = node;
      group.setAttribute("tabindex", "0");
      group.focus();
    }
  }

  key(event) {
    const node = event.target.node;
    if (!node || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const beside = by => {
      const all = node.parent?.children ?? [node];
      return all[all.indexOf(node) + by];
    };
    const next = {
      ArrowLeft: () => beside(-1), ArrowRight: () => beside(1),
      ArrowUp: () => node.parent, ArrowDown: () => node.children[0],
      Home: () => this.top,
    }[event.key];
    if (next) {
      this.focus(next());
    } else if (event.key === "Enter" || event.key === " ") {
      this.zoom(node);
    } else if (event.key === "Escape") {
      this.zoom(this.tree);
    } else {
      return;
    }
    event.preventDefault();
  }
}
