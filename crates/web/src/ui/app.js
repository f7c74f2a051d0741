// The script of every page: signs in with a one-time link, goes anywhere by name, keeps ages true, searches while one types, and keeps the parts
// marked data-live up to date. The Ask page also has ask.js.
"use strict";

// ---- a one-time link: its secret is in the fragment, which no server sees; out of the address before anything else happens
const redeem = () => {
  const once = /^#once=([\w-]+)$/.exec(location.hash);
  const form = document.getElementById("once");
  if (!once || !form) return;
  history.replaceState(null, "", location.pathname + location.search);
  form.elements.once.value = once[1];
  form.submit();
};
redeem();
addEventListener("hashchange", redeem); // the link was pasted into a tab that is on this page already

// ---- in another site's frame: on arrival that site is told how the visitor's agents reach this server. The server says whether, and whom alone;
// not on every page that is opened inside the frame, because every telling is a new key.
const tellParent = async () => {
  const csrf = document.querySelector("input[name=csrf]")?.value;
  const from = document.referrer ? new URL(document.referrer) : null;
  const isOurs = from?.origin === location.origin;
  if (parent === window || !csrf || (isOurs && from.pathname !== "/signin")) return;
  const origin = location.ancestorOrigins?.[0] ?? (from && !isOurs ? from.origin : "");
  const answer = await fetch("/frame", { method: "POST", body: new URLSearchParams({ csrf, origin }) });
  if (!answer.ok) return;
  const told = await answer.json();
  parent.postMessage(told.message, told.origin);
};
tellParent().catch(() => {});

// ---- a message is said once: reloading does not repeat it
const address = new URL(location.href);
if (address.searchParams.has("done")) {
  address.searchParams.delete("done");
  history.replaceState(null, "", address);
}

// ---- ages, by the server's clock, in the server's words (ui/text.rs); dates and numbers in the reader's own form
let ahead = 0; // how far the server's clock is ahead of ours, ms
const keepClock = (body) => {
  const now = Date.parse(body.dataset.now);
  if (now) ahead = now - Date.now();
};
const span = (s) =>
  s < 120 ? `${s} s` : s < 7200 ? `${Math.floor(s / 60)} min` : s < 172800 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
const forms = {
  clock: { hour: "numeric", minute: "2-digit" },
  weekday: { weekday: "short", day: "numeric" },
  day: { day: "numeric", month: "long", year: "numeric" },
  month: { month: "long", year: "numeric", timeZone: "UTC" },
  bucket: { weekday: "short", hour: "numeric", minute: "2-digit" },
  exact: { dateStyle: "full", timeStyle: "medium" },
};
const inForm = (form, at) => new Intl.DateTimeFormat(navigator.languages, forms[form]).format(new Date(at));
const figures = new Intl.NumberFormat(navigator.languages);
const tellAges = () => {
  for (const figure of document.querySelectorAll("data[value]:not([data-told])")) {
    figure.textContent = figures.format(figure.value);
    figure.dataset.told = "";
  }
  for (const time of document.querySelectorAll("time[data-form]:not([data-told])")) {
    time.textContent = inForm(time.dataset.form, time.dateTime);
    time.dataset.told = "";
  }
  for (const time of document.querySelectorAll("time[datetime]:not([data-form])")) {
    const secs = Math.trunc((Date.parse(time.dateTime) - Date.now() - ahead) / 1000);
    const words = secs === 0 ? "now" : secs > 0 ? `in ${span(secs)}` : `${span(-secs)} ago`;
    if (time.textContent !== words) time.textContent = words;
  }
};
keepClock(document.body);
tellAges();
setInterval(tellAges, 1000);

// ---- on a phone the tabs are wider than the page: the current one is in sight
const showTab = () => {
  const tab = document.querySelector(".tabs [aria-current]");
  const tabs = tab?.parentElement;
  if (tab) tabs.scrollLeft = tab.offsetLeft - (tabs.clientWidth - tab.offsetWidth) / 2;
};
showTab();
addEventListener("resize", showTab);

