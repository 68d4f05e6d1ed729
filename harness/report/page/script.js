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

// A definition that is jumped to shows which one it is; what is folded opens when it is linked to.
addEventListener("hashchange", () => document.querySelector(location.hash)?.closest("details")?.setAttribute("open", ""));

// Long tables begin folded, on a phone all but short ones, in print all are open.
const tables = [...document.querySelectorAll("details")];
const narrow = matchMedia("(max-width: 600px)");
for (const table of tables) table.open = table.querySelectorAll("tr").length <= (narrow.matches ? 6 : 16);
let before = [];
addEventListener("beforeprint", () => { before = tables.map((table) => table.open); for (const table of tables) table.open = true; });
addEventListener("afterprint", () => tables.forEach((table, place) => { table.open = before[place]; }));

draw();
