"use strict";
// The live page: it requests the state every second and the charts every few seconds. Text from the
// web is inserted as text, never as HTML, and only http and https URLs become links.

const POLL = 1200; // milliseconds between requests for the state
const FIGURES = 3000; // the same for the charts
const KEPT = 60; // recent pages in the list
const FOUND = 20; // relevant pages in an answer, as in view.py
const PLACES = {
  harvest: "curves", topics: "curves", relevant_domains: "curves", frontier: "curves", speed: "curves",
  errors: "totals", memory: "totals",
  tree: "wide", outcomes: "totals", domains: "totals", loss: "totals",
};
const SECTIONS = { dependence: "learned", links: "words" }; // of the charts whose names begin so
const narrow = matchMedia("(max-width: 560px)"); // as in page.css
const byId = (id) => document.getElementById(id);
let step = -1;
let drawn = -1;
let charts = [];
let held = [];
let status = "";
let end = null; // why the crawl ended and the files it left, once it has
let asking = Promise.resolve();

// The token of the first visit is kept in this tab only, not in a cookie or in the address.
const given = new URL(location.href).searchParams.get("token");
if (given) {
  sessionStorage.setItem("token", given);
  history.replaceState(null, "", "/");
}
const token = sessionStorage.getItem("token") || "";

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function link(url, text) {
  const made = element("a", "", text || url);
  let scheme = "";
  try { scheme = new URL(url).protocol; } catch { /* shown without a link */ }
  if (scheme === "http:" || scheme === "https:") {
    made.href = url;
    made.target = "_blank";
    made.rel = "noopener noreferrer";
  }
  return made;
}

