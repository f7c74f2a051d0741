// Finds the one thing that has a name and that a person sees and can use. Returns it, or says in words why there is none.
// Arguments: "press" or "fill"; its name; words of the row, section or dialog that it is in, if the name alone is not enough.
const [use, name, part] = arguments;
const kinds = {
  press: "a[href], button, summary, input[type=checkbox]",
  fill: "input:not([type=hidden], [type=checkbox]), textarea, select",
};
const parts = "tr, li, p, form, article, details, section, aside, nav, dialog";
const tidy = (text) => (text ?? "").replace(/\s+/g, " ").trim().toLowerCase();

// A label's own words, without its field and the remark beside them.
const wordsOf = (label) => {
  const copy = label.cloneNode(true);
  for (const inner of copy.querySelectorAll("input, select, textarea, small")) inner.remove();
  return copy.textContent;
};
const written = (element) => (use === "press" ? [element.innerText] : []);
const namesOf = (element) =>
  [...written(element), element.ariaLabel, element.placeholder, ...[...(element.labels ?? [])].map(wordsOf)].map(tidy).filter(Boolean);

const isUsable = (element) =>
  element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && element.getClientRects().length > 0 && !element.disabled;
const usable = [...document.querySelectorAll(kinds[use])].filter(isUsable);
const wanted = tidy(name);
const exact = usable.filter((element) => namesOf(element).includes(wanted));
const begins = (element) => namesOf(element).some((own) => own.startsWith(`${wanted} `));
let found = exact.length > 0 ? exact : usable.filter(begins);

// Of several, those whose own row, section or dialog has the words: the smaller, the nearer.
if (part) {
  const distance = (element) => {
    let n = 0;
    for (let at = element.parentElement?.closest(parts); at; at = at.parentElement?.closest(parts)) {
      n += 1;
      if (tidy(`${at.ariaLabel ?? ""} ${at.innerText}`).includes(tidy(part))) return n;
    }
    return Infinity;
  };
  const distances = found.map(distance);
  const least = Math.min(...distances);
  found = found.filter((_, nth) => least < Infinity && distances[nth] === least);
}
// Two links to one page are one.
found = found.filter((element, nth) => !element.href || found.findIndex((other) => other.href === element.href) === nth);
if (found.length === 1) return found[0];
const place = part ? ` in "${part}"` : "";
if (found.length > 1) return `"${name}" is there ${found.length} times${place}`;
return `"${name}" is not there${place}, but ${usable.map((element) => `"${namesOf(element)[0] ?? ""}"`).join(", ")}`;
