// Keeps the keyboard's focus where it was in a list that is made anew.

// Notes which button of which item has the focus. What this returns is called afterwards: if the
// button is gone, its like in what stands in the item's place has the focus then.
export function noteFocus(list) {
  const focused = document.activeElement;
  const items = [...list.children];
  const item = items.find((one) => one.contains(focused));
  if (!item) return () => {};
  const { key } = item.dataset;
  return () => {
    if (focused.isConnected) return;
    const now = [...list.children];
    const place = Math.min(items.indexOf(item), now.length - 1);
    const same = (key && now.find((one) => one.dataset.key === key)) || now[place];
    const able = [...(same?.querySelectorAll("a[href], button:enabled") ?? [])];
    (able.find((one) => nameOf(one) === nameOf(focused)) ?? able[0])?.focus();
  };
}

// Two icons alike do the same, whatever they do it to.
function nameOf(element) {
  return element.querySelector(".icon")?.textContent ?? element.className;
}
