// Drawing the timeline on its two canvases: the overview with the axis, and the rows.

/** The heights of what rows are made of, in pixels. */
const ROW = 30, LABELLED_ROW = 44, HEAD = 26;
/** The lanes in a row: their top, from that of the lanes, and their height. */
const BANDS = { [WAIT]: [0, 13], [IDLE]: [4, 6], [HOLD]: [14, 6], [WAKE]: [21, 3] };
/** The height of all lanes together. */
const LANES_HEIGHT = 24;
/** From this width on, names stand left of the lanes, and not above them. */
const WIDE = 640, GUTTER = 190;
/** The heights of the overview's curve and of the axis below it. */
const CURVE = 32, AXIS = 24;
/** How strong a pixel is at least in which something happened. */
const FAINTEST = 0.35;
/** The most arrows that are drawn from one event; how many waits it ended is said beside. */
const MOST_ARROWS = 64;

/** The colours of the page, which change with the scheme and on paper. */
function colours() {
  const style = getComputedStyle(document.documentElement);
  const named = {};
  for (const name of ["ink", "faint", "rule", "paper", "panel", "wait", "hold", "idle", "wake", "life", "select"]) {
    named[name] = style.getPropertyValue("--" + name).trim();
  }
  return named;
}

/** Gives a canvas a size in pixels of the page, and returns what draws on it. */
function prepared(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.height = height + "px";
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.textBaseline = "middle";
  return context;
}

/** Returns a round step of time such that about `many` of them are in `span`. */
function roundStep(span, many) {
  const rough = span / many;
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find(factor => factor * power >= rough) ?? 10;
  return Math.max(1, factor * power);
}

/** Writes a text that ends with … where it has no room. */
function fitted(context, text, x, y, room) {
  let shown = text;
  if (context.measureText(text).width > room) {
    let low = 0, high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (context.measureText(text.slice(0, middle) + "…").width <= room) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    shown = text.slice(0, low) + "…";
  }
  context.fillText(shown, x, y);
}

/** A picture one pixel high: what lies within one pixel of a lane, drawn at once and stretched. */
const strip = document.createElement("canvas").getContext("2d");

/** Returns red, green and blue of a colour as `#rrggbb`. */
function parts(colour) {
  return [1, 3, 5].map(at => Number.parseInt(colour.slice(at, at + 2), 16));
}

/**
 * Draws one lane: what is too short to be seen by itself as pixels that are as strong as they are
 * full, a call that wakes as one pixel, the rest as rectangles.
 */
