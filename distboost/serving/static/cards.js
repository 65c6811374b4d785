// What is shown of a row. All texts are untrusted: they become text nodes, and nothing else.

import { call } from "./server.js";

const FEATURES = 14; // of a table, until all are wanted

export function make(tag, given = {}, ...children) {
  const { data, aria, ...properties } = given;
  const made = Object.assign(document.createElement(tag), properties);
  for (const [name, value] of Object.entries(aria || {})) made.setAttribute(name === "role" ? name : `aria-${name}`, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}

function number(value) {
  if (value === null) return "–";
  return Math.abs(value) >= 1e6 || (value !== 0 && Math.abs(value) < 1e-3) ? value.toExponential(3) : String(+value.toPrecision(6));
}

export function image(pixels, [height, width, colours], text) {
  const bytes = Uint8Array.from(atob(pixels), (letter) => letter.charCodeAt(0));
  const canvas = make("canvas", { width, height, className: "image", aria: { role: "img", label: text } });
  const data = new ImageData(width, height);
  for (let i = 0; i < width * height; i++) {
    for (let k = 0; k < 3; k++) data.data[4 * i + k] = bytes[colours === 3 ? 3 * i + k : i];
    data.data[4 * i + 3] = 255;
  }
  canvas.getContext("2d").putImageData(data, 0, 0);
  return canvas;
}

function bar(share, className) {
  const made = make("span", { className: `bar ${className}` }, make("span"));
  made.firstChild.style.width = `${Math.max(0, Math.min(100, share))}%`;
  return made;
}

function picture(row, column, name) {
  const made = make("img", { alt: `${name} of row ${row}` });
  call(`picture?row=${row}&column=${column}`)
    .then((answer) => answer.blob())
    .then((blob) => {
      made.src = URL.createObjectURL(blob);
      made.onload = () => URL.revokeObjectURL(made.src);
    })
    .catch(() => made.replaceWith(make("p", {}, "This picture cannot be read.")));
  return made;
}

function companion(card) {
  if (!card.shown.length) return null;
  const list = make("dl", { className: "shown" });
  card.shown.forEach(({ name, kind, text }, column) => {
    let content = text;
    if (kind === "link") content = make("a", { href: text, target: "_blank", rel: "noopener noreferrer" }, text);
    if (kind === "picture") content = picture(card.row, column, name);
    list.append(make("dt", {}, name), make("dd", { className: text.length > 80 ? "long" : "" }, content));
  });
  return list;
}

/** The features, those first that tell the two likeliest classes apart. */
function orderOf(card, setup) {
  const first = (card.hint?.order || []).map(([feature]) => feature);
  const known = new Set(first);
  return [...first, ...setup.features.map((_, feature) => feature).filter((feature) => !known.has(feature))];
}

function table(card, setup, showsGuess) {
  const speaks = showsGuess && card.hint?.order.length ? new Map(card.hint.order) : null;
  const most = speaks ? Math.max(...[...speaks.values()].map(Math.abs)) : 1;
  const heads = ["Feature", "Value", "Percentile in the pool"].map((text, i) =>
    make("th", { scope: "col", className: i === 1 ? "number" : "" }, text));
  if (speaks) heads.push(make("th", { scope: "col" }, "Speaks for"));
  for (const near of card.near) heads.push(make("th", { scope: "col", className: "near" }, make("small", {}, "like it"), ` ${near.label}`));
  const body = make("tbody");
  const order = orderOf(card, setup);
  const line = (feature) => {
    const percent = card.percent[feature], value = speaks?.get(feature) || 0;
    const cells = [
      make("th", { scope: "row" }, setup.features[feature]),
      make("td", { className: "number" }, number(card.values[feature])),
      make("td", { className: "percent" }, ...(percent === null ? ["missing"] : [bar(percent, ""), String(Math.round(percent))])),
    ];
    if (speaks) {
      const label = card.hint.guesses[value > 0 ? 0 : 1].label;
      cells.push(make("td", { className: "speaks" }, ...(value ? [bar((100 * Math.abs(value)) / most, value > 0 ? "first" : "second"), label] : [])));
    }
    for (const near of card.near) cells.push(make("td", { className: "number near" }, number(near.values[feature])));
    return make("tr", {}, ...cells);
  };
  body.append(...order.slice(0, FEATURES).map(line));
  const made = make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body);
  const all = make("div", { className: "wide", tabIndex: 0, aria: { role: "group", label: "Values" } }, made);
  if (order.length <= FEATURES) return all;
  const more = make("button", { className: "more" }, `Show all ${order.length} features`);
  more.onclick = () => {
    body.append(...order.slice(FEATURES).map(line));
    more.remove();
  };
  return make("div", {}, all, more);
}

/** The elements of a card. */
export function shown(card, setup, showsGuess) {
  const parts = [companion(card)];
  if (card.image) {
    const near = card.near.map((one) =>
      make("figure", {}, image(one.image, setup.image, `Row ${one.row}`), make("figcaption", {}, one.label)));
    parts.push(make("div", { className: "images" },
      make("figure", { className: "large" }, image(card.image, setup.image, `Row ${card.row}`)),
      near.length ? make("div", { className: "like", aria: { role: "group", label: "The nearest labelled rows" } },
        make("p", {}, "Labelled, and like it"), make("div", { className: "row" }, ...near)) : null));
    parts.push(make("details", {}, make("summary", {}, "Values"), table(card, setup, showsGuess)));
  } else parts.push(table(card, setup, showsGuess));
  return parts.filter((part) => part !== null);
}

/** What a tile of the grid shows. */
export function tile(card, setup) {
  if (card.image) return image(card.image, setup.image, `Row ${card.row}`);
  const texts = card.shown.filter(({ kind }) => kind === "text").map(({ text }) => text);
  if (texts.length) return make("span", {}, texts.join(" · ").slice(0, 160));
  const values = orderOf(card, setup).slice(0, 4).map((feature) => `${setup.features[feature]} ${number(card.values[feature])}`);
  return make("span", {}, values.join(", "));
}

/** The guesses of the model in words. */
export function guessed(card) {
  if (!card.hint) return "";
  const [first, second] = card.hint.guesses.map(({ label, p }) => `${label} (${Math.round(100 * p)} %)`);
  return `The model’s guess: ${first}, then ${second}`;
}
