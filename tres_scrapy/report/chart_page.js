"use strict";
// Draws the charts in the colours of the page, light or dark.
const figures = JSON.parse(document.getElementById("figures").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const options = {displayModeBar: false};

function themed(layout) {
  const style = getComputedStyle(document.body);
  const line = dark.matches ? "rgba(255,255,255,.14)" : "rgba(0,0,0,.1)";
  const axis = {gridcolor: line, linecolor: line, zerolinecolor: line};
  const axes = {xaxis: {}, yaxis: {}, ...layout};
  const names = Object.keys(axes).filter((name) => /^[xy]axis\d*$/.test(name));
  return {
    ...layout,
    font: {family: style.fontFamily, size: 13, color: style.color},
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    ...Object.fromEntries(names.map((name) => [name, {...axis, ...axes[name]}])),
    hoverlabel: {bgcolor: dark.matches ? "#2b2f36" : "#ffffff", font: {color: style.color}},
  };
}

// On a narrow screen the tree shows fewer levels, so that its words can be read.
function fitted(trace, width) {
  if (trace.type !== "icicle" || width > 640) return trace;
  return {...trace, maxdepth: 3, marker: {...trace.marker, showscale: false}};
}

// All charts are drawn at once: a print or a picture of the page shows those below too.
const places = [...document.querySelectorAll("[data-figure]")];
const widths = new Map();

function draw(place) {
  const {data, layout} = figures[place.dataset.figure];
  widths.set(place, place.clientWidth);
  const traces = data.map((trace) => fitted(trace, place.clientWidth));
  Plotly.react(place, traces, {...themed(layout), width: place.clientWidth}, options);
}

const resized = new ResizeObserver((entries) => {
  for (const {target} of entries) if (target.clientWidth !== widths.get(target)) draw(target);
});
for (const place of places) {
  draw(place);
  resized.observe(place);
}
dark.addEventListener("change", () => places.forEach(draw));
window.addEventListener("beforeprint", () => {
  document.body.classList.add("paper"); // charts get the width that they have on paper
  places.forEach(draw);
});
window.addEventListener("afterprint", () => document.body.classList.remove("paper"));

// The search in the list of a page: each item must contain all the words.
const find = document.getElementById("find");
find?.addEventListener("input", () => {
  const words = find.value.toLowerCase().split(/\s+/);
  const items = [...document.querySelectorAll(".findings > li")];
  for (const item of items) {
    const text = item.textContent.toLowerCase();
    item.hidden = !words.every((word) => text.includes(word));
  }
  const shown = items.filter((item) => !item.hidden).length;
  document.getElementById("found").textContent = `${shown} of ${items.length}`;
});
