for (const bar of document.querySelectorAll("[data-filter]")) {
  const blocks = [...document.querySelectorAll("." + bar.dataset.filter)];
  const rows = blocks.map((b) => (b.dataset.code ? [b] : [...b.querySelectorAll("tr[data-code]")]));
  const chips = [...bar.querySelectorAll(".chip")], field = bar.querySelector("input"), out = bar.querySelector("output");
  const texts = new Map();
  const textOf = (row, block) => {
    if (!texts.has(row)) texts.set(row, (block.querySelector("h3").textContent + " " + row.textContent).toLowerCase());
    return texts.get(row);
  };
  const has = (row, block, word) =>
    word.startsWith("contract-") ? row.dataset.code === word : textOf(row, block).includes(word);
  const show = () => {
    const codes = new Set(chips.filter((c) => c.ariaPressed === "true").map((c) => c.dataset.code));
    const words = field.value.toLowerCase().replace(/contract (\d)/g, "contract-$1").split(/\s+/).filter(Boolean);
    const asked = codes.size > 0 || words.length > 0;
    let seen = 0, all = 0;
    blocks.forEach((block, place) => {
      let here = 0;
      for (const row of rows[place]) {
        const fits = (codes.size === 0 || codes.has(row.dataset.code)) && words.every((w) => has(row, block, w));
        row.hidden = !fits;
        here += fits;
      }
      block.hidden = here === 0;
      for (const d of block.querySelectorAll(":scope > details")) if (asked && here > 0) d.open = true;
      seen += here;
      all += rows[place].length;
    });
    out.textContent = asked ? `${seen.toLocaleString("en")} of ${all.toLocaleString("en")} ${bar.dataset.what}` : "";
  };
  bar.hidden = false;
  field.addEventListener("input", show);
  for (const chip of chips) chip.addEventListener("click", () => {
    chip.ariaPressed = chip.ariaPressed === "true" ? "false" : "true";
    show();
  });
}
