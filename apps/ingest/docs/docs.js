// @ts-check
/** What all pages of `/docs` do with JavaScript. Without it, they can be read, and their tabs and contents work. */

/** Where this page's service is, without a slash at the end. */
export const serviceUrl = new URL("..", import.meta.url).href.replace(/\/$/, "");
/** Where the questions of partners are answered. */
export const lookupUrl =
  document.querySelector('meta[name="lookup-url"]')?.getAttribute("content")?.replace(/\/$/, "") || serviceUrl;

const languageKey = "docs-language";

showOwnHost();
chooseLanguage(recall(() => localStorage.getItem(languageKey)));
document.addEventListener("change", ({ target }) => {
  if (!(target instanceof HTMLInputElement) || target.closest(".tabs") === null) return;
  recall(() => localStorage.setItem(languageKey, target.value));
  keepInView(target, () => chooseLanguage(target.value));
});
for (const block of document.querySelectorAll(".code")) addCopyButton(block);
markPlace();
closeContents();
prepareSearch();

/** In samples, in place of the host that the guide has as an example. */
function showOwnHost() {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    text.nodeValue = (text.nodeValue ?? "").replaceAll(
      /(LOOKUP_URL=)?https:\/\/bookings\.example\.com(\/booking-event\/(?:receipt|booking|reconcile|activity)\/)?/g,
      (_, variable = "", path = "") => variable + (variable || path ? lookupUrl : serviceUrl) + path,
    );
  }
}

/**
 * A browser may forbid pages to keep anything. Then the choice is that of the page.
 *
 * @template Kept
 * @param {() => Kept} use
 */
function recall(use) {
  try {
    return use();
  } catch {
    return null;
  }
}

/** @param {string | null} language in all tabs that have it */
function chooseLanguage(language) {
  for (const input of document.querySelectorAll(".tabs input"))
    if (input instanceof HTMLInputElement && input.value === language) input.checked = true;
}

/**
 * Other tabs change their height, too.
 *
 * @param {Element} element
 * @param {() => void} change
 */
function keepInView(element, change) {
  const { top } = element.getBoundingClientRect();
  change();
  scrollBy({ top: element.getBoundingClientRect().top - top, behavior: "instant" });
}

/** @param {Element} block */
function addCopyButton(block) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "copy", textContent: "Copy" });
  button.addEventListener("click", async () => {
    const shown = [...block.querySelectorAll("pre")].find((each) => each.checkVisibility());
    await navigator.clipboard.writeText(shown?.textContent ?? "");
    button.textContent = "Copied";
    setTimeout(() => {
      button.textContent = "Copy";
    }, 2_000);
  });
  // Browsers have no clipboard for pages that came without TLS.
  if (navigator.clipboard) block.querySelector("figcaption, .choices")?.append(button);
}

/** Marks in the contents which part of the page is being read. */
function markPlace() {
  const contents = document.getElementById("contents");
  /** @type {Map<string, Element>} */
  const links = new Map();
  for (const link of contents?.querySelectorAll('a[href^="#"]') ?? [])
    links.set(link.getAttribute("href")?.slice(1) ?? "", link);
  const sections = [...document.querySelectorAll("main section[id]")].filter(({ id }) => links.has(id));
  /** @type {Set<Element>} */
  const visible = new Set();
  /** @type {Element | undefined} */
  let current;
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) isIntersecting ? visible.add(target) : visible.delete(target);
      const next = links.get(sections.findLast((section) => visible.has(section))?.id ?? "");
      if (next === undefined || next === current) return;
      current?.removeAttribute("aria-current");
      next.setAttribute("aria-current", "location");
      current = next;
      showInContents(next, contents);
    },
    // A line below the bar at the top.
    { rootMargin: "-90px 0px -80% 0px" },
  );
  for (const section of sections) observer.observe(section);
}

/**
 * Scrolls the contents, never the page.
 *
 * @param {Element} link
 * @param {HTMLElement | null} contents
 */
function showInContents(link, contents) {
  if (contents === null) return;
  const { top, bottom } = link.getBoundingClientRect();
  const frame = contents.getBoundingClientRect();
  if (top < frame.top + 40 || bottom > frame.bottom - 40) contents.scrollTop += top - frame.top - frame.height / 3;
}

