"use strict";
// Text of users goes into the page as text nodes and attributes alone; nothing here parses HTML.

// made("span.name.own", { title: "…" }, "text", child): an element with its classes, attributes and children. Names of
// attributes that begin with -- are custom properties of its style; tags that begin with svg: are of SVG.
function made(kind, ...children) {
  const [tag, ...classes] = kind.split(".");
  const element = tag.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4)) : document.createElement(tag);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  const attributes = children.length && children[0].constructor === Object ? children.shift() : {};
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("--")) element.style.setProperty(key, value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

const MOST_CONFUSED = 12;
const percent = (share, digits = 1) => (100 * share).toFixed(digits) + "%";
const small = (share) => (share > 0 && share < 0.0005 ? "<0.1%" : percent(share));
const signed = (number) => (number < 0 ? "−" : "+") + Math.abs(number).toFixed(2);
const cosine = (similarity) => `similarity ${similarity.toFixed(2).replace("-", "−")}`;
const shotsInWords = (k) => `${k} shot${k === 1 ? "" : "s"}`;
// Neighbours that can be told apart from each other and from the ring around mistakes.
const colour = (c) => `var(--c${[0, 4, 2, 3, 5, 7, 1, 6][c % 8]})`;
const dot = (c) => made("span.dot", { "--colour": colour(c), "aria-hidden": "true" });
const fact = (...children) => made("p.fact", ...children);
const list = (kind, items) => made(kind, ...items.map((item) => made("li", ...[item].flat())));
const bar = (share, own = "var(--accent)") =>
  made("span.track", { "aria-hidden": "true" }, made("span", { "--share": percent(share, 2), "--colour": own }));

// A name, without its middle where it is long; it may be broken where people read a gap, as in names_of_classes.
function name(text, most = Infinity, kind = "bdi") {
  const letters = Array.from(text), half = Math.floor((most - 1) / 2);
  const short = letters.length <= most ? text : letters.slice(0, half).join("") + "…" + letters.slice(-half).join("");
  return made(kind, ...short.split(/(?<=[_/-])(?![_/-])/).flatMap((piece) => [piece, made("wbr")]));
}

function sortable(table) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => heading.querySelector("button").addEventListener("click", () => {
    const numeric = heading.classList.contains("number");
    const [first, other] = numeric ? ["descending", "ascending"] : ["ascending", "descending"];
    const order = heading.getAttribute("aria-sort") === first ? other : first;
    headings.forEach((each) => each.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", order);
    const value = (row) => (numeric && isNaN(row.cells[column].dataset.value) ? undefined : row.cells[column].dataset.value);
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      // Empty cells stay last, whatever the order.
      if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
      return (order === "ascending" ? 1 : -1) * (numeric ? x - y : x.localeCompare(y, undefined, { numeric: true }));
    }));
  }));
}

// Details that a link leads into.
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const folded = target && target.closest("details:not([open])");
  if (!folded) return;
  folded.open = true;
  target.scrollIntoView();
}

