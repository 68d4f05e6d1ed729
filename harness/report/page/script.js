// Draws the plots that stand as Vega-Lite in #plots. Their colours are CSS variables, so that light, dark and print need nothing more.

const { config, plots } = JSON.parse(document.getElementById("plots").textContent);
const places = [...document.querySelectorAll("[data-plot]")];

// Below each other, plots share one width: a plot is drawn as wide as its place, and again when that changes.
async function draw() {
  for (const place of places) {
    place.replaceChildren();
    await vegaEmbed(place, plots[place.dataset.plot], { config, mode: "vega-lite", renderer: "svg", actions: false });
  }
  document.body.dataset.drawn = places.length;
}

// A definition that is jumped to shows which one it is, and leads back; what is folded opens when it is linked to.
const back = Object.assign(document.createElement("a"), { className: "back", textContent: "\u21a9 back", href: "#" });
back.addEventListener("click", (event) => { event.preventDefault(); history.back(); });
addEventListener("hashchange", () => {
  const place = location.hash.length > 1 && document.querySelector(location.hash);
  if (!place) return back.remove();
  place.closest("details")?.setAttribute("open", "");
  if (place.tagName === "DT") place.nextElementSibling.append(back);
  if (place.tagName === "LI") place.append(back);
});
// A pointer that rests on a word is told its definition there and then.
for (const word of document.querySelectorAll("a.term")) {
  const place = document.querySelector(word.hash);
  const meaning = place?.tagName === "DT" ? place.nextElementSibling : place;
  word.title = [...(meaning?.childNodes ?? [])].map((node) => node.textContent).join(" ");
}

// What is long begins folded, on a phone all but the short, and what need not be read; in print all is open.
const tables = [...document.querySelectorAll("details")];
const narrow = matchMedia("(max-width: 600px)");
for (const table of tables) table.open = !table.classList.contains("aside") && table.querySelectorAll("tr, p").length <= (narrow.matches ? 6 : 16);
let before = [];
addEventListener("beforeprint", () => { before = tables.map((table) => table.open); for (const table of tables) table.open = true; });
addEventListener("afterprint", () => tables.forEach((table, place) => { table.open = before[place]; }));

draw();