// ---- "/" is for searching, except where one types
addEventListener("keydown", (key) => {
  if (key.key !== "/" || key.ctrlKey || key.metaKey || key.altKey || key.target.closest?.("input, select, textarea")) return;
  key.preventDefault();
  const field = document.getElementById("q");
  if (field) field.select();
  else if (state) location.assign("/search");
});

// ---- Ctrl-K goes anywhere: to a page by some of its letters, or to a search for what was typed
const palette = document.getElementById("palette");
if (palette) {
  const field = palette.querySelector("input");
  const places = [...palette.querySelectorAll("[role=option]")];
  const shown = () => places.filter((place) => !place.hidden);
  const choose = (place) => {
    for (const other of places) other.setAttribute("aria-selected", String(other === place));
    field.setAttribute("aria-activedescendant", place?.id ?? "");
    place?.scrollIntoView({ block: "nearest" });
  };
  const filter = () => {
    const typed = field.value.trim();
    const words = typed.toLowerCase().split(/\s+/);
    for (const place of places) {
      if (place.dataset.ask) {
        place.hidden = !typed;
        place.lastElementChild.textContent = typed;
      } else place.hidden = !words.every((word) => place.dataset.words.toLowerCase().includes(word));
    }
    choose(shown()[0]);
  };
  const go = (place) => place && location.assign(place.dataset.href ?? place.dataset.ask + encodeURIComponent(field.value.trim()));
  const open = () => {
    field.value = "";
    filter();
    palette.showModal();
    field.focus();
  };
  field.addEventListener("input", filter);
  field.addEventListener("keydown", (key) => {
    const all = shown();
    const at = all.findIndex((place) => place.ariaSelected === "true");
    if (key.key === "Enter") go(all[at]);
    else if (key.key === "ArrowDown") choose(all[(at + 1) % all.length]);
    else if (key.key === "ArrowUp") choose(all.at(at - 1));
    else return;
    key.preventDefault();
  });
  palette.addEventListener("click", (click) => {
    if (click.target === palette) palette.close();
    else go(click.target.closest("[role=option]"));
  });
  addEventListener("keydown", (key) => {
    if (key.key?.toLowerCase() !== "k" || !(key.ctrlKey || key.metaKey) || key.altKey || key.shiftKey) return;
    key.preventDefault();
    if (palette.open) palette.close();
    else open();
  });
  for (const opener of document.querySelectorAll("[data-opens=palette]")) {
    opener.hidden = false;
    if (/Mac|iPhone|iPad/.test(navigator.platform)) opener.querySelector("kbd").textContent = "⌘ K";
    opener.addEventListener("click", (click) => {
      click.stopPropagation();
      open();
    });
  }
}

// ---- the Search page answers while one types: 200 ms after the last key, and an earlier question is dropped. Without this script the form is sent.
const asked = document.querySelector("form[data-search]");
if (asked) {
  let request = null;
  let planned = null;
  const fail = () => {
    const line = document.createElement("p");
    line.className = "flash";
    line.textContent = "This could not be searched. Press Enter to try again.";
    document.getElementById("results").replaceChildren(line);
  };
  const ask = async () => {
    const fields = [...new FormData(asked)].filter(([, value]) => value.trim() !== "");
    const where = `${asked.getAttribute("action")}${fields.length ? `?${new URLSearchParams(fields)}` : ""}`;
    request?.abort();
    const own = (request = new AbortController());
    document.getElementById("results").setAttribute("aria-busy", "true");
    let isOver = true;
    try {
      const answer = await fetch(where, { headers: { "X-Requested-With": "live", Accept: "text/html" }, signal: own.signal });
      if (answer.redirected && new URL(answer.url).pathname === "/signin") location.assign(answer.url);
      if (answer.status === 429) {
        isOver = false;
        plan(1000);
        return;
      }
      if (own !== request) return;
      if (!answer.ok) return fail();
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const results = fresh.getElementById("results");
      if (own !== request || !results) return;
      document.getElementById("results").replaceWith(results);
      document.title = fresh.title;
      history.replaceState(null, "", where);
      keepClock(fresh.body);
      tellAges();
    } catch {
      isOver = own === request; // else it was dropped for a newer question
      if (isOver && !own.signal.aborted) fail();
    } finally {
      if (isOver && own === request) document.getElementById("results").removeAttribute("aria-busy");
    }
  };
  const plan = (ms) => {
    clearTimeout(planned);
    planned = setTimeout(ask, ms);
  };
  asked.addEventListener("input", (event) => plan(event.target.id === "q" ? 200 : 0));
  asked.addEventListener("submit", () => {
    clearTimeout(planned);
    request?.abort();
  });
  // Arrows go from the field through the results and back; Enter opens one.
  addEventListener("keydown", (key) => {
    if (!["ArrowDown", "ArrowUp"].includes(key.key) || key.ctrlKey || key.metaKey || key.altKey || key.shiftKey) return;
    const links = [...document.querySelectorAll("#results .hits h2 a")].filter((link) => link.checkVisibility());
    const field = document.getElementById("q");
    const at = links.indexOf(document.activeElement);
    if (at < 0 && document.activeElement !== field) return;
    const next = at + (key.key === "ArrowDown" ? 1 : -1);
    if (next >= links.length || (at < 0 && next < 0)) return;
    key.preventDefault();
    (next < 0 ? field : links[next]).focus();
  });
}

