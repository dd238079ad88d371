// The timeline: what it shows, and what pointers, wheel and keys do to it.

/** The shortest time that the timeline shows, in nanoseconds. */
const SHORTEST = 200;
/** A pointer that has moved less has chosen, not dragged. */
const CLICK = 5;
/** How far from an event a pointer may be that means it, in pixels. */
const REACH = 4;

class Timeline {
  constructor(choose) {
    const by = id => document.getElementById(id);
    this.canvas = by("rows");
    this.overview = by("overview");
    this.scroller = by("scroller");
    this.sheet = by("sheet");
    this.tip = by("tip");
    /** What is told of an event that was chosen, or null. */
    this.choose = choose;
    this.whole = Math.max(facts.ended, SHORTEST);
    this.lanes = lanesOf(null);
    this.only = null;
    /** The lanes with the events of one lock alone, or null. */
    this.chosen = null;
    this.event = null;
    this.woken = [];
    this.row = null;
    this.cursor = null;
    this.view = { from: 0, until: this.whole, left: 0, width: 1 };
    this.drawn = false;
    /** The rows as they were drawn last, and whether they are that still. */
    this.picture = document.createElement("canvas");
    this.isCurrent = false;
    this.pointers = new Map();
    this.showBusy();
    this.measure();
    this.listen();
  }

  /** Shows the time in which something happened, if that is much less than all. */
  showBusy() {
    let first = this.whole, last = 0;
    for (const row of this.lanes) {
      for (const lane of row.filter(lane => lane.size > 0)) {
        first = Math.min(first, lane.starts[0]);
        last = Math.max(last, lane.latest[lane.size - 1]);
      }
    }
    if (last > first && last - first < this.whole / 2) {
      const margin = (last - first) / 20;
      this.show(first - margin, last + margin);
    }
  }

  /** Fits all to the width that there is. */
  measure() {
    this.width = Math.max(200, this.scroller.clientWidth);
    const isWide = this.width >= WIDE;
    const label = isWide ? 0 : LABELLED_ROW - ROW;
    const places = [], rowY = [];
    let y = 0, process = null;
    facts.rows.forEach((row, number) => {
      if (row.process !== process) {
        process = row.process;
        const { program, pid } = facts.processes[process];
        const file = program.split("/").pop();
        places.push({ row: null, name: `${file} (pid ${pid})`, y, height: HEAD });
        y += HEAD;
      }
      places.push({ row: number, y, height: ROW + label });
      rowY.push(y);
      y += ROW + label;
    });
    this.layout = { places, rowY, label, height: y };
    this.view.left = isWide ? GUTTER : 0;
    this.view.width = this.width - this.view.left;
    this.sheet.style.height = y + "px";
    this.height = Math.min(y, Math.max(120, this.scroller.clientHeight));
    this.font = getComputedStyle(document.body).fontFamily;
    this.font = `13px ${this.font}`;
    this.colour = colours();
    this.summarise();
    this.redraw();
  }

  /** Counts the threads that wait for locks in each part of the whole time, for the overview; those
   * that wait for something to happen if no lock is waited for. */
  summarise() {
    const parts = Math.max(1, Math.floor(this.view.width / 2));
    const part = this.whole / parts;
    const lanes = this.chosen ?? this.lanes;
    this.isIdle = lanes.every(row => row[WAIT].size === 0);
    this.curve = new Float64Array(parts);
    for (const row of lanes) {
      const lane = row[this.isIdle ? IDLE : WAIT];
      const last = lane.size === 0 ? -1 : Math.min(parts - 1, Math.floor(lane.latest[lane.size - 1] / part));
      for (let at = lane.size === 0 ? 0 : Math.floor(lane.starts[0] / part); at <= last; at++) {
        this.curve[at] += lane.filled(at * part, (at + 1) * part) / part;
      }
    }
  }