// What the page shows of a single task, as elements.
function taskParts(data, task, prefix) {
  const label = (c) => data.classes[task.names[c]];
  const classes = task.names.map((_, c) => c);
  // Queries of a right class (rows) by the answer (columns).
  const counts = classes.map((truth) => classes.map((chosen) => task.queries.filter((q) => q[2] === truth && q[3] === chosen).length));
  const asked = (c) => counts[c].reduce((sum, count) => sum + count, 0);
  const n_wrong = task.asked - task.right;
  const largest = Math.max(...task.classes.flatMap((own) => own.lenders.map(([, weight]) => weight)), 1e-9);
  const known = (row) => {
    const [id, text, image] = data.inputs.rows[row] || [];
    return { id: id || `row ${row}`, text, image };
  };

  // A sample as a reader can judge it: thumbnail, text and id, and under them what else there is to say.
  function sample(row, ...more) {
    const { id, text, image } = known(row);
    const said = text ? [name(text, 140, "bdi.said")] : [];
    if (text) said[0].title = text;
    const words = made("span.words", ...said, name(id, Infinity, text || image ? "bdi.id" : "bdi"), ...more);
    return made("span.sample", ...(image ? [made("img", { src: image, alt: text || id, title: id })] : []), words);
  }

  // The support samples most similar to a query.
  const nearest = (query) => list("ul.samples", task.nearest[query].map(([s, similarity]) => {
    const [, , c, row] = task.support[s];
    return sample(row, made("span.fact", dot(c), name(label(c), 40), `, ${cosine(similarity)}`));
  }));

  function open(query) {
    const detail = document.getElementById(`${prefix}-query-${query}`);
    if (!detail) return;
    detail.closest("details").open = true;
    detail.scrollIntoView({ block: "center" });
    (detail.querySelector("summary") || detail).focus({ preventScroll: true });
  }

  function map() {
    const [width, height, edge] = [200, 130, 8];
    const place = (x, y) => [edge + x * (width - 2 * edge), height - edge - y * (height - 2 * edge)];
    const hint = (row, words) => made("svg:title", [known(row).text, known(row).id].filter(Boolean).join(" · ") + ": " + words);
    const picture = made("svg:svg.map", { viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": "Support samples and queries as the classifier sees them" });
    // Mistakes lie on top.
    const queries = task.queries.map((point, query) => [...point, query]).sort((a, b) => (a[2] !== a[3]) - (b[2] !== b[3]));
    for (const [px, py, truth, chosen, row, query] of queries) {
      const [cx, cy] = place(px, py), wrong = truth !== chosen;
      const words = label(truth) + (wrong ? `, taken for ${label(chosen)}` : "");
      picture.append(made(wrong ? "svg:circle.query.error" : "svg:circle.query", { cx, cy, r: wrong ? 2.6 : 2.1,
        style: `fill:${colour(truth)}`, "data-query": query }, hint(row, words)));
      picture.lastChild.addEventListener("click", () => open(query));
    }
    for (const [px, py, truth, row] of task.support) {
      const [x, y] = place(px, py);
      picture.append(made("svg:rect.support", { x: x - 2.8, y: y - 2.8, width: 5.6, height: 5.6, transform: `rotate(45 ${x} ${y})`,
        style: `fill:${colour(truth)}` }, hint(row, `support of ${label(truth)}`)));
    }
    return picture;
  }

  function methods() {
    const order = data.methods.map((_, m) => m).filter((m) => task.methods[m] !== null).sort((a, b) => task.methods[b] - task.methods[a]);
    const rows = order.map((m) => [name(data.methods[m], Infinity, data.methods[m] === data.method ? "bdi.name.own" : "bdi.name"),
      bar(task.methods[m]), made("span.value", percent(task.methods[m]))]);
    return [made("h5", "Methods on this task"), list("ol.bars.wide", rows),
      fact(`Share of the ${task.asked} queries that were right, as recorded by the run.`)];
  }

  function confusion() {
    if (classes.length > MOST_CONFUSED) return [];
    const most = Math.max(...classes.map(asked));
    const head = classes.map((c) => made("th", { scope: "col", title: label(c) }, dot(c), made("span.unseen", label(c))));
    const cell = (count, kind) => made(kind, { "--share": percent(count / most, 0) }, String(count || "·"));
    const rows = classes.map((truth) => made("tr", made("th", { scope: "row" }, dot(truth), name(label(truth), 40)),
      ...counts[truth].map((count, chosen) => cell(count, truth === chosen ? "td.hit" : "td.miss"))));
    const corner = made("td", made("span.unseen", "right class"));
    return [made("h5.apart", "Confusion: right class in rows, answer in columns"),
      made("div.narrow", made("table.confusion", made("thead", made("tr", corner, ...head)), made("tbody", ...rows)))];
  }

  function overview() {
    const legend = classes.map((c) => [dot(c), name(label(c), 40)]);
    legend.push([made("span.dot.support"), "support"]);
    if (n_wrong) legend.push([made("span.dot.error"), "wrong: click to see why"]);
    const map_card = made("div.card", made("h5", "Support and queries in the plane of the logits"), map(), list("ul.legend", legend));
    return made("div.overview", map_card, made("div.card.others", ...methods(), ...confusion()));
  }

  function classCard(own, c) {
    const right = fact(`${counts[c][c]} of ${asked(c)} queries right`);
    const others = classes.filter((other) => other !== c && counts[c][other]).sort((a, b) => counts[c][b] - counts[c][a]);
    others.forEach((other, i) => right.append(i ? ", " : "; taken for ", name(label(other), 60), ` ${counts[c][other]}×`));
    const bars = list("ol.bars", own.lenders.map(([b, weight]) =>
      [name(data.base[b], Infinity, "bdi.name"), bar(weight / largest, colour(c)), made("span.value", small(weight))]));
    const more = [made("span.name", `${own.others} more together`), made("span"), made("span.value", small(own.others_share))];
    if (own.others) bars.append(made("li.rest", ...more));
    return made("div.card", { "--colour": colour(c) }, made("h5", name(label(c))), fact("Support:"),
      list("ul.samples", own.rows.map((row) => sample(row))), right,
      made("div.strip", { "aria-hidden": "true" }, made("span", { "--share": percent(own.own_share) })),
      fact(`${percent(own.own_share, 0)} of the mean comes from its support; the rest is borrowed from`), bars);
  }

  function evidence(c, { examples, lenders }, chosen, right) {
    const samples = examples.map(([row, similarity, given]) => sample(row, made("span.fact", `${signed(given)}, ${cosine(similarity)}`)));
    const most = Math.max(...lenders.flatMap((lender) => [lender[1], lender[2]]), 1e-9);
    const head = [chosen, right].map((each) => made("th", { scope: "col" }, "lends to ", name(label(each), 24)));
    const rows = lenders.map(([b, toChosen, toRight, given]) => made("tr", made("th", { scope: "row" }, name(data.base[b])),
      ...[[toChosen, chosen], [toRight, right]].map(([weight, to]) => made("td", small(weight), bar(weight / most, colour(to)))),
      made("td.number", signed(given))));
    const table = made("table", made("thead", made("tr", made("th", { scope: "col" }, "base class"), ...head,
      made("th.number", { scope: "col" }, "contribution"))), made("tbody", ...rows));
    return made("div", made("h6", "Evidence for ", name(label(c), 60)),
      fact(examples.length ? "Support samples:" : "Support samples: none"), list("ul.samples", samples),
      lenders.length ? table : fact("Base classes: none"));
  }

  function mistake(wrong, i) {
    const [, , truth, chosen, row] = task.queries[wrong.query];
    const verdict = made("span", made("b", name(label(truth), 60)), ` (${percent(wrong.right_probability, 0)}) taken for `,
      made("b.taken", name(label(chosen), 60)), ` (${percent(wrong.chosen_probability, 0)})`);
    const [gap, own, lent, rest] = wrong.parts.map(signed);
    const why = made("div.why", made("div.near", made("h6", "Nearest examples"), nearest(wrong.query)),
      fact(`Gap ${gap}: support samples ${own}, lent means ${lent}, rest ${rest}.`),
      evidence(chosen, wrong.for_chosen, chosen, truth), evidence(truth, wrong.for_right, chosen, truth));
    const detail = made("details", { id: `${prefix}-query-${wrong.query}` }, made("summary", sample(row, verdict)), why);
    detail.open = !i;
    return detail;
  }

  function mistakes() {
    if (!n_wrong) return made("div.errors", made("h5", `All ${task.asked} queries are right.`));
    const details = task.wrong.map(mistake);
    const box = made("div.errors", made("h5", n_wrong === 1 ? "One query is wrong" : `${n_wrong} queries are wrong`),
      made("p.note", "The most confident mistakes first. The gap is the logit of the class chosen minus that of the right "
        + "class. Support samples of both classes contribute to it, and so do base classes through the means that they lend; positive "
        + "contributions are for the class chosen, negative ones for the right class. The rest is other classes, covariances and "
        + "intercepts. Similarity is the cosine between the query and the sample."), made("div.list", ...details));
    if (n_wrong > details.length) box.append(made("p.note", `${n_wrong - details.length} more are left out of this file.`));
    return box;
  }

  function rightQueries() {
    const right = task.queries.map((query, i) => [...query, i]).filter(([, , truth, chosen]) => truth === chosen);
    const items = right.map(([, , c, , row, query]) => made("li", { id: `${prefix}-query-${query}`, tabindex: "-1" },
      sample(row, made("span.fact", dot(c), name(label(c), 60), ", right")), nearest(query)));
    const title = made("summary", right.length === 1 ? "One query is right" : `${right.length} queries are right`);
    return right.length ? [made("details.rights", title, made("p.note", "Each with its nearest examples."), made("ul.right", ...items))] : [];
  }

  const numbered = Object.values(data.inputs.rows).every(([id]) => id === null);
  const rows = numbered ? ` Rows are those of the novel samples of ${data.data}, counted from 0.` : "";
  const recorded = task.methods[data.methods.indexOf(data.method)];
  return [
    ...(Math.abs(recorded - task.accuracy) > 1e-4 ? [made("p.note", `The run recorded ${percent(recorded)}: random draws of the method differ here.`)] : []),
    overview(), made("div.classes", ...task.classes.map(classCard)),
    made("p.note", `Bars of base classes are relative to the largest weight in this task, ${small(largest)}.${rows}`),
    mistakes(), ...rightQueries(),
  ];
}

// The controls that choose a task, and the task.
function explorer(root) {
  const data = JSON.parse(document.getElementById(root.dataset.from).textContent);
  const select = (options) => made("select", ...options.map(([value, text]) => made("option", { value }, text)));
  const button = (text, attributes, act) => {
    const element = made("button", { type: "button", ...attributes }, text);
    element.addEventListener("click", act);
    return element;
  };
  const shots = select(data.settings.map((setting, i) => [i, shotsInWords(setting.shots)]));
  const choice = select([]);
  const previous = button("‹ Previous", { "aria-keyshortcuts": "ArrowLeft" }, () => show(-1));
  const next = button("Next ›", { "aria-keyshortcuts": "ArrowRight" }, () => show(1));
  const jumps = ["Worst", "Median", "Best"].map((which, i) => button(which, { "data-jump": which.toLowerCase() }, () => jump(i / 2)));
  const labels = [["Shots", shots], ["Task", choice]].slice(data.settings.length > 1 ? 0 : 1);
  const spoken = made("p.unseen", { role: "status", "aria-live": "polite" });
  const place = made("div.task", { tabindex: "-1" });
  root.append(made("div.controls", { role: "group", "aria-label": "Choose a task" },
    ...labels.map(([text, element]) => made("label", text, element)), made("div.group", previous, next), made("div.group", ...jumps)), spoken, place);

  const setting = () => data.settings[Number(shots.value)];
  const sorted = () => setting().tasks.slice().sort((a, b) => a.accuracy - b.accuracy || a.index - b.index);

  // The task chosen, and the one before or after it if asked.
  function show(by = 0) {
    const tasks = sorted();
    const at = tasks.findIndex((task) => String(task.index) === choice.value) + by, task = tasks[at];
    if (!task) return;
    choice.value = String(task.index);
    // Not "disabled": a button that is would swallow the arrow keys while it has the focus.
    previous.setAttribute("aria-disabled", String(at <= 0));
    next.setAttribute("aria-disabled", String(at >= tasks.length - 1));
    const held = place.contains(document.activeElement);
    spoken.textContent = `Task ${task.index}, ${shotsInWords(setting().shots)}: ${task.right} of ${task.asked} queries right, ${percent(task.accuracy)}`;
    place.replaceChildren(made("h4", spoken.textContent), ...taskParts(data, task, root.id));
    if (held) place.focus({ preventScroll: true });
  }

  function choose(index) {
    choice.replaceChildren(...sorted().map((task) => made("option", { value: task.index },
      `${task.index} — ${percent(task.accuracy)}, ${task.group}`)));
    choice.value = String(index);
    show();
  }

  // To the task at this share of all, from the worst.
  function jump(share) {
    const tasks = sorted();
    choose(tasks[Math.floor(share * (tasks.length - 1))].index);
  }

  choice.addEventListener("change", () => show());
  shots.addEventListener("change", () => jump(0));
  root.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.target.tagName === "SELECT") return;
    event.preventDefault();
    show(by);
  });
  jump(0);
}

window.addEventListener("hashchange", openTarget);
window.addEventListener("beforeprint", () => document.querySelectorAll(".experiment").forEach((e) => { e.open = true; }));
openTarget();
document.querySelectorAll("table.sortable").forEach(sortable);
document.querySelectorAll(".explorer").forEach(explorer);