async function ask(path, body) {
  const options = { headers: { "X-Tres-Token": token }, cache: "no-store" };
  if (body) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  const response = await fetch(path, options);
  if (response.status === 204) return null;
  if (response.status === 403) throw new Error("closed");
  if (response.status === 410) throw new Error("ended");
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

// Whether the server has stopped, or is stopping.
const isEnd = (error) => error instanceof TypeError || error.message === "ended";

function notice(text) {
  byId("notice").textContent = text;
  byId("notice").hidden = !text;
}

// Numbers and times

const whole = (number) => Math.round(number).toLocaleString("en");
const percent = (share) => `${(100 * share).toFixed(1)} %`;

function duration(seconds) {
  const all = Math.max(0, Math.round(seconds));
  const [hours, minutes] = [Math.floor(all / 3600), Math.floor(all / 60) % 60];
  if (hours) return `${hours} h ${minutes} min`;
  return minutes ? `${minutes} min ${all % 60} s` : `${all} s`;
}

// Numbers at the top

function card(name, value, more) {
  const cards = byId("cards");
  let made = cards.querySelector(`[data-name="${name}"]`);
  if (!made) {
    made = element("div", "card");
    made.dataset.name = name;
    made.append(element("div", "name", name), element("div", "value"), element("div", "more"));
    cards.append(made);
  }
  made.children[1].textContent = value;
  made.children[2].textContent = more;
}

function runningState(state) {
  if (state.offline) return "network gone";
  if (!state.opens_at) return "running";
  const time = new Date(1000 * state.opens_at).toISOString().slice(11, 16);
  return `all sites are closed until ${time} UTC`;
}

function showState(state) {
  status = state.status;
  document.title = `${whole(state.pages)} pages, ${percent(state.harvest)} – TRES ${state.topic}`;
  byId("topic").textContent = `${state.topic} · ${state.policy}`;
  byId("status").textContent = status === "running" ? runningState(state) : status;
  byId("status").className = `pill ${status}`;
  const left = state.left === null || status !== "running" ? "" : `, ${duration(state.left)} left`;
  byId("timing").textContent = `${duration(state.elapsed)}${left}`;
  byId("warnings").textContent = state.warnings.join(". ");
  byId("warnings").hidden = !state.warnings.length;
  byId("progress").hidden = !state.limit;
  const share = state.limit ? Math.min(1, state.pages / state.limit) : 0;
  byId("progress").firstElementChild.style.width = `${100 * share}%`;
  const target = state.limit ? `of ${whole(state.limit)}, ${percent(share)}` : "until links run out";
  card("Pages", whole(state.pages), target);
  card("Harvest rate", percent(state.harvest), `${whole(state.relevant)} relevant pages`);
  card("Relevant domains", whole(state.domains), `MAX: ${state.max || "none"}`);
  card("Frontier", whole(state.frontier), "waiting links");
  if (state.reach) {
    const [expected, low, high] = state.reach.map(whole);
    card("Left in reach", expected, `relevant pages, ${low} to ${high}`);
  }
  if (state.leaves !== null) card("Leaves", whole(state.leaves), state.phase || "");
  const rate = status === "paused" || state.offline || state.opens_at ? "–" : state.rate.toFixed(1);
  card("Pages per second", rate, `${whole(state.under_way)} under way`);
  card("Failed fetches", whole(state.failures), "not counted as pages");
  if (state.shards) showShards(state.shards);
  showHolder(state.holder);
  byId("pause").textContent = status === "paused" ? "Resume" : "Pause";
  for (const button of document.querySelectorAll("header button, form button, #distrust")) {
    button.disabled = status === "ending";
  }
  byId("tab-asked").hidden = !state.asked && byId("pane-asked").hidden;
  byId("tab-asked").textContent = `Questions (${whole(state.asked)})`;
  byId("max-value").placeholder = state.limit ? "none, 10 or 5_2" : "none or 10";
  if (state.shards) byId("max-value").placeholder = "none or 10";
}

// The site or body that gave most of the last pages

function showHolder(holder) {
  byId("holder").hidden = !holder;
  if (!holder) return;
  byId("holder").className = holder.reason ? "" : "warning";
  byId("holder").firstElementChild.textContent = holder.said;
  byId("distrust").value = holder.site;
}

// Shards of a crawl in several processes

const SHARD = [ // heading, and the text of a cell
  ["shard", (row) => row.shard],
  ["state", (row) => row.state],
  ["pages", (row) => whole(row.pages)],
  ["harvest rate", (row) => percent(row.harvest)],
  ["domains", (row) => whole(row.domains)],
  ["frontier", (row) => whole(row.frontier)],
  ["Q", (row) => row.q.toFixed(2)],
  ["failed", (row) => whole(row.failures)],
  ["outbox", (row) => whole(row.outbox)],
  ["last report", (row) => (row.age === null ? "" : `${row.age.toFixed(1)} s ago`)],
];

function showShards(rows) {
  byId("shards").hidden = false;
  const head = byId("shards").querySelector("thead");
  if (!head.rows.length) {
    head.insertRow().append(...SHARD.map(([name]) => element("th", "", name)));
  }
  byId("shards").querySelector("tbody").replaceChildren(...rows.map((row) => {
    const made = element("tr", row.state.replaceAll(" ", "-"));
    made.append(...SHARD.map(([, text], place) => {
      const known = place < 2 || row.pages !== undefined; // it has not reported yet
      return element("td", "", known ? String(text(row)) : "–");
    }));
    return made;
  }));
}

// Recent pages

const FAILURES = { soft_404: "not found", robots: "robots.txt", not_html: "no HTML",
  wall_challenge: "asks for a human", wall_consent: "asks for consent", wall_login: "login",
  wall_parked: "parked domain", wall_scripts: "needs JavaScript" };

const KINDS = {
  greedy: "highest Q", uncertain: "little explored", new_domain: "new domain",
  explored: "exploration", seed: "seed",
};

function entry(page) {
  const item = element("li");
  const head = element("button", "head");
  head.type = "button";
  head.setAttribute("aria-expanded", "false");
  const isPage = ["relevant", "irrelevant", "copy"].includes(page.outcome);
  const outcome = FAILURES[page.outcome] || page.outcome.replaceAll("_", " ");
  head.append(
    element("span", `mark ${isPage ? page.outcome : "failure"}`, outcome),
    element("span", "title", page.title || page.anchor || page.url),
    element("span", "domain", page.domain),
  );
  head.addEventListener("click", () => toggle(item, head, page));
  item.dataset.step = page.step;
  const brief = [page.q === null ? "" : `Q ${page.q.toFixed(2)}`, KINDS[page.chosen] || ""];
  item.append(head, element("p", "why", brief.filter(Boolean).join(" · ")));
  return item;
}

async function toggle(item, head, page) {
  const open = item.querySelector(".detail");
  head.setAttribute("aria-expanded", String(!open));
  if (open) {
    open.remove();
    showRecent([]);
    return;
  }
  const detail = element("div", "detail");
  item.append(detail);
  try {
    showDetail(detail, page, await ask(`page?step=${page.step}`));
  } catch (error) {
    detail.textContent = `Not available: ${error.message}`;
  }
}

function showDetail(detail, page, found) {
  const about = element("div");
  if (["relevant", "irrelevant", "copy"].includes(page.outcome)) about.append(buttons(page));
  if (page.text) about.append(element("p", "", page.text));
  about.append(element("p", "", page.why), link(page.url));
  if (page.anchor) about.append(element("div", "", `Anchor text: “${page.anchor}”`));
  if (page.probability !== null) {
    const topics = Object.entries(page.scores).map(([topic, p]) => `, ${topic} ${percent(p)}`);
    about.append(element("div", "", `P(relevant) of the page: ${percent(page.probability)}${topics.join("")}`));
  }
  detail.append(about);
  if (!found) return;
  const table = element("table");
  for (const { name, meaning, value } of found.features) {
    const row = table.insertRow();
    row.title = meaning;
    const meter = element("meter");
    meter.value = value;
    row.insertCell().textContent = name;
    row.insertCell().append(meter);
    row.insertCell().textContent = value.toFixed(2);
  }
  list(detail, "What the link says, and what that adds to the logit of its P(relevant)",
    found.link.map(({ text, adds }) => [`${adds > 0 ? "+" : "\u2212"}${Math.abs(adds).toFixed(2)}  `, text]));
  const features = element("div");
  features.append(element("h3", "", "Features of the link when it was chosen"), table);
  detail.append(features);
  const rivals = found.rivals.map((rival) => [
    `Q ${rival.q_value.toFixed(3)}  `, link(rival.url, rival.anchor || rival.url),
  ]);
  list(detail, "Rivals: the best other links at that step, one a leaf", rivals);
  list(detail, "Path from the seed", found.trail.map((before) => [
    link(before.url, before.title || before.url),
  ]));
}

function list(detail, title, rows) {
  if (!rows.length) return;
  const made = element("ul");
  for (const row of rows) {
    const item = element("li");
    item.append(...row);
    made.append(item);
  }
  const block = element("div");
  block.append(element("h3", "", title), made);
  detail.append(block);
}

function showRecent(pages) { // new pages wait while a page is open, so that the list does not move
  held = [...pages.map(entry), ...held].slice(0, KEPT);
  const recent = byId("recent");
  const isRead = recent.querySelector(".detail") !== null;
  byId("held").textContent = isRead && held.length ? `${held.length} newer pages are waiting.` : "";
  if (isRead) return;
  recent.prepend(...held);
  held = [];
  while (recent.children.length > KEPT) recent.lastElementChild.remove();
}

// Answers, and the other tabs

function buttons(page) {
  const made = element("div", "answer", "Relevant to the topic?");
  for (const [word, is] of [["yes", true], ["no", false]]) {
    const button = element("button", "", word);
    button.type = "button";
    button.setAttribute("aria-pressed", String(page.answer === is));
    button.addEventListener("click", async () => {
      if (!await steer(word, page.url, "answered")) return;
      page.answer = is;
      for (const each of made.querySelectorAll("button")) {
        each.setAttribute("aria-pressed", String(each === button));
      }
    });
    made.append(button);
  }
  return made;
}

async function showRelevant(isMore) {
  const list = byId("relevant");
  const last = isMore ? list.lastElementChild.dataset.step : -1;
  const words = byId("sought").value;
  try {
    const { pages } = await ask(`relevant?step=${last}&words=${encodeURIComponent(words)}`);
    if (!isMore) list.replaceChildren();
    for (const page of pages) {
      const item = entry(page);
      item.querySelector(".head").after(element("p", "text", page.text));
      list.append(item);
    }
    byId("found").textContent = list.children.length
      ? "Newest first. Click one to see why it was fetched, and to answer." : "None found.";
    byId("more").hidden = pages.length < FOUND;
  } catch (error) {
    byId("found").textContent = isEnd(error) ? "The crawl does not answer." : error.message;
  }
}

async function showAsked() {
  if (byId("pane-asked").hidden) return;
  const { questions } = await ask("questions");
  const shown = [...byId("asked").children].map((item) => item.dataset.url);
  if (questions.every(({ url }) => shown.includes(url)) && shown.length === questions.length) return;
  byId("asked").replaceChildren(...questions.map((page) => {
    const item = element("li");
    item.dataset.url = page.url;
    item.append(
      link(page.url, page.title || page.url), buttons(page), element("p", "text", page.text),
      element("p", "note", `Asked as it is ${page.why}: P(relevant) ${percent(page.probability)}`),
    );
    return item;
  }));
}

function showTab(name) {
  for (const each of ["recent", "relevant", "asked"]) {
    byId(`pane-${each}`).hidden = each !== name;
    byId(`tab-${each}`).setAttribute("aria-selected", String(each === name));
  }
  say("", "", "answered");
  if (name === "relevant") showRelevant(false);
  if (name === "asked") inTurn(pollAsked);
}

// Charts

function themed(chart) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const layout = structuredClone(chart.figure.layout);
  const axis = { gridcolor: colour("--grid"), linecolor: colour("--line") };
  layout.xaxis = { ...axis, ...layout.xaxis };
  layout.yaxis = { ...axis, ...layout.yaxis };
  return {
    ...layout,
    uirevision: chart.name,
    autosize: true,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colour("--text"), family: "system-ui, sans-serif", size: 12 },
    hoverlabel: {
      bgcolor: colour("--panel"), bordercolor: colour("--line"), font: { color: colour("--text") },
    },
  };
}