  /** Draws at the next frame; the rows too, unless only the pointer has moved. */
  redraw(isPointer = false) {
    this.isCurrent &&= isPointer;
    if (!this.drawn) {
      this.drawn = true;
      requestAnimationFrame(() => this.draw());
    }
  }

  draw() {
    this.drawn = false;
    const state = {
      view: this.view, layout: this.layout, colour: this.colour, lanes: this.lanes,
      chosen: this.chosen, row: this.row, font: this.font, width: this.width, height: this.height,
      top: this.scroller.scrollTop, woken: this.woken,
    };
    drawOverview(this.overview, { ...state, whole: this.whole, curve: this.curve, isIdle: this.isIdle, cursor: this.cursor });
    if (!this.isCurrent) {
      drawRows(prepared(this.picture, this.width, this.height), state);
      this.isCurrent = true;
    }
    const context = prepared(this.canvas, this.width, this.height);
    context.drawImage(this.picture, 0, 0, this.width, this.height);
    if (this.cursor !== null) {
      const x = this.view.left + (this.cursor - this.view.from) * this.view.width / (this.view.until - this.view.from);
      context.fillStyle = this.colour.faint;
      context.fillRect(x, 0, 1, this.height);
    }
    if (this.event !== null) {
      drawChosen(context, this.event, state);
    }
  }

  /** Shows the time from `from` to `until`, moved into the recording. */
  show(from, until) {
    const span = Math.min(this.whole, Math.max(SHORTEST, until - from));
    from = Math.min(Math.max(0, (from + until - span) / 2), this.whole - span);
    this.view.from = from;
    this.view.until = from + span;
    this.redraw();
  }

  /** Shows so many times as much time, with what is at `x` where it is. */
  zoom(times, x = this.view.left + this.view.width / 2) {
    const { view } = this;
    const at = this.timeAt(x);
    const part = (at - view.from) / (view.until - view.from);
    const span = Math.min(this.whole, Math.max(SHORTEST, (view.until - view.from) * times));
    this.show(at - part * span, at + (1 - part) * span);
  }

  /** Moves by so many pixels to the right. */
  pan(pixels) {
    const { view } = this;
    const by = pixels * (view.until - view.from) / view.width;
    const from = Math.min(Math.max(0, view.from + by), this.whole - (view.until - view.from));
    this.show(from, from + view.until - view.from);
  }

  timeAt(x) {
    const { view } = this;
    return view.from + (x - view.left) / view.width * (view.until - view.from);
  }

  /** Shows the events of one lock in colour, or of all: null. */
  filter(thing) {
    this.only = thing;
    const columns = events.thing;
    this.chosen = thing === null ? null : lanesOf(event => columns[event] === thing);
    this.summarise();
    this.redraw();
  }

  /** Chooses an event; moves until it is to be seen. */
  select(event) {
    this.event = event;
    this.woken = event === null || laneOf(event) <= IDLE ? [] : wokenBy(event);
    if (event !== null) {
      this.row = rowOf(event);
      const { view } = this;
      const middle = (events.began[event] + endOf(event)) / 2;
      if (endOf(event) < view.from || events.began[event] > view.until) {
        const half = (view.until - view.from) / 2;
        this.show(middle - half, middle + half);
      }
      this.reveal(this.row);
    }
    this.choose(event);
    this.redraw();
  }

  /** Shows an event as large as a third of the timeline. */
  zoomTo(event) {
    const span = Math.max(events.lasted[event], SHORTEST);
    this.show(events.began[event] - span, endOf(event) + span);
    this.reveal(rowOf(event));
  }

  /** Scrolls to a row. */
  reveal(row) {
    const y = this.layout.rowY[row], { scroller } = this;
    if (y < scroller.scrollTop) {
      scroller.scrollTop = y - HEAD;
    } else if (y + ROW + this.layout.label > scroller.scrollTop + scroller.clientHeight) {
      scroller.scrollTop = y + ROW + this.layout.label - scroller.clientHeight;
    }
  }

