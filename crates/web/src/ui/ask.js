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
  const capital = (words) => words.charAt(0).toUpperCase() + words.slice(1);

  const place = (of) => {
    const item = blank("cite-blank");
    const [link, about] = item.children;
    link.href = `/documents/${encodeURIComponent(of.document_id)}#c-${encodeURIComponent(of.chunk_id)}`;
    link.textContent = of.title || of.external_id;
    about.textContent = `${of.document_type} · ${of.source.name}`;
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
      item.firstElementChild.textContent = sentence.text;
      for (const cite of sentence.citations) {
        const cited = place(cite);
        if (cite.quote === sentence.text) item.className = "quotation";
        else beside(cited, "q", "outside", cite.quote);
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
        beside(item, "span", "snippet outside", near.snippet);
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
      if (cost) said.push(`${cost.model}, ${cost.input_tokens + cost.output_tokens} tokens`);
      part("answer-summary").textContent = said.join(" · ");
    },
    failed: ({ title }) => fail(title),
  };
  const fail = (words) => {
    const line = document.createElement("p");
    line.textContent = `${words}. Ask again in a moment.`;
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
        const name = /^event: ?(.*)$/m.exec(event)?.[1];
        const data = /^data: ?(.*)$/m.exec(event)?.[1];
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
      if (!answer.ok) {
        const problem = await answer.json().catch(() => ({}));
        fail([problem.title ?? "The question was not answered", problem.detail].filter(Boolean).join(": "));
      } else if (!(await read(answer.body))) fail("The answer broke off");
    } catch {
      if (ours === running && !ours.signal.aborted) fail("The server could not be reached");
    }
  });
})();