// ---- the gallery is narrowed while one types. Without this script the form is sent.
const narrower = document.querySelector("[data-filters]");
if (narrower) {
  const shelves = document.getElementById(narrower.dataset.filters);
  const [count, none] = document.querySelectorAll(`[data-counts="${narrower.dataset.filters}"]`);
  narrower.addEventListener("input", () => {
    const words = narrower.value.toLowerCase().split(/\s+/);
    let n = 0;
    for (const shelf of shelves.children) {
      const tiles = [...shelf.querySelectorAll("[data-words]")];
      for (const tile of tiles) tile.hidden = !words.every((word) => tile.dataset.words.includes(word));
      const found = tiles.filter((tile) => !tile.hidden).length;
      shelf.hidden = found === 0;
      n += found;
    }
    none.hidden = n > 0;
    count.textContent = narrower.value.trim() === "" ? "" : `${n} found`;
  });
}

// ---- dialogs and copying: without this script dialogs are sections of the page, and text is selected by hand
addEventListener("click", (click) => {
  const opener = click.target.closest?.("[data-opens]");
  const closer = click.target.closest?.("[data-closes]");
  const copier = click.target.closest?.("[data-copy]");
  if (opener || closer) {
    click.preventDefault();
    const dialog = document.getElementById((opener ?? closer).dataset[opener ? "opens" : "closes"]);
    if (opener) dialog?.showModal();
    else dialog?.close();
  }
  if (copier) {
    navigator.clipboard.writeText(copier.dataset.copy).then(
      () => (copier.textContent = "Copied"),
      () => copier.previousElementSibling?.select?.(),
    );
    setTimeout(() => (copier.textContent = "Copy"), 2000);
  }
});
const showCopiers = () => {
  for (const copier of document.querySelectorAll("[data-copy][hidden]")) copier.hidden = false;
};
showCopiers();
const opened = document.querySelector("dialog[open]");
if (opened) {
  opened.close();
  opened.showModal();
}

// ---- a page or a chunk that is folded opens where a link leads to it
const unfold = () => {
  const target = /^#(page-\d+|mark|c-[\w-]+)$/.test(location.hash) && document.querySelector(location.hash);
  const fold = target && target.closest("details");
  if (!fold || fold.open) return;
  fold.open = true;
  target.scrollIntoView();
};
unfold();
addEventListener("hashchange", unfold);

// ---- a page that cannot be drawn shows its text alone
const withoutPicture = (picture) => picture.closest?.(".preview")?.setAttribute("hidden", "");
addEventListener("error", (failed) => withoutPicture(failed.target), true);
for (const picture of document.querySelectorAll(".preview img")) {
  if (picture.complete && picture.naturalWidth === 0 && picture.currentSrc) withoutPicture(picture);
}

