// The page: a row, its answer, the next row.

import { guessed, make, shown, tile } from "./cards.js";
import { Outbox, call, get, token } from "./server.js";
import { showWork } from "./work.js";

const AHEAD = 8, TILES = 24, KEPT = 300; // rows that are here before they are needed, rows of the grid, cards that stay
const LOOK = 4000, SETTLED = 400; // milliseconds between two looks at the work, and from an answer to the next look
const KEYS = [..."1234567890qwertyuiopasdfghjklzxcvbnm"];
const TAKEN = new Set(["+", "-", "?"]); // as in files for `tell`: - skips, ? cannot tell

const $ = (id) => document.getElementById(id);
const cards = new Map(); // by row
const done = new Set(); // rows that were answered here
let setup, state = { classes: [], history: [], is_declared: true }, queue = [], current = null, since = 0, isFilling = false, added = [], mine = [], soon = 0;

const outbox = new Outbox(showSent, (answer, why) => {
  for (const row of answer.rows) cards.delete(row);
  $("refused").append(make("li", {}, `Not recorded: ${why} `, make("button", { onclick: (event) => event.target.parentElement.remove() }, "OK")));
});

function say(text) {
  $("last").textContent = text;
}

function showSent(problem = "") {
  const n = outbox.waiting.length;
  const kept = n ? `${n} ${n === 1 ? "answer is" : "answers are"} kept in this browser until it is back.` : "";
  $("sent").textContent = problem ? `${problem} ${kept}` : n ? "Sending …" : "All answers are stored.";
  $("sent").classList.toggle("problem", Boolean(problem));
  if (!problem && !n) {
    clearTimeout(soon);
    soon = setTimeout(look, SETTLED);
  }
}

// Rows.

async function fill() {
  const isFull = queue.length >= AHEAD && queue.every((row) => cards.get(row)?.hint);
  if (isFilling || isFull) return;
  isFilling = true;
  try {
    const known = [...(current === null ? [] : [current]), ...queue];
    const pending = outbox.waiting.flatMap((answer) => answer.rows);
    const n = Math.min(AHEAD + 1 + pending.length, 400);
    const found = await get(`rows?n=${n}&have=${[...known, ...pending].join()}`);
    for (const card of found.cards) keep(card);
    for (const [row, hint] of Object.entries(found.hints)) if (cards.has(+row)) cards.get(+row).hint ??= hint;
    const here = new Set([...known, ...pending, ...done]);
    queue.push(...found.open.filter((row) => !here.has(row) && cards.has(row)));
    if (current === null) next(found.is_over);
  } catch (error) {
    if (error.status === 401) refuse();
  }
  isFilling = false;
}

function keep(card) {
  cards.delete(card.row);
  cards.set(card.row, card);
  if (cards.size > KEPT) cards.delete(cards.keys().next().value);
}

function next(isOver = false) {
  current = queue.shift() ?? null;
  show(isOver);
  if (queue.length < AHEAD / 2) fill();
}

function show(isOver = false) {
  const card = cards.get(current);
  for (const button of $("answers").querySelectorAll("#classes button, #skip, #unsure, #add")) button.disabled = !card;
  if (!card) {
    $("row").textContent = isOver ? "No row is left" : "Waiting for rows …";
    $("card").replaceChildren();
    $("guess").textContent = "";
    return;
  }
  const showsGuess = $("when").value === "before";
  $("row").textContent = `Row ${card.row}${card.label === null ? "" : `, labelled ${card.label}`}`;
  $("guess").textContent = showsGuess ? guessed(card) : "";
  $("card").replaceChildren(...shown(card, setup, showsGuess));
  since = performance.now();
}

/** Look at a row again, before the one that is here. */
async function open(row) {
  try {
    const { cards: [card] } = await get(`card?row=${row}`);
    keep(card);
  } catch (error) {
    return say(error.status ? error.message : "The server is away: this row cannot be shown now.");
  }
  done.delete(row);
  queue = [row, ...(current === null || current === row ? [] : [current]), ...queue.filter((one) => one !== row)];
  next();
  scrollTo({ top: 0 });
}

// Answers.

function send(answer) {
  for (const row of answer.rows) done.add(row);
  outbox.add(answer);
  showSent();
}

function answer(what) {
  const card = cards.get(current);
  if (!card) return;
  const seconds = Math.round(performance.now() - since) / 1000;
  send({ rows: [current], ...what, ...(what.do === "label" ? { seconds, correct: card.label !== null } : {}) });
  mine.push([current]);
  const told = `Row ${current}: ${what.label ?? (what.do === "skip" ? "skipped" : "cannot tell")}.`;
  say($("when").value === "never" ? told : `${told} ${guessed(card)}`);
  card.label = what.label ?? null;
  next();
}

function undo() {
  const rows = mine.pop() || state.history.slice(0, 1).map((one) => one.row);
  if (!rows.length) return say("There is nothing to undo.");
  send({ do: "undo", rows });
  for (const row of rows) {
    done.delete(row);
    if (cards.has(row)) cards.get(row).label = null;
  }
  const here = rows.filter((row) => cards.has(row));
  queue = [...here, ...(current === null ? [] : [current]), ...queue.filter((row) => !rows.includes(row))];
  say(`Taken back: ${rows.length === 1 ? `row ${rows[0]}` : `${rows.length} rows`}.`);
  next();
}

// Classes.

const classes = () => [...state.classes, ...added.filter((name) => !state.classes.includes(name))];

