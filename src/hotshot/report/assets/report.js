"use strict";
// Text of users goes into the page by textContent alone; nothing here parses HTML.

function element(tag, options, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(options || {})) {
    if (key === "text") made.textContent = value;
    else if (key === "class") made.className = value;
    else if (key.startsWith("--")) made.style.setProperty(key, value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function svgElement(tag, attributes, title) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (title) {
    const titled = document.createElementNS("http://www.w3.org/2000/svg", "title");
    titled.textContent = title;
    made.append(titled);
  }
  return made;
}


// Names break where people read a gap, as in names_of_classes, and anywhere once they are long.
function name(text, kind) {
  const made = element("bdi", { class: kind || "" });
  const pieces = text.match(/[^\s_/-]{1,20}[_/-]*\s*|[_/-]+\s*|\s+/gu) || [];
  pieces.forEach((piece, i) => made.append(...(i ? [document.createElement("wbr")] : []), piece));
  return made;
}

const SHOWN_ERRORS = 8;
const percent = (share, digits) => (100 * share).toFixed(digits === undefined ? 1 : digits) + "%";
const small = (share) => (share > 0 && share < 0.0005 ? "<0.1%" : percent(share));
// Neighbours that can be told apart from each other and from the ring around mistakes.
const PALETTE = [0, 4, 2, 3, 5, 7, 1, 6];
const colour = (c) => `var(--c${PALETTE[c % 8]})`;

function short(text, most) {
  const characters = Array.from(text);
  if (characters.length <= most) return text;
  const half = Math.floor((most - 1) / 2);
  return characters.slice(0, half).join("") + "…" + characters.slice(-half).join("");
}

function bar(share, own) {
  const options = { "--share": percent(Math.min(1, Math.max(0, share)), 2) };
  if (own) options["--colour"] = own;
  return element("span", { class: "track", "aria-hidden": "true" }, element("span", options));
}

/* Tables in the order of a column */

function sortable(table) {
  const headings = Array.from(table.tHead.rows[0].cells);
  headings.forEach((heading, column) => {
    const numeric = heading.classList.contains("number");
    heading.querySelector("button").addEventListener("click", () => {
      const before = heading.getAttribute("aria-sort");
      const first = numeric ? "descending" : "ascending";
      const other = numeric ? "ascending" : "descending";
      const order = before === first ? other : first;
      headings.forEach((h) => h.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const value = (row) => {
        const found = row.cells[column].dataset.value;
        return numeric && isNaN(found) ? undefined : found;
      };
      const compare = (a, b) => (numeric ? Number(a) - Number(b) : a.localeCompare(b, undefined, { numeric: true }));
      const rows = Array.from(table.tBodies[0].rows);
      rows.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        // Empty cells stay last, whatever the order.
        if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
        return sign * compare(x, y);
      });
      table.tBodies[0].append(...rows);
    });
  });
}

/* Tables that are wider than the window, and details that a link or the printer needs open */

function hintAtScrolling(scroll) {
  const hint = scroll.parentElement.querySelector(".hint");
  const show = () => {
    const more = scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 2;
    scroll.classList.toggle("more", more);
    if (hint) hint.hidden = scroll.scrollWidth <= scroll.clientWidth + 2;
  };
  scroll.addEventListener("scroll", show, { passive: true });
  new ResizeObserver(show).observe(scroll);
}

function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const folded = target && target.closest("details");
  if (folded && !folded.open) {
    folded.open = true;
    target.scrollIntoView();
  }
}

/* A single task */

// Texts and thumbnails of all tasks on the page, which say by number which is theirs.
const INPUTS = JSON.parse(document.getElementById("inputs").textContent);

// The id of a sample, its text and its thumbnail, where they are known.
function known(data, row) {
  const [id, text, image] = (data.inputs.rows[row] || []).map((value, i) => (i && value !== null ? INPUTS[value] : value));
  return { id: id || `row ${row}`, text, image };
}

// What a sample is, in a few words.
function described(data, row) {
  const { id, text } = known(data, row);
  return text ? `${short(text, 90)} (${id})` : id;
}

