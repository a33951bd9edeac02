const anomalies = [...document.querySelectorAll(".anomaly")];
let at = -1;
function go(by) {
  if (anomalies.length === 0) return;
  at = (at + by + anomalies.length) % anomalies.length;
  const there = anomalies[at];
  for (let e = there; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
  there.scrollIntoView({ block: "center" });
  there.focus({ preventScroll: true });
}
for (const button of document.querySelectorAll("button[data-go]")) {
  button.hidden = false;
  button.addEventListener("click", () => go(Number(button.dataset.go)));
}
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "n") go(1);
  if (event.key === "p") go(-1);
});