  /** Finds what is at a place of the canvas: an event or a sample, or null. */
  at(x, y) {
    const sheetY = y + this.scroller.scrollTop;
    const place = this.layout.places.find(place => sheetY >= place.y && sheetY < place.y + place.height);
    if (!place || place.row === null || x < this.view.left) {
      return null;
    }
    const time = this.timeAt(x);
    const reach = (this.timeAt(x + REACH) - time) / (this.finger ? 0.4 : 1);
    const [begin, end] = facts.rows[place.row].sampled;
    const down = sheetY - place.y - this.layout.label - 4;
    const lower = down >= BANDS[HOLD][0] - 1;
    const order = down >= BANDS[WAKE][0] - 1 ? [WAKE, HOLD, WAIT, IDLE]
      : lower ? [HOLD, WAKE, WAIT, IDLE] : [WAIT, IDLE, HOLD, WAKE];
    const lanes = (this.chosen ?? this.lanes)[place.row];
    if (lower) {
      const sample = lowerBound(samples.at, time - reach, begin, end);
      const isMark = sample < end && samples.at[sample] <= time + reach &&
        !["runs", "waits"].includes(facts.doings[samples.doing[sample]][0]);
      if (isMark) {
        return { sample, row: place.row };
      }
    }
    for (const lane of order) {
      const found = lanes[lane].pick(time, lane === WAKE ? reach : reach / REACH * 2);
      if (found) {
        return { ...found, row: place.row };
      }
    }
    return { event: null, row: place.row };
  }

  /** Shows what is at a pointer beside it. */
  hover(x, y) {
    const found = this.at(x, y);
    this.cursor = x >= this.view.left ? this.timeAt(x) : null;
    const box = found === null ? null
      : found.sample !== undefined ? briefSample(found.sample, found.row)
      : found.event !== null ? brief(found.event, found.among) : null;
    this.tip.hidden = box === null;
    if (box) {
      this.tip.replaceChildren(box);
      const chart = this.tip.parentElement;
      const offset = this.overview.offsetHeight;
      const room = chart.clientWidth - this.tip.offsetWidth - 4;
      const beside = x + 16 > room && x > this.tip.offsetWidth + 16 ? x - this.tip.offsetWidth - 16 : x + 16;
      this.tip.style.left = Math.max(4, Math.min(room, beside)) + "px";
      // Below the pointer, unless the window ends there and there is room above.
      const { offsetHeight } = this.tip;
      const pointer = chart.getBoundingClientRect().top + offset + y;
      const isAbove = pointer + 18 + offsetHeight > innerHeight && pointer > offsetHeight + 14;
      this.tip.style.top = offset + y + (isAbove ? -offsetHeight - 14 : 18) + "px";
    }
    this.redraw(true);
  }

  leave() {
    this.cursor = null;
    this.tip.hidden = true;
    this.redraw(true);
  }

  /** Chooses the next or the previous event of the chosen thread, in their order by time. */
  step(direction) {
    const row = this.row ?? 0;
    const lanes = (this.chosen ?? this.lanes)[row];
    const from = this.event !== null && rowOf(this.event) === row ? this.event : null;
    const now = from === null ? this.view.from : events.began[from];
    let best = null;
    const nearer = (event) => best === null || direction * (events.began[event] - events.began[best]) < 0;
    for (const lane of lanes) {
      let at = lowerBound(lane.starts, now, 0, lane.size);
      // Of those that begin at the same time the numbers are the order.
      while (at < lane.size && lane.starts[at] === now && from !== null && lane.event(at) <= from) {
        at++;
      }
      if (direction < 0) {
        at--;
        while (at >= 0 && from !== null && lane.starts[at] === now && lane.event(at) >= from) {
          at--;
        }
      }
      if (at >= 0 && at < lane.size && nearer(lane.event(at))) {
        best = lane.event(at);
      }
    }
    if (best !== null) {
      this.row = row;
      this.select(best);
    }
  }

