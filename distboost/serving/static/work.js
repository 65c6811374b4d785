// How the work stands: progress, the error, advice, and the answers of this person.

import { make } from "./cards.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 300, HEIGHT = 110, LEFT = 34, BOTTOM = 18; // of the chart

function drawn(tag, attributes, text = "") {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;

/** The estimated error against the number of labels, with its interval. */
function chart(points) {
  const last = points[points.length - 1];
  const most = Math.max(...points.map((point) => point[3]), 0.01);
  const x = (n) => LEFT + ((WIDTH - LEFT - 6) * n) / last[0];
  const y = (error) => 6 + (HEIGHT - BOTTOM - 6) * (1 - error / most);
  const line = (found) => found.map(([n, error]) => `${x(n).toFixed(1)},${y(error).toFixed(1)}`).join(" ");
  const made = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": `Error ${percent(last[1])} with ${last[0]} labels` });
  const band = [...points.map((point) => [point[0], point[3]]), ...points.toReversed().map((point) => [point[0], point[2]])];
  made.append(
    drawn("polygon", { points: line(band), class: "band" }),
    drawn("polyline", { points: line(points), class: "line" }),
    drawn("circle", { cx: x(last[0]), cy: y(last[1]), r: 3, class: "dot" }),
    drawn("path", { d: `M${LEFT} 6V${HEIGHT - BOTTOM}H${WIDTH - 6}`, class: "axis" }),
    drawn("text", { x: LEFT - 4, y: 12, "text-anchor": "end" }, percent(most)),
    drawn("text", { x: LEFT - 4, y: HEIGHT - BOTTOM, "text-anchor": "end" }, "0"),
    drawn("text", { x: WIDTH - 6, y: HEIGHT - 4, "text-anchor": "end" }, `${last[0]} labels`),
  );
  return made;
}

function fill(id, ...children) {
  document.getElementById(id).replaceChildren(...children);
}

function rowButton(row, text, open) {
  return make("li", {}, make("button", { onclick: () => open(row) }, text));
}

const SAID = { skipped: "skipped", unsure: "cannot tell" };

/** Show the state that the server has told; open(row) looks at a row again. */
export function showWork(state, by, open) {
  const { counts, per_hour: perHour, curve } = state;
  const most = Math.max(...Object.values(counts), 1);
  const team = Object.entries(perHour).filter(([name]) => name !== by).map(([name, n]) => `${name} ${n}`);
  fill("progress", `${state.n_labels.toLocaleString()} labels of ${state.n_rows.toLocaleString()} rows; `
    + `${perHour[by] || 0} of yours within the hour${team.length ? ` (${team.join(", ")})` : ""}`);
  fill("counts", ...state.classes.map((label) => {
    const meter = make("span", { className: "bar" }, make("span"));
    meter.firstChild.style.width = `${(100 * (counts[label] || 0)) / most}%`;
    return make("li", {}, make("span", {}, label), meter, make("span", { className: "number" }, String(counts[label] || 0)));
  }));
  const last = curve[curve.length - 1];
  fill("curve", ...(curve.length ? [chart(curve)] : []));
  fill("error", last ? `${percent(last[1])}, between ${percent(last[2])} and ${percent(last[3])}, by ${last[4]} random rows`
    : "Not known yet: it follows from rows that are drawn at random.");
  const told = state.problem ? [state.problem] : state.next_steps;
  fill("advice", ...(told.length ? told : ["Label the first rows."]).map((text) => make("li", {}, text)));
  fill("doubts", ...state.doubts.map(([row, label, rather]) => rowButton(row, `Row ${row}: ${label}, rather ${rather}?`, open)));
  fill("history", ...state.history.map((one) => rowButton(one.row, `Row ${one.row}: ${one.label ?? SAID[one.kind]}`, open)));
}