// ---- files that are dropped are sent at once, chosen ones by the button: each by itself, and its line says how far it is. Without this script the form
// is sent.
const form = document.querySelector("form[data-drop]");
if (form) {
  const lines = document.getElementById("uploads");
  const said = document.querySelector(".flash");
  const queue = [];
  let nUnderWay = 0;
  let nAdded = 0;
  let isAllRead = true;
  form.classList.add("drop");
  form.querySelector(".invitation").hidden = false;

  const lineOf = (name) => {
    const line = document.createElement("li");
    const parts = ["span", "progress", "span"].map((kind) => line.appendChild(document.createElement(kind)));
    const [title, bar, words] = parts;
    title.className = "title outside";
    title.textContent = name;
    bar.max = 1;
    bar.value = 0;
    bar.setAttribute("aria-label", `${name} is sent`);
    words.className = "fine";
    words.setAttribute("role", "status");
    lines.prepend(line);
    return { line, title, bar, words };
  };
  // The last word about a file. One that was not added can be sent again, if that may help.
  const settle = ({ line, bar, words }, tone, text, again) => {
    bar.remove();
    line.className = tone;
    words.textContent = text;
    if (!again) return;
    const button = line.appendChild(document.createElement("button"));
    button.type = "button";
    button.textContent = "Try again";
    button.addEventListener("click", () => {
      line.remove();
      add([again]);
    });
  };
  const post = (file, bar) =>
    new Promise((resolve) => {
      const body = new FormData();
      body.append("csrf", form.elements.csrf.value);
      body.append("file", file);
      const request = new XMLHttpRequest();
      request.open("POST", form.dataset.drop);
      request.setRequestHeader("Accept", "application/json");
      request.responseType = "json";
      request.upload.onprogress = (sent) => {
        if (sent.lengthComputable) bar.value = sent.loaded / sent.total;
      };
      request.onloadend = () => resolve(request);
      request.send(body);
    });
  const send = async ({ file, ...parts }) => {
    let answer;
    for (let tries = 0; tries < 20; tries += 1) {
      parts.words.textContent = "Being sent";
      answer = await post(file, parts.bar);
      if (![429, 503].includes(answer.status)) break;
      parts.words.textContent = "Waits for its turn";
      const secs = Math.min(Number(answer.getResponseHeader("Retry-After")) || 2, 10);
      await new Promise((resolve) => setTimeout(resolve, 1000 * secs));
    }
    const told = answer.response;
    if (answer.status !== 200 || !told?.href) {
      const why = told?.detail ?? told?.title ?? (answer.status === 0 ? "the connection broke off" : `the server answered ${answer.status}`);
      settle(parts, "bad", `It was not added: ${why}`, answer.status === 400 || answer.status === 409 ? null : file);
      return;
    }
    const link = document.createElement("a");
    link.href = told.href;
    link.textContent = parts.title.textContent;
    parts.title.replaceChildren(link);
    nAdded += 1;
    isAllRead &&= told.is_read;
    settle(parts, "good", told.is_known ? "It is here already" : "Added");
    if (!told.is_known) parts.line.dataset.href = told.href; // its line in the list below takes over
    dispatchEvent(new Event("stale"));
  };
  const work = async () => {
    while (queue.length > 0 && nUnderWay < 2) {
      nUnderWay += 1;
      send(queue.shift()).finally(() => {
        nUnderWay -= 1;
        work();
      });
    }
    if (nUnderWay > 0 || nAdded === 0) return;
    said.textContent = isAllRead ? form.dataset.added : form.dataset.awaited;
    [nAdded, isAllRead] = [0, true];
  };
  const add = (files) => {
    for (const file of files) {
      const parts = lineOf(file.name);
      if (file.size > Number(form.dataset.most)) settle(parts, "bad", "It was not added: it is too large");
      else queue.push({ file, ...parts });
    }
    work();
  };
  form.addEventListener("submit", (submit) => {
    submit.preventDefault();
    add([...form.elements.file.files]);
    form.elements.file.value = "";
  });
  form.addEventListener("click", (click) => {
    if (!click.target.closest("input, button, a")) form.elements.file.click();
  });
  const hasFiles = (drag) => drag.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (drag) => {
    if (!hasFiles(drag)) return;
    drag.preventDefault(); // or the browser opens what is dropped
    form.classList.add("over");
  });
  addEventListener("dragleave", (drag) => drag.relatedTarget ?? form.classList.remove("over"));
  addEventListener("drop", (drop) => {
    if (!hasFiles(drop)) return;
    drop.preventDefault();
    form.classList.remove("over");
    const items = [...drop.dataTransfer.items].filter((item) => item.kind === "file");
    const folders = items.filter((item) => item.webkitGetAsEntry?.()?.isDirectory);
    for (const folder of folders) settle(lineOf(folder.webkitGetAsEntry().name), "bad", "A folder is not added: drop the files in it");
    add(items.filter((item) => !folders.includes(item)).map((item) => item.getAsFile()).filter(Boolean));
  });
  addEventListener("renewed", () => {
    const known = new Set([...document.querySelectorAll("#live-files > [data-key]")].map((row) => row.dataset.key));
    for (const line of [...lines.children]) if (known.has(line.dataset.href)) line.remove();
  });
  addEventListener("beforeunload", (leave) => nUnderWay > 0 && leave.preventDefault());
}

