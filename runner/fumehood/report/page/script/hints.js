// Tooltips: the descriptions that pictures have for screen readers.

/** Follow the pointer over pictures and time lines. */
function showHints() {
  document.addEventListener("pointermove", (event) => {
    const target = event.target instanceof Element ? event.target.closest("svg [aria-label]") : null;
    const text = target && !target.closest(".role-axis, .role-legend") && target.getAttribute("aria-label");
    place(text, event);
  });
}

function place(text, { clientX, clientY }) {
  const hint = byId("hint");
  hint.hidden = !text;
  if (!text) return;
  hint.textContent = text;
  const { width, height } = hint.getBoundingClientRect();
  hint.style.left = `${Math.max(8, Math.min(clientX + 14, innerWidth - width - 8))}px`;
  hint.style.top = `${clientY + 18 + height > innerHeight ? clientY - height - 10 : clientY + 18}px`;
}
