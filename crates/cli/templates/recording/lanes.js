// Lanes: what a row draws and finds without looking at each of its events.
//
// Zoomed out, thousands of events lie in one pixel. A lane has, beside the beginnings of its events,
// their sums up to each one, so that two binary searches say which events begin within a pixel and
// how much of it they fill. To draw a row takes time for its pixels, not for its events.

/** A lane of a row: those of its events that `keeps` lets pass, or all. */
class Lane {
  constructor(from, until, keeps) {
    let ids = null;
    let size = until - from;
    if (keeps) {
      ids = new Uint32Array(size);
      size = 0;
      for (let event = from; event < until; event++) {
        if (keeps(event)) {
          ids[size++] = event;
        }
      }
      ids = ids.slice(0, size);
    }
    this.from = from;
    this.ids = ids;
    this.size = size;
    this.starts = new Float64Array(size);
    this.ends = new Float64Array(size);
    /** The latest end of each event and all before it, which only goes up. */
    this.latest = new Float64Array(size);
    /** The time of all events before each one. */
    this.sums = new Float64Array(size + 1);
    let latest = -1;
    for (let at = 0; at < size; at++) {
      const event = this.event(at);
      const start = events.began[event], end = start + events.lasted[event];
      latest = Math.max(latest, end);
      this.starts[at] = start;
      this.ends[at] = end;
      this.latest[at] = latest;
      this.sums[at + 1] = this.sums[at] + events.lasted[event];
    }
  }

  /** Returns the number of the event at a place of the lane. */
  event(at) {
    return this.ids ? this.ids[at] : this.from + at;
  }

  /** Returns the place at which a search from `at` for a beginning of `value` or later ends. Most
   * are near, so it goes in steps that double. */
  seek(value, at) {
    let step = 1, low = at;
    while (low + step < this.size && this.starts[low + step] < value) {
      low += step;
      step *= 2;
    }
    return lowerBound(this.starts, value, low, Math.min(this.size, low + step + 1));
  }

  /**
   * Calls `fill(left, right, share)` for what the lane shows of a view, in pixels from its left:
   * an event of two pixels or more by itself, with a share of 1; those that begin within one pixel
   * together, with the share of the pixel that they fill.
   */
  paint(view, fill) {
    const { starts, ends, latest, sums } = this;
    const scale = view.width / (view.until - view.from);
    const last = lowerBound(starts, view.until, 0, this.size);
    // What ended before the view's beginning is not looked at.
    let at = lowerBound(latest, view.from, 0, last);
    while (at < last) {
      const left = (starts[at] - view.from) * scale;
      const right = (ends[at] - view.from) * scale;
      if (right - left >= 2 || left < 0) {
        if (right >= 0) {
          fill(Math.max(0, left), Math.min(view.width, right), 1);
        }
        at++;
        continue;
      }
      const pixel = Math.floor(left);
      const edge = view.from + (pixel + 1) / scale;
      const next = Math.min(last, this.seek(edge, at + 1));
      fill(pixel, pixel + 1, Math.min(1, (sums[next] - sums[at]) * scale));
      // One of them may reach far beyond the pixel.
      if (latest[next - 1] > edge && (at === 0 || latest[next - 1] > latest[at - 1])) {
        fill(pixel + 1, Math.min(view.width, (latest[next - 1] - view.from) * scale), 1);
      }
      at = next;
    }
  }

  /**
   * Finds what a pointer at `time` means, give or take `reach`: the longest of the events that begin
   * there, else the last begun of those that last there. Returns it with how many begin there.
   */
  pick(time, reach) {
    const first = lowerBound(this.starts, time - reach, 0, this.size);
    const next = lowerBound(this.starts, time + reach, first, this.size);
    let best = -1;
    for (let at = first; at < next; at++) {
      if (best < 0 || this.ends[at] - this.starts[at] > this.ends[best] - this.starts[best]) {
        best = at;
      }
    }
    for (let at = first - 1; best < 0 && at >= 0 && this.latest[at] >= time - reach; at--) {
      if (this.ends[at] >= time - reach) {
        best = at;
      }
    }
    return best < 0 ? null : { event: this.event(best), among: Math.max(1, next - first) };
  }

  /** Returns how much of the time from `from` to `until` the lane fills, at most all of it. */
  filled(from, until) {
    const first = lowerBound(this.latest, from, 0, this.size);
    const next = lowerBound(this.starts, until, first, this.size);
    if (first === next) {
      return 0;
    }
    // What reaches in from the left and out to the right counts as far as it lies within.
    let inside = this.sums[next] - this.sums[first];
    inside -= Math.max(0, from - this.starts[first]);
    inside -= Math.max(0, this.latest[next - 1] - until);
    return Math.max(0, Math.min(until - from, inside));
  }
}

/** Returns the lanes of all rows, of the events that `keeps` lets pass, or of all. */
function lanesOf(keeps) {
  return facts.rows.map(row => row.from.map((from, lane) => {
    return new Lane(from, lane + 1 < LANES ? row.from[lane + 1] : row.until, keeps);
  }));
}