  listen() {
    const { canvas } = this;
    new ResizeObserver(() => this.measure()).observe(this.scroller);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.measure());
    this.scroller.addEventListener("scroll", () => this.redraw());
    canvas.addEventListener("wheel", event => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", event => this.key(event));
    canvas.addEventListener("pointerdown", event => this.down(event));
    canvas.addEventListener("pointermove", event => this.move(event));
    canvas.addEventListener("pointerup", event => this.up(event));
    canvas.addEventListener("pointercancel", event => this.pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => this.leave());
    const aim = event => {
      const at = this.timeIn(event.offsetX);
      const half = (this.view.until - this.view.from) / 2;
      this.show(at - half, at + half);
    };
    this.overview.addEventListener("pointerdown", event => {
      this.overview.setPointerCapture(event.pointerId);
      aim(event);
    });
    this.overview.addEventListener("pointermove", event => event.buttons && aim(event));
  }

  /** Returns the moment of the whole recording at a place of the overview. */
  timeIn(x) {
    return (x - this.view.left) / this.view.width * this.whole;
  }

  wheel(event) {
    const isAlong = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const step = event.deltaMode === 1 ? 24 : 1;
    if (event.ctrlKey || event.metaKey || (document.activeElement === this.canvas && !isAlong)) {
      event.preventDefault();
      this.zoom(Math.exp(event.deltaY * step * (event.ctrlKey ? 0.008 : 0.002)), event.offsetX);
    } else if (isAlong) {
      event.preventDefault();
      this.pan((event.deltaX || event.deltaY) * step);
    }
  }

  key(event) {
    const actions = {
      "+": () => this.zoom(0.6), "=": () => this.zoom(0.6), "-": () => this.zoom(1 / 0.6),
      "0": () => this.show(0, this.whole),
      ArrowLeft: () => this.pan(-this.view.width / 8), ArrowRight: () => this.pan(this.view.width / 8),
      ArrowUp: () => this.turn(-1), ArrowDown: () => this.turn(1),
      n: () => this.step(1), p: () => this.step(-1),
      Enter: () => this.event !== null && this.zoomTo(this.event),
      Escape: () => this.select(null),
    };
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.key];
    if (action) {
      event.preventDefault();
      action();
    }
  }

  /** Goes to another row. */
  turn(by) {
    this.row = Math.min(facts.rows.length - 1, Math.max(0, (this.row ?? -by) + by));
    this.reveal(this.row);
    this.redraw();
  }

  down(event) {
    this.finger = event.pointerType === "touch";
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.offsetX, startX: event.offsetX, startY: event.offsetY, moved: false });
    this.leave();
  }

  move(event) {
    const pointer = this.pointers.get(event.pointerId);
    if (!pointer) {
      this.hover(event.offsetX, event.offsetY);
      return;
    }
    const before = [...this.pointers.values()].map(one => one.x);
    const by = event.offsetX - pointer.x;
    pointer.x = event.offsetX;
    pointer.moved ||= Math.hypot(event.offsetX - pointer.startX, event.offsetY - pointer.startY) > CLICK;
    if (this.pointers.size === 1 && pointer.moved) {
      this.pan(-by);
    } else if (this.pointers.size === 2) {
      const now = [...this.pointers.values()].map(one => one.x);
      const [wasApart, isApart] = [before, now].map(([a, b]) => Math.max(20, Math.abs(a - b)));
      const [was, is] = [before, now].map(([a, b]) => (a + b) / 2);
      this.zoom(wasApart / isApart, is);
      this.pan(was - is);
      this.pointers.forEach(one => { one.moved = true; });
    }
  }

  up(event) {
    const pointer = this.pointers.get(event.pointerId);
    this.pointers.delete(event.pointerId);
    if (pointer && !pointer.moved) {
      const found = this.at(event.offsetX, event.offsetY);
      this.row = found ? found.row : this.row;
      this.select(found?.event ?? null);
      if (this.finger && found?.sample !== undefined) {
        this.hover(event.offsetX, event.offsetY);
      }
    }
  }
}
