for (const stepper of document.querySelectorAll(".stepper")) {
  const slider = stepper.querySelector("input"), out = stepper.querySelector("output");
  const crash = Number(stepper.dataset.crash);
  const letters = { durable: "D", kept: "K", lost: "L", older: "O", torn: "T", gone: "G" };
  const cells = [...document.querySelectorAll(".cell[data-fate]")].map((cell) => ({
    cell, fate: cell.dataset.fate, name: cell.getAttribute("aria-label"),
    writes: cell.dataset.writes.split(" ").filter(Boolean).map(Number),
    syncs: cell.dataset.syncs.split(" ").filter(Boolean).map(Number),
  }));
  const entries = new Map([...document.querySelectorAll("#lanes tbody tr")].map((row) => {
    const [at, kind, file, what] = [...row.cells].map((c) => c.textContent);
    return [Number(at), `${kind === "write" ? "written" : kind === "name" ? "directory" : kind}: ${file} ${what}`];
  }));
  const show = () => {
    const done = Number(slider.value), is_over = done > crash;
    for (const { cell, fate, name, writes, syncs } of cells) {
      const sync = Math.max(-1, ...syncs.filter((at) => at < done));
      const dirty = writes.filter((at) => at < done && at > sync).length;
      const now = is_over ? fate : dirty ? "dirty" : writes.some((at) => at < done) || sync >= 0 ? "durable" : "untouched";
      cell.className = `cell fate-${now}`;
      cell.textContent = is_over ? letters[fate] : dirty || (now === "durable" ? "D" : "\u00b7");
      if (name) cell.setAttribute("aria-label", is_over ? name : `${name.split(":")[0]}: ${dirty ? `${dirty} versions not synced` : now}`);
    }
    const what = done === 0 ? "before the first entry" : entries.get(done - 1) || "";
    out.textContent = is_over ? stepper.dataset.last : `entry ${Math.max(done - 1, 0)} of ${crash - 1}: ${what}`;
  };
  for (const button of stepper.querySelectorAll("[data-step]")) button.addEventListener("click", () => {
    slider.value = Number(slider.value) + Number(button.dataset.step);
    show();
  });
  slider.addEventListener("input", show);
  for (const { cell } of cells) cell.addEventListener("click", () => {
    const there = cell.hash && document.querySelector(cell.hash);
    for (let e = there; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
  });
  for (const hidden of document.querySelectorAll(".with-script")) hidden.hidden = false;
  stepper.hidden = false;
  show();
}