// On a narrow screen the tree has fewer levels, so that its labels can be read.
function fitted(chart) {
  const { data } = chart.figure;
  if (chart.name !== "tree" || !narrow.matches) return data;
  return data.map((trace) => ({
    ...trace, maxdepth: 3, marker: { ...trace.marker, showscale: false },
  }));
}

function draw(chart) {
  const group = chart.name.split("_")[0];
  let figure = document.querySelector(`[data-figure="${chart.name}"]`);
  if (!figure) {
    figure = element("article", "figure");
    figure.dataset.figure = chart.name;
    const title = element("h2", "", chart.title);
    const note = element("p", "note", chart.note);
    figure.append(title, note, element("div", "plot"));
    byId(group in SECTIONS ? group : PLACES[chart.name] || "totals").append(figure);
    if (group in SECTIONS) byId(SECTIONS[group]).hidden = false;
  }
  Plotly.react(figure.lastElementChild, fitted(chart), themed(chart), {
    displayModeBar: false, responsive: true,
  });
}

function drawAll() {
  for (const chart of charts) draw(chart);
}

// Requests, one after another

async function poll() {
  try {
    const state = await ask(`state?step=${step}`);
    notice("");
    showRecent(state.recent);
    step = state.step;
    showState(state);
    if (!state.end) return;
    end = state.end;
    lost(new Error("ended"));
  } catch (error) {
    lost(error);
  }
}

