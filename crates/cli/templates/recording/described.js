// What the page says of an event.

/** How a wait ended, by number. */
const ENDINGS = {
  0: "it got what it waited for",
  1: "it gave up at its deadline",
  2: "a signal interrupted it",
  3: "it was refused",
  4: "it was abandoned: cancelled, or left by an exception",
  15: "it lasted to the end of the recording",
};

/** The facts of a hold, by bit. */
const HOLD_FACTS = [
  [1, "for reading"],
  [2, "its beginning is an estimate by the coarse clock"],
  [4, "the thread had waited for it"],
  [8, "others waited at its end"],
  [16, "given back to wait for a condition"],
];

/** The most frames in the box beside the pointer. */
const FEW_FRAMES = 6;

/** Returns what a thread is called. */
function threadName(row) {
  const { name, tid } = facts.rows[row];
  return tid === 0 ? name : `${name} (tid ${tid})`;
}

/** Returns what an event is, in a few words. */
function headline(event) {
  const thing = facts.things[events.thing[event]];
  switch (laneOf(event)) {
    case WAIT:
    case IDLE: return `waits for ${thing.name}`;
    case HOLD: return `holds ${thing.name}`;
    default: return `wakes waiters for ${thing.name}`;
  }
}

/** Returns who ended a wait: the thread's row, and the event if it was one; null if not known. */
function wakerOf(event) {
  const waker = events.waker[event];
  if (waker === 0) {
    return null;
  }
  if (waker > events.count) {
    const row = waker - events.count - 1;
    return { row, event: null, at: facts.rows[row].ended };
  }
  return { row: rowOf(waker - 1), event: waker - 1, at: endOf(waker - 1) };
}

/** Returns the waits that an event ended. */
function wokenBy(event) {
  const woken = [];
  for (let at = events.waker.indexOf(event + 1); at >= 0; at = events.waker.indexOf(event + 1, at + 1)) {
    woken.push(at);
  }
  return woken;
}

/** Returns the sentences on how an event came about and ended. */
function sentences(event) {
  const lane = laneOf(event);
  const said = [];
  if (lane === HOLD) {
    const facts = HOLD_FACTS.filter(([bit]) => events.how[event] & bit).map(([, text]) => text);
    if (events.ending[event] !== 0) {
      facts.push(ENDINGS[events.ending[event]]);
    }
    if (facts.length > 0) {
      said.push(facts.join("; "));
    }
  } else if (lane !== WAKE) {
    said.push(ENDINGS[events.ending[event]] ?? ENDINGS[3]);
    const waker = wakerOf(event);
    if (waker) {
      const how = waker.event === null ? "ended" : laneOf(waker.event) === HOLD ? "gave it back" : "woke it";
      said.push(`${threadName(waker.row)} ${how} ${time(Math.max(0, endOf(event) - waker.at))} before`);
    } else if (events.ending[event] === 0) {
      said.push("who let it go on is not known");
    }
  }
  return said;
}

/** Returns the frames of an event's stack as a list, at most so many. */
function frameList(event, most) {
  const stack = facts.stacks[events.stack[event]];
  const list = element("ol", "frames site");
  for (const place of stack.slice(0, most)) {
    const [name, site] = facts.frames[place];
    list.append(element("li", "", name, element("span", "at", site ? ` at ${site}` : "")));
  }
  if (stack.length > most) {
    list.append(element("li", "at", `and ${stack.length - most} more`));
  }
  return stack.length > 0 ? list : element("p", "faint", "Its stack is not known.");
}

/** Returns the kind of what an event is about, and the way of the wait. */
function kindOf(event) {
  const { kind } = facts.things[events.thing[event]];
  const lane = laneOf(event);
  const way = lane === WAIT || lane === IDLE ? facts.ways[events.how[event]] : "";
  return kind.includes(way) ? kind : [kind, way].filter(word => word !== "").join(", ");
}

/** Returns what is said of an event that the pointer is at. `among`: how many there are. */
function brief(event, among) {
  const box = document.createDocumentFragment();
  box.append(
    element("p", "what", headline(event)),
    element("p", "", lastedWords(event), element("span", "faint", ` · ${threadName(rowOf(event))}`)),
  );
  if (among > 1) {
    box.append(element("p", "faint", `the longest of ${count(among)} here: zoom in to tell them apart`));
  }
  for (const sentence of sentences(event)) {
    box.append(element("p", "faint", sentence));
  }
  box.append(frameList(event, FEW_FRAMES));
  return box;
}

/** Returns how long an event lasted and when it began. */
function lastedWords(event) {
  const from = moment(events.began[event], 1000);
  return laneOf(event) === WAKE ? `at ${from}` : `${time(events.lasted[event])}, from ${from}`;
}

/** Returns what is said of a look at a holder. */
function briefSample(sample, row) {
  const thing = samples.thing[sample];
  const lock = thing === 0 ? "a lock" : facts.things[thing - 1].name;
  const box = document.createDocumentFragment();
  box.append(
    element("p", "what", `holder of ${lock} ${facts.doings[samples.doing[sample]][1]}`),
    element("p", "faint", `a look at ${moment(samples.at[sample], 1000)} · ${threadName(row)}`),
  );
  return box;
}
