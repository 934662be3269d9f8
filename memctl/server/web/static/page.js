/* Comfort for a page that works without it: keys, dropping files, the picture of the graph. */
"use strict";
(() => {
  const rows = () => [...document.querySelectorAll("#main .item a.main")];
  const isTyping = (at) => at.closest("input, textarea, select, [contenteditable]") !== null;

  function move(step) {
    const all = rows();
    if (!all.length) return;
    const at = all.indexOf(document.activeElement);
    all[Math.min(Math.max(at + step, 0), all.length - 1)].focus();
  }

  const keys = {
    "/": () => {
      const field = document.querySelector("[data-search]");
      if (field) field.focus();
      else location.assign("/");
    },
    j: () => move(1),
    k: () => move(-1),
    e: () => {
      const edit = document.querySelector("#edit");
      if (!edit) return;
      edit.open = true;
      edit.querySelector("textarea").focus();
    },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const act = keys[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  });

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method === "get" || form.hasAttribute("hx-post")) return;
    form.classList.add("is-sending");
    if (event.submitter) event.submitter.setAttribute("aria-busy", "true");
  });
  window.addEventListener("pageshow", () => {
    document.querySelectorAll(".is-sending").forEach((form) => form.classList.remove("is-sending"));
    document.querySelectorAll("[aria-busy]").forEach((it) => it.removeAttribute("aria-busy"));
  });

  function takeDrops(form) {
    const over = (is) => form.classList.toggle("is-over", is);
    form.addEventListener("dragover", (event) => { event.preventDefault(); over(true); });
    form.addEventListener("dragleave", () => over(false));
    form.addEventListener("drop", (event) => {
      event.preventDefault();
      over(false);
      if (!event.dataTransfer.files.length) return;
      form.querySelector("input[type=file]").files = event.dataTransfer.files;
      form.requestSubmit();
    });
  }

  // What is fitted into the place is drawn smaller, words too: they are made larger by as much.
  // Names around the middle of a circle are written outwards, so that they do not overlap.
  function label(picture) {
    const scale = 1 / picture.zoom();
    const isCrowded = picture.nodes().length > 40;
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = "11px sans-serif";
    const middle = picture.nodes("[hops = 0]").position();
    picture.nodes().forEach((node) => {
      const hops = node.data("hops");
      const size = hops === 0 ? 20 : hops === 1 ? 11 : 8;
      const style = {
        width: size * scale, height: size * scale, "font-size": (hops === 0 ? 14 : 11) * scale,
        "text-margin-y": 3 * scale, "text-outline-width": 2 * scale,
        "text-max-width": (hops === 0 ? 220 : 110) * scale, "z-index": 9 - hops,
        "text-opacity": isCrowded && hops > 1 ? 0 : 1,
      };
      if (hops > 0 && !isCrowded) {
        const { x, y } = node.position();
        const angle = Math.atan2(y - middle.y, x - middle.x);
        const length = Math.min(110, pen.measureText(node.data("name")).width);
        const reach = (size / 2 + 5 + length / 2) * scale;
        Object.assign(style, {
          "text-halign": "center", "text-valign": "center",
          "text-margin-x": reach * Math.cos(angle), "text-margin-y": reach * Math.sin(angle),
          "text-rotation": Math.cos(angle) < 0 ? angle + Math.PI : angle,
        });
      }
      node.style(style);
    });
  }

  async function draw(place) {
    const reply = await fetch(place.dataset.source);
    if (!reply.ok || !window.cytoscape) return;
    const found = await reply.json();
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const link = new URL(place.dataset.link, location.href);
    place.classList.add("is-drawn");
    const picture = window.cytoscape({
      container: place,
      elements: [
        ...found.nodes.map((node) => ({
          data: { id: node.id, name: node.name, hops: node.hops, community: node.community },
        })),
        ...found.edges.map((edge, n) => ({
          data: { id: `e${n}`, source: edge.source, target: edge.target, weight: edge.weight },
        })),
      ],
      style: [
        { selector: "node", style: {
          label: "data(name)", "font-size": 11, color: colour("--ink"), "text-valign": "bottom",
          "text-margin-y": 4, "background-color": colour("--accent"), width: 12, height: 12,
          "text-wrap": "ellipsis", "text-max-width": 110,
          "text-outline-color": colour("--surface"), "text-outline-width": 2,
        } },
        { selector: "node[hops = 0]", style: { width: 24, height: 24, "font-size": 14, "font-weight": 600 } },
        { selector: "node[hops > 1]", style: { "background-color": colour("--quiet"), width: 9, height: 9 } },
        { selector: "node[community > 0]", style: {
          "background-color": (node) => colour(`--community-${(node.data("community") - 1) % 6 + 1}`),
        } },
        { selector: "edge", style: {
          width: "mapData(weight, 0, 1, 0.6, 3)", "line-color": colour("--line"), "curve-style": "haystack",
        } },
      ],
      layout: found.nodes.length > 40
        ? { name: "cose", animate: false, nodeRepulsion: 2e6, idealEdgeLength: 120, nodeOverlap: 24, numIter: 1500, padding: 24 }
        : { name: "concentric", concentric: (node) => 9 - node.data("hops"), levelWidth: () => 1, minNodeSpacing: 34, padding: 24 },
      userZoomingEnabled: false,
    });
    for (let round = 0; round < 4; round += 1) {  // words change what has to fit, and so the scale
      label(picture);
      picture.fit(undefined, 12);
    }
    picture.on("tap", "node", (event) => {
      link.searchParams.set("name", event.target.id());
      location.assign(link);
    });
  }

  const tab = Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(16)).join("");
  const say = (what) =>
    navigator.sendBeacon(`/tabs/${tab}/${what}`, new Blob(["{}"], { type: "application/json" }));
  window.addEventListener("pageshow", () => say("shown"));
  window.addEventListener("pagehide", () => say("left"));

  document.querySelectorAll("[data-drop]").forEach(takeDrops);
  document.querySelectorAll("[data-source]").forEach(draw);
})();
