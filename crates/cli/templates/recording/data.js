// What was recorded, as the command has left it in the page.
//
// A column is a typed array. The events of the timeline lie by row (a thread), then by lane, then by
// the time at which they began; `facts.rows[row].lanes` has the number of events of each lane.
// Times are nanoseconds from the beginning of the run.

/** The lanes of a row, in the order of the columns. */
const WAIT = 0, IDLE = 1, HOLD = 2, WAKE = 3, LANES = 4;

/** Names, rows, stacks and flame graphs. */
const facts = JSON.parse(document.getElementById("facts").textContent);

/** Reads a column. Its bytes have the order of all processors for which there are browsers. */
function column(name) {
  const element = document.getElementById("column-" + name);
  const text = atob(element.textContent);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) {
    bytes[at] = text.charCodeAt(at);
  }
  const types = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f64: Float64Array };
  return new types[element.dataset.width](bytes.buffer);
}

const events = {
  began: column("began"),
  lasted: column("lasted"),
  thing: column("thing"),
  stack: column("stack"),
  how: column("how"),
  ending: column("ending"),
  /** 0: not known; one more than the event that ended the wait; above all events: one more than
   * their number and the row of the thread that ended the wait by its own end. */
  waker: column("waker"),
};
events.count = events.began.length;

const samples = {
  at: column("sample-at"),
  /** 0: not known; else one more than the lock. */
  thing: column("sample-thing"),
  doing: column("sample-doing"),
};

// Where the events and the samples of each row begin.
{
  let event = 0, sample = 0;
  for (const row of facts.rows) {
    row.from = [];
    for (const count of row.lanes) {
      row.from.push(event);
      event += count;
    }
    row.until = event;
    row.sampled = [sample, sample + row.samples];
    sample += row.samples;
  }
}

/** Returns the end of an event. */
function endOf(event) {
  return events.began[event] + events.lasted[event];
}

/** Returns the place of the row that has this event. */
function rowOf(event) {
  let low = 0, high = facts.rows.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (facts.rows[middle].until > event) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/** Returns the lane of an event. */
function laneOf(event) {
  const from = facts.rows[rowOf(event)].from;
  let lane = WAKE;
  while (from[lane] > event) {
    lane--;
  }
  return lane;
}

/** Returns the first place from `low` up to `high` whose number is not below `value`. */
function lowerBound(numbers, value, low, high) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (numbers[middle] < value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** Writes a time in three digits, as the command does. */
function time(ns) {
  const units = [" ns", " µs", " ms", " s"];
  let unit = 0;
  while (Math.abs(ns) >= 999.5 && unit + 1 < units.length) {
    ns /= 1000;
    unit++;
  }
  const size = Math.abs(ns);
  const digits = size === 0 || size >= 99.95 || unit === 0 ? 0 : size >= 9.995 ? 1 : 2;
  return ns.toFixed(digits) + units[unit];
}

/** Writes a moment with as many digits as tell it from one `step` later. */
function moment(ns, step) {
  if (ns === 0) {
    return "0";
  }
  const units = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
  const [name, unit] = units.find(([, size]) => Math.abs(ns) >= size) ?? units[3];
  const digits = Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9));
  return (ns / unit).toFixed(Math.min(9, digits)) + " " + name;
}

/** Writes a number with its thousands apart. */
function count(number) {
  return number.toLocaleString("en-US");
}

/** Creates an element with a class and what is in it. Texts are never read as HTML. */
function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) {
    made.className = className;
  }
  made.append(...children);
  return made;
}
