"""Find faults in the layout tree of a page.

A fault is text that is cut, that overlaps other text, that overflows the window, or that is too small in a plot.
The program runs in the page and returns sentences. Text in a region that scrolls is not cut, since it can be reached.
"""

LAYOUT = r"""
(() => {
  const faults = new Set(), named = text => `"${text.trim().slice(0, 40)}"`;
  const wide = document.documentElement.scrollWidth, seen = window.innerWidth;
  if (wide > seen + 1) faults.add(`the page is ${wide} wide, the window ${seen}`);
  const clips = (style, axis) => ["hidden", "clip"].includes(style[`overflow-${axis}`]);
  const scrolls = (style, axis) => ["auto", "scroll"].includes(style[`overflow-${axis}`]);
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const holder = node.parentElement;
    if (!node.data.trim() || holder.closest("script, style, title, .unseen, .skip, option")) continue;
    if (!holder.checkVisibility({visibilityProperty: true, contentVisibilityAuto: true})) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width < 1 || box.height < 1) continue;
      const drawing = holder.closest("svg");
      if (drawing) {
        const frame = drawing.getBoundingClientRect();
        if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
            || box.bottom > frame.bottom + 1) faults.add(`${named(node.data)} is cut by its drawing`);
      }
      let reachable = true, free = false;
      for (let place = holder; place && place !== document.body; place = place.parentElement) {
        const style = getComputedStyle(place), frame = place.getBoundingClientRect();
        if (scrolls(style, "x") || scrolls(style, "y")) free = true;
        if (!free && (clips(style, "x") && (box.left < frame.left - 1 || box.right > frame.right + 1)
            || clips(style, "y") && (box.top < frame.top - 1 || box.bottom > frame.bottom + 1)))
          faults.add(`${named(node.data)} is cut by <${place.tagName.toLowerCase()} class="${place.className}">`);
        if (scrolls(style, "y") && place.scrollHeight > place.clientHeight + 1) {
          const bottom = frame.bottom - parseFloat(style.borderBottomWidth);
          if (box.top < bottom - 2 && box.bottom > bottom + 2) faults.add(`a line is cut in half: ${named(node.data)}`);
          if (box.top >= bottom - 2 || box.bottom <= frame.top + 2) reachable = false;
        }
        if (scrolls(style, "x") && (box.left >= frame.right || box.right <= frame.left)) reachable = false;
      }
      if (!free && (box.right > seen + 1 || box.left < -1)) faults.add(`${named(node.data)} is outside of the window`);
      if (reachable) boxes.push([box, node, Boolean(drawing)]);
    }
  }
  boxes.sort((one, other) => one[0].top - other[0].top);
  const slack = inDrawing => inDrawing ? 1.5 : 3;
  for (let i = 0; i < boxes.length; i++) {
    const [a, node, drawn] = boxes[i];
    for (let j = i + 1; j < boxes.length && boxes[j][0].top < a.bottom; j++) {
      const [b, other, alsoDrawn] = boxes[j], by = Math.max(slack(drawn), slack(alsoDrawn));
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > by && down > by && node !== other) faults.add(`${named(node.data)} overlaps ${named(other.data)}`);
    }
  }
  const least = matchMedia("print").matches ? 6 : 8;  // paper has finer dots
  for (const text of document.querySelectorAll("svg.figure text")) {
    const drawing = text.closest("svg"), scale = drawing.getBoundingClientRect().width / drawing.viewBox.baseVal.width;
    const size = parseFloat(getComputedStyle(text).fontSize) * scale;
    if (size && size < least) faults.add(`${named(text.textContent)} is ${size.toFixed(1)} px high`);
  }
  return [...faults].slice(0, 40);
})()
"""
"""Returns the faults of the open page, at most 40."""
