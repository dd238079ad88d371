// Puts the parts of the page together.

for (const section of document.querySelectorAll(".scripted")) {
  section.hidden = false;
}

const panel = document.getElementById("event");
const only = document.getElementById("only");
const nothingChosen = panel.firstElementChild;

/** Returns a button that does something. */
function button(text, does) {
  const made = element("button", "", text);
  made.addEventListener("click", does);
  return made;
}

/** Shows what is known of an event, with what can be done with it. */
function show(event) {
  if (event === null) {
    panel.replaceChildren(nothingChosen);
    return;
  }
  const kind = kindOf(event);
  const said = element("p", "", lastedWords(event));
  said.append(element("span", "faint", ` · ${threadName(rowOf(event))}${kind ? " · " + kind : ""}`));
  const buttons = element("div", "bar",
    button("zoom to it", () => timeline.zoomTo(event)),
    button("only this lock", () => choose(events.thing[event])));
  const waker = wakerOf(event);
  if (waker && waker.event !== null) {
    buttons.append(button("go to who ended it", () => timeline.select(waker.event)));
  }
  const woken = timeline.woken;
  if (woken.length > 0) {
    buttons.append(button(woken.length === 1 ? "go to the wait that it ended" : `go to the first of ${woken.length} waits that it ended`,
      () => timeline.select(woken[0])));
  }
  buttons.append(
    button("‹ previous", () => timeline.step(-1)),
    button("next ›", () => timeline.step(1)));
  panel.replaceChildren(
    element("p", "what", headline(event)), said,
    ...sentences(event).map(sentence => element("p", "", sentence)),
    frameList(event, Infinity), buttons);
}

/** Shows one lock in colour, or all: null. */
function choose(thing) {
  const value = thing === null ? "" : String(thing);
  if (thing !== null && ![...only.options].some(option => option.value === value)) {
    only.append(new Option(facts.things[thing].name, value));
  }
  only.value = value;
  timeline.filter(thing);
  for (const row of document.querySelectorAll("table.waits tr[data-thing]")) {
    const isChosen = row.dataset.thing === value;
    row.classList.toggle("chosen", isChosen);
    row.querySelector("button").setAttribute("aria-pressed", String(isChosen));
  }
}

const timeline = new Timeline(show);

for (const row of document.querySelectorAll("table.waits tr[data-thing]")) {
  const thing = Number(row.dataset.thing);
  only.append(new Option(facts.things[thing].name, String(thing)));
  const [cell] = row.cells;
  const name = button(cell.textContent, () => {
    choose(timeline.only === thing ? null : thing);
    document.getElementById("timeline").scrollIntoView({ block: "nearest" });
  });
  name.setAttribute("aria-pressed", "false");
  name.title = "show it in the timeline";
  cell.replaceChildren(name);
}
only.addEventListener("change", () => choose(only.value === "" ? null : Number(only.value)));
document.getElementById("zoom-in").addEventListener("click", () => timeline.zoom(0.5));
document.getElementById("zoom-out").addEventListener("click", () => timeline.zoom(2));
document.getElementById("zoom-all").addEventListener("click", () => timeline.show(0, timeline.whole));
document.getElementById("legend-samples").hidden =
  !facts.doings.some(([met]) => ["lacks", "sleeps", "stopped"].includes(met));

if (document.getElementById("flame")) {
  new Flames();
}

// On paper everything is dark on light.
function paper(isPaper) {
  document.documentElement.toggleAttribute("data-paper", isPaper);
  timeline.measure();
  timeline.draw();
}
addEventListener("beforeprint", () => paper(true));
addEventListener("afterprint", () => paper(false));
