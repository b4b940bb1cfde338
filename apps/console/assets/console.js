// Every page is complete without this. It keeps parts of pages up to date, while somebody looks at them.
//
// <div data-live="/live/overview">: the server sends the part's HTML as events; each one replaces the content.
// <div id="task" data-refresh="2">: the page is fetched again every so many seconds, and replaces the part, while it says so.
// <form data-slider="state">: a range moves through the choices of a list, and each replaces the part with that id.
// What has data-without-script is hidden: it does the same without.

document.documentElement.classList.add("scripted");
for (const part of document.querySelectorAll("[data-live]")) keepLive(part);
for (const form of document.querySelectorAll("form[data-slider]")) slide(form);
for (const part of document.querySelectorAll("[data-refresh]")) refresh(part);

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

function slide(form) {
  const [range, list] = [form.querySelector("[type=range]"), form.querySelector("select")];
  let loading;
  const show = async () => {
    loading?.abort();
    loading = new AbortController();
    range.setAttribute("aria-valuetext", list.selectedOptions[0].text);
    const url = new URL(form.action);
    url.search = new URLSearchParams(new FormData(form));
    if (await load(url, form.dataset.slider, loading.signal)) history.replaceState(null, "", url);
  };
  range.hidden = false;
  range.setAttribute("aria-valuetext", list.selectedOptions[0].text);
  range.addEventListener("input", () => {
    list.selectedIndex = range.valueAsNumber;
    void show();
  });
  list.addEventListener("change", () => {
    range.value = list.selectedIndex;
    void show();
  });
}

function refresh(part) {
  setTimeout(async () => {
    if (!document.hidden && getSelection().isCollapsed && part.querySelector("details[open]") === null)
      await load(new URL(location.href), part.id);
    const now = document.getElementById(part.id);
    if (now.dataset.refresh) refresh(now);
  }, 1_000 * part.dataset.refresh);
}

/** Replaces a part of this page by that of another. If that one has none, such as that of a login, it is opened. */
async function load(url, id, signal) {
  try {
    const answer = await fetch(url, { signal });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const part = page.getElementById(id);
    if (part === null) return location.assign(url);
    const old = document.getElementById(id);
    const focused = [...old.querySelectorAll("a, button")].indexOf(document.activeElement);
    old.replaceWith(part);
    part.querySelectorAll("a, button")[focused]?.focus();
    return true;
  } catch {
    // It was cancelled by the next one, or the console can't be reached at the moment.
    return false;
  }
}