/** On a phone they cover the page. */
function closeContents() {
  const contents = document.getElementById("contents");
  contents?.addEventListener("click", ({ target }) => {
    if (target instanceof HTMLAnchorElement && contents.matches(":popover-open")) contents.hidePopover();
  });
}

function prepareSearch() {
  const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("search"));
  const button = /** @type {HTMLButtonElement} */ (document.getElementById("search-button"));
  const input = /** @type {HTMLInputElement} */ (document.getElementById("search-words"));
  const results = /** @type {HTMLElement} */ (document.getElementById("search-results"));
  /** @type {Promise<string[][]> | undefined} */
  let index;
  const open = async () => {
    if (dialog.open) return;
    dialog.showModal();
    input.select();
    index ??= fetch(new URL("search.json", import.meta.url)).then((response) => response.json());
    showFound(input.value, await index);
  };
  button.hidden = false;
  button.addEventListener("click", open);
  input.addEventListener("input", async () => showFound(input.value, (await index) ?? []));
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    results.querySelector("a")?.click();
  });
  results.addEventListener("click", ({ target }) => {
    if (target instanceof Element && target.closest("a") !== null) dialog.close();
  });
  dialog.addEventListener("click", ({ target }) => {
    if (target === dialog) dialog.close();
  });
  dialog.addEventListener("keydown", (event) => moveFocus(event, [input, ...results.querySelectorAll("a")]));
  document.addEventListener("keydown", (event) => {
    const isTyping =
      event.target instanceof Element && event.target.matches("input:not([type=radio]), textarea, select");
    const isAsked = event.key === "/" ? !isTyping : event.key === "k" && (event.ctrlKey || event.metaKey);
    if (!isAsked) return;
    event.preventDefault();
    void open();
  });
}

/**
 * @param {KeyboardEvent} event
 * @param {HTMLElement[]} stops
 */
function moveFocus(event, stops) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const place = stops.findIndex((stop) => stop === document.activeElement);
  stops[Math.min(Math.max(place + step, 0), stops.length - 1)]?.focus();
}

/**
 * @param {string} words
 * @param {string[][]} index
 */
function showFound(words, index) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = wanted.length === 0 ? [] : findEntries(wanted, index);
  const status = found.length === 0 ? "Nothing found." : `${found.length} found`;
  const say = /** @type {HTMLElement} */ (document.getElementById("search-status"));
  say.textContent = wanted.length === 0 ? "" : status;
  document
    .getElementById("search-results")
    ?.replaceChildren(...found.slice(0, 20).map((entry) => toResult(entry, wanted)));
}

/**
 * All words must appear. What has them in its title comes first, and there what begins with them.
 *
 * @param {string[]} wanted
 * @param {string[][]} index
 */
function findEntries(wanted, index) {
  const rank = ([title = "", where = "", , text = ""]) => {
    const name = title.toLowerCase();
    const all = `${name} ${where} ${text}`.toLowerCase();
    if (!wanted.every((word) => all.includes(word))) return Number.POSITIVE_INFINITY;
    if (wanted.every((word) => name.includes(word))) return name.startsWith(wanted[0] ?? "") ? name.length / 1_000 : 1;
    return 2;
  };
  return index
    .map((entry) => ({ entry, rank: rank(entry) }))
    .filter((each) => each.rank < Number.POSITIVE_INFINITY)
    .sort((one, other) => one.rank - other.rank)
    .map(({ entry }) => entry);
}

/**
 * @param {string[]} entry
 * @param {string[]} wanted
 */
function toResult([title = "", where = "", href = "", text = ""], wanted) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = `${serviceUrl}/${href}`;
  const at = Math.max(text.toLowerCase().indexOf(wanted[0] ?? "") - 40, 0);
  const parts = { strong: title, span: where, small: `${at > 0 ? "…" : ""}${text.slice(at, at + 130)}` };
  for (const [name, content] of Object.entries(parts)) {
    const part = document.createElement(name);
    part.textContent = content;
    link.append(part);
  }
  item.append(link);
  return item;
}
