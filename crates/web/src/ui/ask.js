// Ask: sends the question and shows each sentence as soon as the server has checked it. Everything that arrives is set as text, never as markup.
"use strict";

(() => {
  const form = document.getElementById("ask");
  const panel = document.getElementById("answer");
  if (!form || !panel || !window.ReadableStream) return;
  const part = (id) => document.getElementById(id);
  const blank = (id) => part(id).content.firstElementChild.cloneNode(true);
  const show = (element, words) => {
    element.textContent = words;
    element.hidden = !words;
  };
  // As domain::shown does it: characters that are invisible or turn the reading direction are named, not applied.
  const shown = (text) =>
    text
      .replace(/[\n\r\t\u2028\u2029]/g, " ")
      .replace(
        /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu,
        (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
      );
  const capital = (words) => words.charAt(0).toUpperCase() + words.slice(1);

  const place = (of) => {
    const item = blank("cite-blank");
    const [link, about] = item.children;
    link.href = `/documents/${encodeURIComponent(of.document_id)}#c-${encodeURIComponent(of.chunk_id)}`;
    link.textContent = shown(of.title || of.external_id);
    about.textContent = shown(`${of.document_type} · ${of.source.name}`);
    return item;
  };
  const beside = (item, name, kind, words) => {
    const element = document.createElement(name);
    element.className = kind;
    element.textContent = words;
    item.append(element);
  };

  const tell = {
    sentence: (sentence) => {
      const item = blank("sentence-blank");
      item.firstElementChild.textContent = shown(sentence.text);
      for (const cite of sentence.citations) {
        const cited = place(cite);
        if (cite.quote === sentence.text) item.className = "quotation";
        else beside(cited, "q", "outside", shown(cite.quote));
        item.lastElementChild.append(cited);
      }
      part("sentences").append(item);
    },
    refused: ({ refusal, closest }) => {
      part("answer-title").textContent = "No answer";
      const words = document.createElement("p");
      words.textContent = refusal;
      part("answer-state").replaceChildren(words);
      const list = part("closest").querySelector("ul");
      for (const near of closest) {
        const item = place(near);
        beside(item, "span", "snippet outside", shown(near.snippet));
        list.append(item);
      }
      part("closest").hidden = !closest.length;
    },
    done: ({ kind, note, dropped, cost }) => {
      if (kind !== "refused") part("answer-state").replaceChildren();
      if (kind === "quoted") part("answer-title").textContent = "Quotations";
      show(part("answer-note"), note ? capital(note) : "");
      const said = [];
      if (dropped) said.push(dropped === 1 ? "1 sentence was left out: nothing supports it" : `${dropped} sentences were left out: nothing supports them`);
      if (cost) said.push(`${shown(cost.model)}, ${cost.said}`);
      part("answer-summary").textContent = said.join(" · ");
    },
    failed: ({ title }) => fail(title),
  };
  const fail = (words, isPassing = true) => {
    const line = document.createElement("p");
    line.textContent = isPassing ? `${words}. Ask again in a moment.` : `${words}.`;
    part("answer-state").replaceChildren(line);
  };

  // Events end with an empty line. Each has one line of data.
  const read = async (body) => {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    let isDone = false;
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return isDone;
      rest += value;
      const events = rest.split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const lines = event.split("\n");
        const field = (label) => lines.find((line) => line.startsWith(`${label}:`))?.slice(label.length + 1).trimStart();
        const [name, data] = [field("event"), field("data")];
        if (!Object.hasOwn(tell, name ?? "") || !data) continue;
        tell[name](JSON.parse(data));
        isDone ||= name === "done" || name === "failed";
      }
    }
  };

  let running = null;
  form.addEventListener("submit", async (submit) => {
    submit.preventDefault();
    const question = form.elements.question.value.trim();
    if (!question) return;
    running?.abort();
    const ours = (running = new AbortController());
    const hints = part("ask-hints");
    if (hints) hints.hidden = true;
    part("sentences").replaceChildren();
    part("closest").querySelector("ul").replaceChildren();
    part("closest").hidden = true;
    part("answer-summary").textContent = "";
    part("answer-title").textContent = "Answer";
    show(part("answer-note"), "");
    const waiting = document.createElement("p");
    waiting.className = "fine";
    waiting.textContent = "Looking for it …";
    part("answer-state").replaceChildren(waiting);
    panel.hidden = false;
    history.replaceState(null, "", `/ask?q=${encodeURIComponent(question)}`);
    try {
      const answer = await fetch("/api/v1/answer", {
        method: "POST",
        headers: { "content-type": "application/json", accept: "text/event-stream", "x-csrf": form.elements.csrf.value },
        body: JSON.stringify({ question }),
        signal: ours.signal,
      });
      if (answer.status === 401) return location.assign(`/signin?next=${encodeURIComponent(location.pathname + location.search)}`);
      if (!answer.ok) {
        const problem = await answer.json().catch(() => ({}));
        if (ours !== running) return;
        fail([problem.title ?? "The question was not answered", problem.detail].filter(Boolean).join(": "), !problem.detail);
      } else if (!(await read(answer.body))) fail("The answer broke off");
    } catch {
      if (ours === running && !ours.signal.aborted) fail("The server could not be reached");
    }
  });
})();