function drawLane(context, lane, view, [top, height], colour, strength, gap, faintest = FAINTEST) {
  if (lane.size === 0) {
    return;
  }
  const width = Math.ceil(view.width);
  const pixels = new ImageData(width, 1);
  const [red, green, blue] = parts(colour);
  let isStrip = false;
  context.fillStyle = colour;
  context.globalAlpha = strength;
  lane.paint(view, (left, right, share) => {
    if (right - left > 1) {
      context.fillRect(view.left + left, top, right - left, height);
      if (right - left >= 4) {
        // Tells events apart that follow each other, and those within others.
        context.globalAlpha = 0.75;
        context.fillStyle = gap;
        context.fillRect(view.left + left, top, 1, height);
        context.fillStyle = colour;
        context.globalAlpha = strength;
      }
      return;
    }
    isStrip = true;
    const at = 4 * Math.floor(left);
    pixels.data[at] = red;
    pixels.data[at + 1] = green;
    pixels.data[at + 2] = blue;
    pixels.data[at + 3] = Math.max(pixels.data[at + 3], 255 * (faintest + (1 - faintest) * share));
  });
  if (isStrip) {
    if (strip.canvas.width !== width) {
      strip.canvas.width = width;
      strip.canvas.height = 1;
    }
    strip.putImageData(pixels, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(strip.canvas, view.left, top, width, height);
  }
  context.globalAlpha = 1;
}

/** Draws the looks at a thread that held a lock: a mark for what kept it, none for running. */
function drawSamples(context, row, view, [top, height], colour) {
  const [begin, end] = facts.rows[row].sampled;
  const scale = view.width / (view.until - view.from);
  let covered = -Infinity;
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = 1;
  for (let at = lowerBound(samples.at, view.from, begin, end); at < end && samples.at[at] < view.until; at++) {
    const x = view.left + (samples.at[at] - view.from) * scale;
    const [met] = facts.doings[samples.doing[at]];
    if (x < covered || met === "runs" || met === "waits") {
      continue;
    }
    covered = x + 6;
    const y = top + (height - 5) / 2;
    if (met === "sleeps") {
      context.fillRect(x - 2.5, y, 5, 5);
    } else if (met === "lacks") {
      context.strokeRect(x - 2, y + 0.5, 4, 4);
    } else {
      context.beginPath();
      context.moveTo(x - 2.5, y);
      context.lineTo(x + 2.5, y + 5);
      context.moveTo(x + 2.5, y);
      context.lineTo(x - 2.5, y + 5);
      context.stroke();
    }
  }
}

/** Draws how many threads wait at each moment, what of it the view shows, and the axis of the view. */
function drawOverview(canvas, { view, whole, curve, isIdle, colour, width, cursor, font }) {
  const context = prepared(canvas, width, CURVE + AXIS);
  context.fillStyle = colour.panel;
  context.fillRect(view.left, 0, view.width, CURVE);
  const most = curve.reduce((most, waiting) => Math.max(most, waiting), 1e-9);
  const step = view.width / curve.length;
  context.fillStyle = isIdle ? colour.idle : colour.wait;
  curve.forEach((waiting, at) => {
    const height = waiting / most * (CURVE - 4);
    context.fillRect(view.left + at * step, CURVE - height, step + 0.5, height);
  });
  const x = time => view.left + time / whole * view.width;
  context.fillStyle = colour.paper;
  context.globalAlpha = 0.72;
  context.fillRect(view.left, 0, x(view.from) - view.left, CURVE);
  context.fillRect(x(view.until), 0, view.left + view.width - x(view.until), CURVE);
  context.globalAlpha = 1;
  context.strokeStyle = colour.select;
  context.strokeRect(x(view.from) + 0.5, 0.5, Math.max(2, x(view.until) - x(view.from) - 1), CURVE - 1);
  context.font = font;
  if (view.left > 0) {
    context.fillStyle = colour.faint;
    fitted(context, `up to ${most < 9.95 ? most.toFixed(1) : Math.round(most)} waiting`, 8, CURVE / 2, view.left - 16);
  }
  const tick = roundStep(view.until - view.from, view.width / 110);
  const scale = view.width / (view.until - view.from);
  context.fillStyle = colour.faint;
  context.textAlign = "center";
  for (let at = Math.ceil(view.from / tick) * tick; at <= view.until; at += tick) {
    const along = view.left + (at - view.from) * scale;
    context.fillRect(along, CURVE, 1, 5);
    const text = moment(at, tick);
    const half = context.measureText(text).width / 2;
    const middle = Math.min(Math.max(along, view.left + half + 2), view.left + view.width - half - 2);
    context.fillText(text, middle, CURVE + 14);
  }
  context.textAlign = "left";
  if (cursor !== null) {
    const text = moment(cursor, tick / 100);
    const half = context.measureText(text).width / 2 + 5;
    const along = view.left + (cursor - view.from) * scale;
    const middle = Math.min(Math.max(along, view.left + half), view.left + view.width - half);
    context.fillStyle = colour.ink;
    context.fillRect(middle - half, CURVE + 5, 2 * half, AXIS - 6);
    context.fillStyle = colour.paper;
    context.fillText(text, middle - half + 5, CURVE + 14);
  }
}

/** Draws the rows of which something is to be seen. */
function drawRows(context, state) {
  const { view, layout, colour, top, height, width, lanes, chosen } = state;
  const scale = view.width / (view.until - view.from);
  context.save();
  context.translate(0, -top);
  for (const place of layout.places) {
    if (place.y + place.height < top || place.y > top + height) {
      continue;
    }
    if (place.row === null) {
      context.fillStyle = colour.panel;
      context.fillRect(0, place.y, width, place.height);
      context.fillStyle = colour.ink;
      context.font = "600 " + state.font;
      fitted(context, place.name, 8, place.y + place.height / 2, width - 16);
      continue;
    }
    const row = facts.rows[place.row];
    const above = place.y + layout.label;
    context.fillStyle = state.row === place.row ? colour.panel : colour.paper;
    context.fillRect(0, place.y, width, place.height);
    context.fillStyle = colour.rule;
    context.globalAlpha = 0.6;
    context.fillRect(0, place.y + place.height - 1, width, 1);
    context.globalAlpha = 1;
    const [born, died] = [row.began, row.ended].map(at => Math.min(view.width, Math.max(0, (at - view.from) * scale)));
    context.fillStyle = colour.life;
    context.fillRect(view.left + born, above + 4, Math.max(1, died - born), LANES_HEIGHT);
    const band = lane => [above + 4 + BANDS[lane][0], BANDS[lane][1]];
    const strength = chosen ? 0.22 : 1;
    const layers = chosen ? [[lanes, strength, true], [chosen, 1, false]] : [[lanes, 1, false]];
    for (const [set, alpha, grey] of layers) {
      const of = set[place.row];
      drawLane(context, of[IDLE], view, band(IDLE), colour.idle, alpha, colour.paper);
      drawLane(context, of[WAIT], view, band(WAIT), grey ? colour.faint : colour.wait, alpha, colour.paper);
      drawLane(context, of[HOLD], view, band(HOLD), grey ? colour.faint : colour.hold, alpha, colour.paper);
      drawLane(context, of[WAKE], view, band(WAKE), grey ? colour.faint : colour.wake, alpha, colour.paper, 1);
    }
    drawSamples(context, place.row, view, band(HOLD), colour.ink);
    context.fillStyle = state.row === place.row ? colour.ink : colour.faint;
    context.font = state.font;
    if (layout.label === 0) {
      const tid = row.tid === 0 ? "" : String(row.tid);
      const room = context.measureText(tid).width;
      fitted(context, row.name, 16, place.y + place.height / 2, GUTTER - room - 36);
      context.fillStyle = colour.faint;
      context.fillText(tid, GUTTER - room - 10, place.y + place.height / 2);
    } else {
      fitted(context, threadName(place.row), 8, place.y + 9, width - 16);
    }
  }
  context.restore();
}

/** Frames an event, with arrows from who ended it or to what it ended. */
function drawChosen(context, event, state) {
  const { view, layout, colour, top } = state;
  const scale = view.width / (view.until - view.from);
  const x = at => view.left + Math.min(view.width + 9, Math.max(-9, (at - view.from) * scale));
  const middle = (row, lane) => {
    const [from, height] = BANDS[lane];
    return layout.rowY[row] - top + layout.label + 4 + from + height / 2;
  };
  const lane = laneOf(event), row = rowOf(event);
  const [, height] = BANDS[lane];
  context.save();
  context.beginPath();
  context.rect(view.left, 0, view.width, state.height);
  context.clip();
  context.strokeStyle = context.fillStyle = colour.select;
  context.lineWidth = 2;
  const [left, right] = [x(events.began[event]), x(endOf(event))];
  context.strokeRect(left - 1, middle(row, lane) - height / 2 - 1, Math.max(4, right - left + 2), height + 2);
  context.lineWidth = 1.5;
  const arrow = (from, to) => {
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.stroke();
    const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
    context.beginPath();
    context.moveTo(...to);
    for (const side of [-0.4, 0.4]) {
      context.lineTo(to[0] - 9 * Math.cos(angle + side), to[1] - 9 * Math.sin(angle + side));
    }
    context.fill();
  };
  if (lane === WAIT || lane === IDLE) {
    const waker = wakerOf(event);
    if (waker) {
      const of = waker.event === null ? IDLE : laneOf(waker.event);
      arrow([x(waker.at), middle(waker.row, of)], [right, middle(row, lane)]);
    }
  } else {
    for (const wait of state.woken.slice(0, MOST_ARROWS)) {
      arrow([right, middle(row, lane)], [x(endOf(wait)), middle(rowOf(wait), laneOf(wait))]);
    }
  }
  context.restore();
}