function keysOf(names) {
  const own = names.map((name) => name.toLowerCase());
  const isShort = own.every((key) => [...key].length === 1 && !TAKEN.has(key)) && new Set(own).size === own.length;
  return isShort ? own : names.map((_, i) => KEYS[i] || "");
}

function showClasses() {
  const names = classes(), keys = keysOf(names);
  if ($("classes").dataset.names === JSON.stringify(names)) return;
  $("classes").dataset.names = JSON.stringify(names);
  $("classes").replaceChildren(...names.map((label, i) => {
    const made = make("button", { onclick: () => answer({ do: "label", label }) }, label, " ", keys[i] ? make("kbd", {}, keys[i]) : null);
    if (keys[i]) made.setAttribute("aria-keyshortcuts", keys[i]);
    return made;
  }));
  $("grid-class").replaceChildren(...names.map((label) => make("option", { value: label }, label)));
  $("add").hidden = state.is_declared;
  if (!cards.has(current)) show();
}

function addClass() {
  $("new-name").value = $("new-class").returnValue = "";
  $("new-class").showModal();
}

$("new-class").onclose = () => {
  const name = $("new-name").value.trim();
  if ($("new-class").returnValue !== "create" || !name) return;
  if (!classes().includes(name)) added.push(name);
  showClasses();
  answer({ do: "label", label: name });
};

// Many at once.

let tiles = [];

async function many() {
  $("grid").returnValue = "";
  $("grid").showModal();
  await showTiles();
}

/** Let others have the rows of the grid, except those that come anyway. */
function release(rows) {
  const free = rows.filter((row) => row !== current && !queue.includes(row) && !done.has(row));
  if (free.length) outbox.add({ do: "release", rows: free });
}

async function showTiles() {
  const label = $("grid-class").value;
  release(tiles.map((card) => card.row));
  tiles = [];
  try {
    tiles = label ? (await get(`alike?n=${TILES}&label=${encodeURIComponent(label)}`)).cards : [];
  } catch (error) {
    $("tiles").textContent = error.status ? error.message : "The server is away.";
    return;
  }
  tiles = tiles.filter((card) => !done.has(card.row));
  tiles.forEach(keep);
  $("confirm").disabled = !tiles.length;
  $("tiles").className = setup.image ? "" : "texts";
  $("tiles").replaceChildren(...tiles.map((card) => {
    const made = make("button", { type: "button", className: "tile", aria: { pressed: "true" } }, tile(card, setup));
    made.onclick = () => made.setAttribute("aria-pressed", String(made.getAttribute("aria-pressed") !== "true"));
    return made;
  }));
  if (!tiles.length) $("tiles").textContent = "The model takes no row for this class yet.";
}

$("grid").onclose = () => {
  const isConfirmed = $("grid").returnValue === "confirm";
  if (!isConfirmed) release(tiles.map((card) => card.row));
  const pressed = [...$("tiles").children].map((made) => made.getAttribute("aria-pressed") === "true");
  const rows = tiles.filter((_, i) => pressed[i]).map((card) => card.row);
  tiles = [];
  if (!isConfirmed || !rows.length) return;
  send({ do: "label", rows, label: $("grid-class").value });
  mine.push(rows);
  say(`${rows.length} rows: ${$("grid-class").value}.`);
  queue = queue.filter((row) => !done.has(row));
  if (done.has(current)) next();
  fill();
};

// The whole.

async function look() {
  try {
    state = await get("state");
    showClasses();
    showWork(state, setup.by, open);
    fill();
  } catch (error) {
    if (error.status === 401) refuse();
  }
}

function refuse() {
  $("row").textContent = "This address is not valid";
  $("card").replaceChildren(make("p", {}, "Open the URL that the server has printed with your name."));
}

function pressed(event) {
  const isTyping = event.target.closest("input, select, textarea, dialog") || document.querySelector("dialog[open]");
  if (isTyping || !$("keys").checked || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const names = classes(), place = keysOf(names).indexOf(event.key.toLowerCase());
  const others = {
    Backspace: undo,
    "-": () => answer({ do: "skip" }),
    "?": () => answer({ do: "unsure" }),
    "+": () => $("add").hidden || addClass(),
  };
  const act = place >= 0 ? () => answer({ do: "label", label: names[place] }) : others[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

function remember(id, property) {
  const key = `distboost ${id}`, kept = localStorage.getItem(key);
  if (kept !== null) $(id)[property] = JSON.parse(kept);
  $(id).onchange = () => {
    localStorage.setItem(key, JSON.stringify($(id)[property]));
    show();
  };
}

async function begin() {
  if (!token) return refuse();
  try {
    setup = await get("setup");
  } catch (error) {
    if (error.status === 401) return refuse();
    return setTimeout(begin, 1000);
  }
  document.title = `Label: ${setup.name}`;
  $("name").textContent = setup.name;
  $("who").textContent = setup.by;
  $("when").value = setup.guess;
  $("guidelines").hidden = !setup.guidelines;
  $("guidelines").querySelector("p").textContent = setup.guidelines;
  remember("when", "value");
  remember("keys", "checked");
  $("undo").onclick = undo;
  $("skip").onclick = () => answer({ do: "skip" });
  $("unsure").onclick = () => answer({ do: "unsure" });
  $("add").onclick = addClass;
  $("many").onclick = many;
  $("grid-class").onchange = showTiles;
  document.addEventListener("keydown", pressed);
  await outbox.send();
  await look();
  setInterval(look, LOOK);
}

begin();
