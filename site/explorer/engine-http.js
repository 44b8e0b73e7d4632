"use strict";

window.truecast = {
  async ask(request) {
    const reply = await fetch("answer", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(request),
    });
    if (!reply.ok) throw new Error(`status ${reply.status}`);
    return reply.json();
  },
};

addEventListener("pagehide", () => navigator.sendBeacon("answer", '{"ask":"goodbye"}'), { once: true });
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