// ---- the Add menu closes like a menu; without this script it is a fold
addEventListener("click", (click) => {
  for (const menu of document.querySelectorAll("details.add[open]")) {
    if (!menu.contains(click.target) || click.target.closest("a")) menu.open = false;
  }
});
addEventListener("keydown", (key) => {
  const menu = key.key === "Escape" && document.querySelector("details.add[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

// ---- a time in a form is the writer's own; without this script it is UTC, as the form says
for (const field of document.querySelectorAll("[data-local]")) {
  const offset = field.form.querySelector("[data-offset]");
  const zone = field.form.querySelector("[data-zone]");
  if (zone) zone.textContent = "(your time)";
  const tell = () => (offset.value = field.value ? String(new Date(field.value).getTimezoneOffset()) : "");
  field.addEventListener("change", tell);
  field.form.addEventListener("submit", tell);
}

// ---- a time says exactly when, and the chart what is under the pointer
addEventListener("pointerover", (over) => {
  const time = over.target.closest?.("time");
  if (time) time.title = inForm("exact", time.dateTime);
  const tip = document.querySelector(".chart .tip");
  if (!tip) return;
  const bucket = over.target.closest?.(".bucket");
  tip.hidden = !bucket;
  if (bucket) tip.textContent = `${inForm("bucket", bucket.dataset.at)}: ${bucket.dataset.said}`;
});

// ---- live parts: an event says that something changed, and then the page is asked for again. Every 5 s even without one,
// because events are hints. Not while the tab is hidden: a browser has few connections to share among its tabs.
const state = document.getElementById("live-state");
if (state && document.querySelector("[data-live]")) {
  const say = (kind, words) => {
    if (state.textContent === words) return;
    state.hidden = false;
    state.className = `live-state ${kind}`;
    state.textContent = words;
  };

  // Where rows have no keys, one that is typed into or marked might turn into its neighbour: such a part waits.
  const isBusy = (part) => {
    if (part.querySelector("[data-key]")) return false;
    const selection = getSelection();
    return part.contains(document.activeElement) || (selection && !selection.isCollapsed && part.contains(selection.anchorNode));
  };

  // Brings an element to what a fresher one says and touches nothing else, so that what plays, is unfolded, typed, marked or has the focus stays
  // as it is. A child is the same one by its data-key, else by its place. New ones with a key are marked, for the style sheet.
  const keyOf = (node) => node.dataset?.key;
  const renew = (old, fresh) => {
    for (const name of old.getAttributeNames()) {
      if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
    }
    for (const name of fresh.getAttributeNames()) {
      const value = fresh.getAttribute(name);
      if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    const wanted = new Set([...fresh.children].map(keyOf));
    const known = new Map([...old.children].map((child) => [keyOf(child), child]));
    for (const [key, child] of known) if (key && !wanted.has(key)) child.remove();
    let place = old.firstChild;
    const drop = () => {
      const gone = place;
      place = place.nextSibling;
      gone.remove();
    };
    for (const child of [...fresh.childNodes]) {
      const key = keyOf(child);
      const isAlike = place && !keyOf(place) && place.nodeName === child.nodeName;
      const same = key ? known.get(key) : isAlike ? place : null;
      if (!same) {
        if (key) child.classList.add("new");
        old.insertBefore(child, place);
        continue;
      }
      while (key && place && place !== same && !keyOf(place)) drop();
      if (place === same) place = place.nextSibling;
      else old.insertBefore(same, place);
      if (same.nodeType === Node.ELEMENT_NODE) renew(same, child);
      else if (same.data !== child.data) same.data = child.data;
    }
    while (place) drop();
  };

  // A list that holds back what is new changes only the rows that it shows, and says how many wait. Nobody loses the row that they read.
  const hold = (part, fresher) => {
    const known = new Map([...part.children].map((child) => [keyOf(child), child]));
    let n = 0;
    for (const child of [...fresher.children].filter(keyOf)) {
      if (known.has(keyOf(child))) renew(known.get(keyOf(child)), child);
      else n += 1;
    }
    const shower = document.querySelector(`[data-shows="${part.id}"]`);
    if (!shower) return;
    shower.hidden = n === 0;
    if (n > 0 && shower.textContent !== `${n} new`) shower.textContent = `${n} new`;
  };
  addEventListener("click", (click) => {
    const shower = click.target.closest?.("[data-shows]");
    if (!shower) return;
    shower.hidden = true;
    wanted = shower.dataset.shows;
    load(); // one that is under way shows them, too
  });

  let wanted = null; // the list whose new rows somebody asked for
  let isLoading = false;
  let last = 0;
  const load = async () => {
    if (isLoading || document.hidden) return;
    isLoading = true;
    last = Date.now();
    try {
      const answer = await fetch(location.href, {
        headers: { "X-Requested-With": "live", Accept: "text/html" },
        signal: AbortSignal.timeout(15000),
      });
      if (answer.redirected && new URL(answer.url).pathname === "/signin") {
        location.assign(answer.url);
        return;
      }
      if (answer.status === 404) location.reload(); // what this page shows has moved on
      if (!answer.ok) throw new Error(`answered ${answer.status}`);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      keepClock(fresh.body);
      for (const part of document.querySelectorAll("[data-live]")) {
        const fresher = fresh.getElementById(part.id);
        if (!fresher || isBusy(part)) continue;
        if ("holds" in part.dataset && part.id !== wanted && part.querySelector(":scope > [data-key]")) hold(part, fresher);
        else renew(part, fresher);
      }
      wanted = null;
      showCopiers();
      tellAges();
      dispatchEvent(new Event("renewed"));
      if (source && source.readyState === EventSource.OPEN) say("live", "Live");
    } catch {
      say(navigator.onLine ? "reconnecting" : "offline", navigator.onLine ? "Reconnecting…" : "Offline");
    } finally {
      isLoading = false;
    }
  };

  // An event is followed after 300 ms, so that a burst is one look, and at most once a second.
  let planned = null;
  const plan = () => {
    planned ??= setTimeout(() => {
      planned = null;
      load();
    }, Math.max(300, last + 1000 - Date.now()));
  };

  addEventListener("stale", plan);

  let source = null;
  const listen = () => {
    source?.close();
    source = null;
    if (document.hidden) return;
    source = new EventSource("/api/v1/events");
    source.onopen = () => say("live", "Live");
    source.onmessage = plan;
    source.addEventListener("resync", plan);
    source.onerror = () => {
      say(navigator.onLine ? "reconnecting" : "offline", navigator.onLine ? "Reconnecting…" : "Offline");
      // Closed for good means refused: signed out, or the server is starting. The next look finds out which.
      if (source?.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
      plan();
    };
  };
  document.addEventListener("visibilitychange", () => {
    listen();
    if (!document.hidden) load();
  });
  addEventListener("online", listen);
  addEventListener("offline", () => say("offline", "Offline"));
  addEventListener("pagehide", () => source?.close());
  setInterval(() => Date.now() - last >= 5000 && load(), 1000);
  last = Date.now();
  listen();
}
