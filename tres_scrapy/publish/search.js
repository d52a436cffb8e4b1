const pages = JSON.parse(document.getElementById("index").textContent);
const words = pages.map((page) => page.join(" ").toLowerCase());
const box = document.getElementById("query");
const list = document.getElementById("found");
const count = document.getElementById("count");
const SHOWN = 100;

function result([title, url, site, lead]) {
  const entry = document.createElement("li");
  const link = document.createElement(url ? "a" : "span");
  if (url) {
    link.href = url;
    link.rel = "nofollow noopener noreferrer";
  }
  link.textContent = title;
  const text = document.createElement("p");
  text.textContent = `${site}: ${lead}`;
  entry.append(link, text);
  return entry;
}

function search() {
  const wanted = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = wanted.length
    ? pages.filter((_, i) => wanted.every((word) => words[i].includes(word)))
    : [];
  list.replaceChildren(...found.slice(0, SHOWN).map(result));
  const more = found.length > SHOWN ? `, the first ${SHOWN} of them here` : "";
  count.textContent = wanted.length ? `${found.length} ${found.length === 1 ? "page" : "pages"}${more}` : "";
}

document.getElementById("search").hidden = false;
document.getElementById("unscripted").hidden = true;
box.addEventListener("input", search);