// A sample as a reader can judge it: thumbnail, text and id, and under them what else there is to say.
function sample(data, row, ...more) {
  const { id, text, image } = known(data, row);
  const words = element("span", { class: "words" });
  if (text) words.append(element("bdi", { class: "said", title: text, text: short(text, 140) }));
  words.append(name(id, text || image ? "id" : ""), ...more);
  const box = element("span", { class: "sample" }, words);
  if (image) box.prepend(element("img", { src: image, alt: text || id, title: id }));
  return box;
}

// The support samples most similar to a query.
function nearest(data, task, query) {
  const list = element("ul", { class: "samples" });
  for (const [s, similarity] of task.nearest[query]) {
    const [, , c, row] = task.support[s];
    list.append(element("li", {}, sample(data, row, element("span", { class: "fact" },
      element("span", { class: "dot", "--colour": colour(c) }), name(short(data.classes[task.names[c]], 40)), `, ${cosine(similarity)}`))));
  }
  return list;
}

function map(data, task, open) {
  const [width, height, edge] = [200, 130, 8];
  const picture = svgElement("svg", { class: "map", viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": "Support samples and queries as the classifier sees them" });
  const x = (p) => edge + p[0] * (width - 2 * edge);
  const y = (p) => height - edge - p[1] * (height - 2 * edge);
  const label = (c) => data.classes[task.names[c]];
  const errors = [];
  task.queries.forEach((point, query) => {
    const [, , truth, chosen, row] = point;
    const wrong = truth !== chosen;
    const hint = `${described(data, row)}: ${label(truth)}` + (wrong ? `, taken for ${label(chosen)}` : "");
    const dot = svgElement("circle", { class: wrong ? "query error" : "query", cx: x(point), cy: y(point), r: wrong ? 2.6 : 2.1,
      style: `fill:${colour(truth)}`, "data-query": query }, hint);
    dot.addEventListener("click", () => open(query));
    if (wrong) errors.push(dot);
    else picture.append(dot);
  });
  picture.append(...errors);
  task.support.forEach((point) => {
    const [, , truth, row] = point;
    picture.append(svgElement("rect", { class: "support", x: x(point) - 2.8, y: y(point) - 2.8, width: 5.6, height: 5.6,
      transform: `rotate(45 ${x(point)} ${y(point)})`, style: `fill:${colour(truth)}` }, `${described(data, row)}: support of ${label(truth)}`));
  });
  return picture;
}

function overview(data, task, open) {
  const legend = element("ul", { class: "legend" });
  task.names.forEach((n, c) => legend.append(
    element("li", {}, element("span", { class: "dot", "--colour": colour(c) }), name(short(data.classes[n], 40)))));
  legend.append(element("li", {}, element("span", { class: "dot support" }), "support"));
  if (task.n_wrong) legend.append(element("li", {}, element("span", { class: "dot error" }), "wrong: click to see why"));
  const seen = element("div", { class: "card" }, element("h5", { text: "Support and queries in the plane of the logits" }),
    map(data, task, open), legend);
  const cards = element("div", { class: "overview" }, seen);
  if (task.methods) {
    const bars = element("ol", { class: "bars wide" });
    const order = data.methods.map((_, m) => m).filter((m) => task.methods[m] !== null).sort((a, b) => task.methods[b] - task.methods[a]);
    for (const m of order) {
      bars.append(element("li", {}, name(data.methods[m], data.methods[m] === data.method ? "name own" : "name"),
        bar(task.methods[m]), element("span", { class: "value", text: percent(task.methods[m]) })));
    }
    cards.append(element("div", { class: "card others" }, element("h5", { text: "Methods on this task" }), bars,
      element("p", { class: "fact", text: `Share of the ${task.asked} queries that were right, as recorded by the run.` })));
  }
  (cards.querySelector(".others") || seen).append(...confusion(data, task));
  return cards;
}

function confusion(data, task) {
  const n = task.names.length;
  if (n > 12) return [];
  const counts = task.names.map(() => new Array(n).fill(0));
  task.queries.forEach(([, , truth, chosen]) => { counts[truth][chosen] += 1; });
  const asked = Math.max(...task.classes.map((own) => own.asked));
  const label = (c) => data.classes[task.names[c]];
  const dot = (c) => element("span", { class: "dot", "--colour": colour(c), "aria-hidden": "true" });
  const head = element("tr", {}, element("td", {}, element("span", { class: "unseen", text: "right class" })));
  const body = element("tbody");
  counts.forEach((row, truth) => {
    head.append(element("th", { scope: "col", title: label(truth) }, dot(truth), element("span", { class: "unseen", text: label(truth) })));
    const line = element("tr", {}, element("th", { scope: "row" }, dot(truth), name(short(label(truth), 40))));
    row.forEach((count, chosen) => line.append(element("td", { class: truth === chosen ? "hit" : "miss",
      "--share": percent(count / asked, 0), text: count || "·" })));
    body.append(line);
  });
  return [element("h5", { class: "apart", text: "Confusion: right class in rows, answer in columns" }),
    element("div", { class: "narrow" }, element("table", { class: "confusion" }, element("thead", {}, head), body))];
}

function classCard(data, task, c, scale) {
  const own = task.classes[c];
  const label = (other) => data.classes[task.names[other]];
  const card = element("div", { class: "card", "--colour": colour(c) }, element("h5", {}, name(label(c))));
  card.append(element("p", { class: "fact", text: "Support:" }),
    element("ul", { class: "samples" }, ...own.rows.map((row) => element("li", {}, sample(data, row)))));
  const right = element("p", { class: "fact", text: `${own.right} of ${own.asked} queries right` });
  own.taken_for.forEach(([other, times], i) => right.append(i ? ", " : "; taken for ", name(short(label(other), 60)), ` ${times}×`));
  card.append(right);
  card.append(element("div", { class: "strip", "aria-hidden": "true" }, element("span", { "--share": percent(own.own_share, 1) })));
  card.append(element("p", { class: "fact", text: `${percent(own.own_share, 0)} of the mean comes from its support; the rest is borrowed from` }));
  const bars = element("ol", { class: "bars" });
  for (const [b, weight] of own.lenders) {
    bars.append(element("li", {}, name(data.base[b], "name"), bar(weight / scale, colour(c)),
      element("span", { class: "value", text: small(weight) })));
  }
  if (own.others) {
    bars.append(element("li", { class: "rest" }, element("span", { class: "name", text: `${own.others} more together` }),
      element("span", {}), element("span", { class: "value", text: small(own.others_share) })));
  }
  card.append(bars);
  return card;
}

const cosine = (similarity) => `similarity ${similarity.toFixed(2).replace("-", "−")}`;
const signed = (number) => (number < 0 ? "−" : "+") + Math.abs(number).toFixed(2);

function evidence(data, title, { examples, lenders }, chosen, right) {
  const box = element("div", {}, element("h6", {}, "Evidence for ", name(short(title, 60))));
  box.append(element("p", { class: "fact", text: examples.length ? "Support samples:" : "Support samples: none" }),
    element("ul", { class: "samples" }, ...examples.map(([row, similarity, given]) => element("li", {},
      sample(data, row, element("span", { class: "fact", text: `${signed(given)}, ${cosine(similarity)}` }))))));
  if (!lenders.length) {
    box.append(element("p", { class: "fact", text: "Base classes: none" }));
    return box;
  }
  const largest = Math.max(...lenders.flatMap((l) => [l[1], l[2]]), 1e-9);
  const head = element("tr", {}, element("th", { scope: "col", text: "base class" }),
    element("th", { scope: "col" }, "lends to ", name(short(chosen[0], 24))),
    element("th", { scope: "col" }, "lends to ", name(short(right[0], 24))),
    element("th", { scope: "col", class: "number", text: "contribution" }));
  const body = element("tbody");
  for (const [b, toChosen, toRight, given] of lenders) {
    body.append(element("tr", {}, element("th", { scope: "row" }, name(data.base[b])),
      element("td", {}, small(toChosen), bar(toChosen / largest, colour(chosen[1]))),
      element("td", {}, small(toRight), bar(toRight / largest, colour(right[1]))),
      element("td", { class: "number", text: signed(given) })));
  }
  box.append(element("table", {}, element("thead", {}, head), body));
  return box;
}

function errors(data, task, prefix) {
  const box = element("div", { class: "errors" });
  if (!task.n_wrong) {
    box.append(element("h5", { text: `All ${task.asked} queries are right.` }));
    return box;
  }
  box.append(element("h5", { text: task.n_wrong === 1 ? "One query is wrong" : `${task.n_wrong} queries are wrong` }));
  box.append(element("p", { class: "note", text: "The most confident mistakes first. The gap is the logit of the class chosen minus that of the right "
    + "class. Support samples of both classes contribute to it, and so do base classes through the means that they lend; positive "
    + "contributions are for the class chosen, negative ones for the right class. The rest is other classes, covariances and "
    + "intercepts. Similarity is the cosine between the query and the sample." }));
  const label = (c) => data.classes[task.names[c]];
  const list = element("div", { class: "list" });
  task.wrong.forEach((wrong, i) => {
    const [, , truth, chosen, row] = task.queries[wrong.query];
    const verdict = element("span", {}, element("b", {}, name(short(label(truth), 60))), ` (${percent(wrong.right_probability, 0)}) taken for `,
      element("b", { class: "taken" }, name(short(label(chosen), 60))), ` (${percent(wrong.chosen_probability, 0)})`);
    const heading = element("summary", {}, sample(data, row, verdict));
    const names = [[label(chosen), chosen], [label(truth), truth]];
    const [gap, own, lent, rest] = wrong.parts.map(signed);
    const why = element("div", { class: "why" },
      element("div", { class: "near" }, element("h6", { text: "Nearest examples" }), nearest(data, task, wrong.query)),
      element("p", { class: "fact", text: `Gap ${gap}: support samples ${own}, lent means ${lent}, rest ${rest}.` }),
      evidence(data, label(chosen), wrong.for_chosen, ...names),
      evidence(data, label(truth), wrong.for_right, ...names));
    const detail = element("details", { id: `${prefix}-query-${wrong.query}` }, heading, why);
    detail.hidden = i >= SHOWN_ERRORS;
    list.append(detail);
  });
  box.append(list);
  if (task.wrong.length > SHOWN_ERRORS) {
    const more = element("button", { type: "button", class: "more", text: `Show ${task.wrong.length - SHOWN_ERRORS} more` });
    more.addEventListener("click", () => {
      const hidden = [...list.children].filter((detail) => detail.hidden);
      hidden.forEach((detail) => { detail.hidden = false; });
      more.remove();
      hidden[0].querySelector("summary").focus();
    });
    box.append(more);
  }
  if (task.n_wrong > task.wrong.length) {
    box.append(element("p", { class: "note", text: `${task.n_wrong - task.wrong.length} more are left out of this file.` }));
  }
  return box;
}

function rightQueries(data, task, prefix) {
  const right = task.queries.map((_, query) => query).filter((query) => task.queries[query][2] === task.queries[query][3]);
  if (!right.length) return [];
  const list = element("ul", { class: "right" }, ...right.map((query) => {
    const [, , c, , row] = task.queries[query];
    return element("li", { id: `${prefix}-query-${query}`, tabindex: "-1" },
      sample(data, row, element("span", { class: "fact" }, element("span", { class: "dot", "--colour": colour(c) }),
        name(short(data.classes[task.names[c]], 60)), ", right")), nearest(data, task, query));
  }));
  return [element("details", { class: "rights" }, element("summary", { text: right.length === 1 ? "One query is right" : `${right.length} queries are right` }),
    element("p", { class: "note", text: "Each with its nearest examples." }), list)];
}

function explorer(root) {
  const data = JSON.parse(document.getElementById(root.dataset.from).textContent);
  const select = (text, options) => {
    const made = element("select");
    options.forEach(([value, label]) => made.append(element("option", { value, text: label })));
    return [element("label", {}, text, made), made];
  };
  const plural = (k) => `${k} shot${k === 1 ? "" : "s"}`;
  const [shotsLabel, shots] = select("Shots", data.settings.map((s, i) => [i, plural(s.shots)]));
  const [orderLabel, order] = select("Sort by", [["accuracy", "accuracy"], ["number", "number"]]);
  const [taskLabel, choice] = select("Task", []);
  const previous = element("button", { type: "button", text: "‹ Previous", "aria-keyshortcuts": "ArrowLeft" });
  const next = element("button", { type: "button", text: "Next ›", "aria-keyshortcuts": "ArrowRight" });
  const jumps = ["worst", "median", "best"].map((which) => element("button", { type: "button", text: which[0].toUpperCase() + which.slice(1), "data-jump": which }));
  const controls = element("div", { class: "controls", role: "group", "aria-label": "Choose a task" });
  if (data.settings.length > 1) controls.append(shotsLabel);
  controls.append(taskLabel, orderLabel, element("div", { class: "group" }, previous, next), element("div", { class: "group" }, ...jumps));
  const spoken = element("p", { class: "unseen", role: "status", "aria-live": "polite" });
  const place = element("div", { class: "task", tabindex: "-1" });
  root.append(controls, spoken, place);

  const byAccuracy = (tasks) => tasks.slice().sort((a, b) => a.accuracy - b.accuracy || a.index - b.index);
  const tasks = () => {
    const all = data.settings[Number(shots.value)].tasks;
    return order.value === "accuracy" ? byAccuracy(all) : all.slice().sort((a, b) => a.index - b.index);
  };
  const jump = (which) => {
    const all = byAccuracy(data.settings[Number(shots.value)].tasks);
    return all[{ worst: 0, median: Math.floor((all.length - 1) / 2), best: all.length - 1 }[which]];
  };

  function list(index) {
    choice.replaceChildren(...tasks().map((task) => element("option", { value: task.index,
      text: `${task.index} — ${percent(task.accuracy)}${task.group ? ", " + task.group : ""}` })));
    choice.value = String(index);
    show();
  }

  function show() {
    const all = tasks();
    const at = all.findIndex((task) => String(task.index) === choice.value);
    const task = all[at];
    // Not "disabled": a button that is would swallow the arrow keys while it has the focus.
    previous.setAttribute("aria-disabled", String(at <= 0));
    next.setAttribute("aria-disabled", String(at >= all.length - 1));
    const title = `Task ${task.index}, ${plural(data.settings[Number(shots.value)].shots)}: ${task.right} of ${task.asked} queries right, ${percent(task.accuracy)}`;
    const scale = Math.max(...task.classes.flatMap((own) => own.lenders.map((l) => l[1])), 1e-9);
    const open = (query) => {
      const detail = document.getElementById(`${root.id}-query-${query}`);
      if (!detail) return;
      detail.hidden = false;
      detail.closest("details").open = true;
      detail.scrollIntoView({ block: "center" });
      (detail.querySelector("summary") || detail).focus({ preventScroll: true });
    };
    const parts = [element("h4", { text: title })];
    if (task.recorded !== undefined && Math.abs(task.recorded - task.accuracy) > 1e-9) {
      parts.push(element("p", { class: "note", text: `The run recorded ${percent(task.recorded)}: random draws of the method differ here.` }));
    }
    parts.push(overview(data, task, open));
    parts.push(element("div", { class: "classes" }, ...task.classes.map((_, c) => classCard(data, task, c, scale))));
    const rows = Object.values(data.inputs.rows).some(([id]) => id !== null) ? "" : ` Rows are those of the novel samples of ${data.data}, counted from 0.`;
    parts.push(element("p", { class: "note", text: `Bars of base classes are relative to the largest weight in this task, ${small(scale)}.${rows}` }));
    parts.push(errors(data, task, root.id), ...rightQueries(data, task, root.id));
    const held = place.contains(document.activeElement);
    place.replaceChildren(...parts);
    if (held) place.focus({ preventScroll: true });
    const first = place.querySelector(".errors details");
    if (first) first.open = true;
    spoken.textContent = title;
  }

  function step(by) {
    const all = tasks();
    const at = all.findIndex((task) => String(task.index) === choice.value) + by;
    if (at < 0 || at >= all.length) return;
    choice.value = String(all[at].index);
    show();
  }

  choice.addEventListener("change", show);
  order.addEventListener("change", () => list(choice.value));
  shots.addEventListener("change", () => list(jump("worst").index));
  previous.addEventListener("click", () => step(-1));
  next.addEventListener("click", () => step(1));
  jumps.forEach((button) => button.addEventListener("click", () => list(jump(button.dataset.jump).index)));
  root.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.target.tagName === "SELECT") return;
    event.preventDefault();
    step(by);
  });
  list(jump("worst").index);
}

document.querySelectorAll(".scroll").forEach(hintAtScrolling);
window.addEventListener("hashchange", openTarget);
window.addEventListener("beforeprint", () => document.querySelectorAll(".experiment").forEach((e) => { e.open = true; }));
openTarget();
document.querySelectorAll("table.sortable").forEach(sortable);
document.querySelectorAll(".explorer").forEach(explorer);
