"use strict";
// Tables sort by a click on a column. Without scripts, they have the order of the file.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, at) => row.cells[at].textContent.trim();
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const rows = [...table.tBodies[0].rows];
      const number = (row) => Number(value(row, at).replaceAll(",", ""));
      const numeric = head.classList.contains("number");
      const compare = numeric ? (a, b) => number(a) - number(b) : (a, b) => value(a, at).localeCompare(value(b, at), undefined, { numeric: true });
      const known = rows.filter((row) => !numeric || !Number.isNaN(number(row)));
      const others = rows.filter((row) => !known.includes(row));
      known.sort(down ? (a, b) => compare(b, a) : compare);
      table.tBodies[0].append(...known, ...others);
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
  });
}

// What the cell of the confusion matrix under the pointer means.
const picture = document.getElementById("picture");
if (picture) {
  const data = JSON.parse(document.getElementById("counts").textContent);
  const side = data.names.length;
  const said = document.getElementById("cell");
  const show = (event) => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
    const [i, j] = [Math.floor(place.y), Math.floor(place.x)];
    if (i < 0 || j < 0 || i >= side || j >= side) return;
    let count = 0, total = 0;
    const row = data.rows[i];
    for (let k = 0; k < row.length; k += 2) {
      total += row[k + 1];
      if (row[k] === j) count = row[k + 1];
    }
    const part = total ? ` (${(100 * count / total).toFixed(1)} %)` : "";
    said.textContent = `${data.names[i]} predicted as ${data.names[j]}: ${count.toLocaleString("en")} of ${total.toLocaleString("en")}${part}`;
    document.getElementById("cross").setAttribute("d", `M${j + 0.5} 0V${side}M0 ${i + 0.5}H${side}`);
  };
  picture.addEventListener("pointermove", show);
  picture.addEventListener("pointerdown", show);
}