async function pollFigures() {
  try {
    const found = await ask(`figures?step=${drawn}`);
    if (!found) return;
    ({ charts, step: drawn } = found);
    drawAll();
  } catch (error) {
    if (!isEnd(error)) console.warn(error.message);
  }
}

async function pollAsked() {
  try {
    await showAsked();
  } catch (error) {
    if (!isEnd(error)) console.warn(error.message);
  }
}

function lost(error) {
  byId("status").className = "pill lost";
  if (error.message === "closed") {
    byId("status").textContent = "closed";
    notice("This tab has no token. Open the address in the crawl's log.");
  } else if (isEnd(error)) {
    byId("status").textContent = "ended";
    byId("timing").textContent = "";
    notice(end
      ? `The crawl has ended: ${end.reason}. The numbers stay here. It wrote ${end.files.join(", ")}.`
      : "The crawl has ended, or its machine cannot be reached. The last numbers stay here. "
      + "The report lies beside the crawl's output.");
  } else {
    notice(error.message);
  }
  for (const button of document.querySelectorAll("header button, form button, #distrust")) {
    button.disabled = true;
  }
}

// Two requests at a time would return the same pages twice.
const inTurn = (question) => (asking = asking.then(question));

function repeat(question, every) {
  const again = async () => {
    if (!document.hidden) await inTurn(question);
    setTimeout(again, every);
  };
  again();
}

function say(text, className = "", place = "said") {
  byId(place).className = className;
  byId(place).textContent = text;
}

async function steer(wish, value, place = "said") {
  say("", "", place);
  try {
    const answer = await ask("control", { do: wish, value });
    say(answer.said, "", place);
    await inTurn(poll);
    return true;
  } catch (error) {
    say(isEnd(error) ? "The crawl does not answer." : error.message, "error", place);
    return false;
  }
}

byId("pause").addEventListener("click", () => steer(status === "paused" ? "resume" : "pause"));
// A second click within 4 seconds confirms.
function confirmed(button) {
  if (button.dataset.sure) return true;
  const text = button.textContent;
  button.dataset.sure = "yes";
  button.textContent = `${text}: sure?`;
  setTimeout(() => { delete button.dataset.sure; button.textContent = text; }, 4000);
  return false;
}
byId("stop").addEventListener("click", (event) => {
  if (confirmed(event.currentTarget)) steer("stop");
});
byId("distrust").addEventListener("click", (event) => {
  if (confirmed(event.currentTarget)) steer("distrust", event.currentTarget.value);
});
for (const wish of ["seed", "max"]) {
  byId(wish).addEventListener("submit", async (event) => {
    event.preventDefault();
    const field = event.target.elements.value;
    if (await steer(wish, field.value)) field.value = "";
  });
  byId(wish).addEventListener("input", () => say("")); // an old answer is not about the new value
}
byId("find").addEventListener("submit", (event) => {
  event.preventDefault();
  showRelevant(false);
});
byId("more").addEventListener("click", () => showRelevant(true));
for (const name of ["recent", "relevant", "asked"]) {
  byId(`tab-${name}`).addEventListener("click", () => showTab(name));
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
narrow.addEventListener("change", drawAll);
document.addEventListener("visibilitychange", () => { if (!document.hidden) inTurn(poll); });
repeat(poll, POLL);
repeat(pollFigures, FIGURES);
repeat(pollAsked, FIGURES);
