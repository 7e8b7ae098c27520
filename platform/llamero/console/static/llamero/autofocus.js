// Focuses what a page of the admin wants focused. The browser tries as it first paints, and only
// then; the whole page is hidden until Alpine has begun, which on a slow connection is later.
"use strict";

document.addEventListener("alpine:initialized", () => {
  // Alpine uncovers the page in a microtask of its own, asked for before.
  queueMicrotask(() => {
    if (document.activeElement === document.body) document.querySelector("[autofocus]")?.focus();
  });
});
