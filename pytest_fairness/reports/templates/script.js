// Filters of the list of checks. Without this script, the page shows all checks.
"use strict";
const form = document.querySelector("form.filters");
const items = [...document.querySelectorAll(".item")];
const open = () => {
  const item = document.querySelector(".item:has(:target)");
  if (item) item.open = true;
};
const filter = () => {
  const wanted = Object.fromEntries([...form.querySelectorAll("select")].map((each) => [each.name, each.value]));
  let shown = 0;
  for (const item of items) {
    item.hidden = Object.entries(wanted).some(
      ([name, value]) => value && !(item.dataset[name] || "").split(" ").includes(value));
    shown += !item.hidden;
  }
  form.querySelector("output").textContent = `${shown.toLocaleString("en")} of ${items.length.toLocaleString("en")} shown`;
};
if (form) {
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  // A browser may restore earlier choices.
  filter();
}
addEventListener("hashchange", open);
open();
