// Every page is complete without this. It keeps parts of pages up to date, while somebody looks at them.
//
// <div data-live="/live/overview">: the server sends the part's HTML as events; each one replaces the content.

for (const part of document.querySelectorAll("[data-live]")) keepLive(part);

function keepLive(part) {
  let source;
  const follow = () => {
    source?.close();
    // In the background nobody looks, and each open page costs a connection.
    if (document.hidden) return;
    source = new EventSource(part.dataset.live);
    source.onmessage = ({ data }) => replace(part, data);
    source.onopen = () => part.removeAttribute("data-stale");
    source.onerror = () => part.setAttribute("data-stale", "");
  };
  document.addEventListener("visibilitychange", follow);
  addEventListener("pagehide", () => source?.close());
  follow();
}

/** What the visitor has opened stays open, and what is selected or focused is not torn away. */
function replace(part, html) {
  const isUsed = part.contains(document.activeElement) && document.activeElement !== part;
  if (isUsed || !getSelection().isCollapsed || part.querySelector("details[open]")) return;
  part.innerHTML = html;
}
