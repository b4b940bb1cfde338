/**
 * Asks for a partner's activity, and shows it. The secret is in the field alone: it goes into a header, and into no
 * address, history or storage. Whatever the answer holds is shown as text.
 */

const form = document.querySelector("#question");
const secret = document.querySelector("#secret");
const day = document.querySelector("#day");
const status = document.querySelector("#status");
const view = document.querySelector("#activity");
const docs = document.querySelector(".brand").getAttribute("href");

const dayMs = 86_400_000;
const names = ["Today", "Yesterday"];
for (let age = 0; age < 7; age += 1) {
  const date = new Date(Date.now() - age * dayMs).toISOString().slice(0, 10);
  day.append(new Option(`${names[age] ?? date}${age < names.length ? ` (${date})` : ""}, UTC`, date));
}

form.hidden = false;
document.querySelector("#without-script").hidden = true;
form.addEventListener("submit", (event) => {
  event.preventDefault();
  void show();
});
day.addEventListener("change", () => {
  if (secret.value !== "") void show();
});

async function show() {
  say("Asking…");
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    const activity = await ask();
    view.replaceChildren(...describe(activity));
    say(`As of ${toTime(activity.at)}.`, "small soft");
  } catch (error) {
    view.replaceChildren();
    say(error.message, "notice notice-bad");
  } finally {
    button.disabled = false;
  }
}

/** @throws Error with a sentence for the partner */
async function ask() {
  const query = day.value === "" ? "" : `?day=${day.value}`;
  const response = await send(`booking-event/activity${query}`);
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  throw new Error(body.message ?? `The answer has the status ${response.status}.`);
}

async function send(path) {
  const headers = new Headers();
  try {
    headers.set("Authorization", `Bearer ${secret.value.trim()}`);
  } catch {
    throw new Error("The secret has characters that no secret of ours has. Copy it again.");
  }
  try {
    return await fetch(path, { headers, cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer" });
  } catch {
    throw new Error("No answer arrived. Check your connection, and ask again.");
  }
}

function say(text, style = "small soft") {
  status.className = style;
  status.textContent = text;
}

function describe(activity) {
  const held = "Your events are on hold: they get 503. Keep them, and go on trying. We will tell you why.";
  return [
    ...(activity.isHeld ? [element("p", { class: "notice notice-warn" }, held)] : []),
    describeTotals(activity),
    describeHours(activity),
    describeFields("Violations", "Why events were refused, by field.", activity.violations, "violation"),
    describeFields("Warnings", "What accepted events were warned of, by field.", activity.warnings, "warning"),
    describeRefusals(activity.refusals),
    describeNotices(activity),
    describeSecrets(activity.secrets),
    describeLimits(activity.limits),
  ];
}

function describeTotals({ hours, waiting, violations, warnings }) {
  const answers = hours.flatMap((hour) => hour.answers);
  const sum = (isMeant) => answers.filter(isMeant).reduce((total, { count }) => total + count, 0);
  const seen = waiting.oldestAt === null ? "" : `the oldest since ${toTime(waiting.oldestAt)}`;
  const totals = [
    ["Accepted", sum(({ code }) => code === "accepted"), ""],
    [
      "To correct",
      sum(({ status: code }) => code >= 400 && code < 500 && code !== 429 && code !== 408),
      "4xx, never sent again unchanged",
    ],
    ["To send again", sum(({ status: code }) => code >= 500 || code === 429 || code === 408), "408, 429 and 5xx"],
    [
      "Wrong fields",
      new Set([...violations, ...warnings].map(({ field }) => field)).size,
      "with violations or warnings",
    ],
    ["Waiting", waiting.events, waiting.isComplete ? seen : `or more; ${seen}`],
  ];
  return element(
    "section",
    {},
    element("h2", { class: "hidden" }, "Totals"),
    element(
      "dl",
      { class: "totals" },
      ...totals.map(([title, count, about]) =>
        element("div", {}, element("dt", {}, title), element("dd", {}, toCount(count), element("small", {}, about))),
      ),
    ),
  );
}

function describeHours({ hours }) {
  const rows = hours.map(({ at, answers, outcomes, isSample }) => {
    const sum = (isMeant) => answers.filter(isMeant).reduce((total, { count }) => total + count, 0);
    return {
      at,
      answers,
      outcomes,
      isSample,
      good: sum((one) => one.status < 400),
      bad: sum((one) => one.status >= 400),
    };
  });
  const filled = rows.filter(({ good, bad, outcomes }) => good + bad + Object.keys(outcomes).length > 0);
  const highest = Math.max(1, ...rows.map(({ good, bad }) => good + bad));
  const columns = ["Hour", "Answers", "What the events did"];
  const table = toTable("Events by hour", columns, filled.toReversed(), ({ at, answers, outcomes, isSample }) => [
    toTime(at),
    answers.map(({ status: code, code: name, count }) => `${code} ${name}: ${toCount(count)}`).join(", "),
    Object.entries(outcomes)
      .map(([name, count]) => `${name}: ${toCount(count)}`)
      .join(", ") + (isSample ? " (of the first 500)" : ""),
  ]);
  return section(
    "By hour",
    "Requests with events, dry runs included, by what we answered.",
    drawHours(rows, highest),
    element(
      "p",
      { class: "key" },
      element("span", {}, "accepted"),
      element("span", { class: "key-refused" }, "refused"),
      element(
        "span",
        {},
        `${toTime(rows[0]?.at)} to now or the end of the day; the highest bar is ${toCount(highest)}`,
      ),
    ),
    element("details", {}, element("summary", {}, "The numbers"), table),
  );
}

const svgNamespace = "http://www.w3.org/2000/svg";

function drawHours(rows, highest) {
  const [width, height] = [960, 160];
  const step = width / rows.length;
  const text = `Bars for ${rows.length} hours. The numbers are below.`;
  const chart = svg("svg", {
    class: "chart",
    viewBox: `0 0 ${width} ${height}`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": text,
  });
  for (const [index, { good, bad, at }] of rows.entries()) {
    const toHeight = (count) => (count === 0 ? 0 : Math.max(2, (count / highest) * (height - 4)));
    const bar = { x: index * step + 1, width: Math.max(step - 2, 1) };
    const [up, down] = [toHeight(good), toHeight(bad)];
    const column = svg("g", {});
    const title = svg("title", {});
    title.textContent = `${toTime(at)}: ${good} accepted, ${bad} refused`;
    column.append(title);
    column.append(svg("rect", { ...bar, class: "bar-accepted", y: height - up, height: up }));
    column.append(svg("rect", { ...bar, class: "bar-refused", y: Math.max(height - up - down, 0), height: down }));
    chart.append(column);
  }
  chart.append(svg("line", { class: "base", x1: 0, x2: width, y1: height - 0.5, y2: height - 0.5 }));
  return chart;
}

function describeFields(title, about, totals, kind) {
  const columns = ["Field", "Send instead", "Requests", "Last"];
  return section(
    title,
    `${about} They count for whole days, in UTC.`,
    toTable(title, columns, totals, ({ field, code, advice, count, lastAt, lastRequestId }) => [
      lines(element("code", {}, field || "the request"), link(`${docs}#${kind}-${code}`, code)),
      advice,
      toCount(count),
      lines(toTime(lastAt), lastRequestId === null ? "a dry run" : element("code", {}, lastRequestId)),
    ]),
  );
}

function describeRefusals(refusals) {
  const columns = ["Answer", "Violations", "Sent", "Request"];
  return section(
    "Last refusals",
    "Up to 50, the newest first. Quote a request's id when you ask us.",
    toTable("Last refusals", columns, refusals, (refusal) => [
      lines(
        element(
          "span",
          { class: `badge ${refusal.status >= 500 ? "badge-warn" : "badge-bad"}` },
          String(refusal.status),
        ),
        link(`${docs}/reference#code-${answeredCode(refusal)}`, refusal.code),
      ),
      refusal.violations.join(", "),
      [refusal.kind, refusal.secretId && `by ${refusal.secretId}`].filter(Boolean).join(" "),
      lines(toTime(refusal.at), element("code", {}, refusal.requestId)),
    ]),
  );
}

/** Why a secret was refused has codes that no answer has. */
function answeredCode({ status, code }) {
  if (!/-secrets?$|^disabled-partner$|^kind-not-allowed$/.test(code)) return code;
  return status === 429 ? "too-many-guesses" : "invalid-secret";
}

const noticed = {
  "booking-unknown": "Your delete found no booking.",
  "key-reused": "An Idempotency-Key was used for another event of the booking, too. Each event needs its own.",
  "reference-kind":
    "Your delete by a consumer's reference does not concern the consumer's bookings with trip references.",
  replaced: "Your create replaced other content of an active booking. Send updates for changes.",
};

function describeNotices({ notices, failed }) {
  const columns = ["Code", "What it means", "Events", "Newest event"];
  const table = toTable("When your events were applied", columns, notices, ({ code, count, lastEventId }) => [
    element("code", {}, code),
    noticed[code] ?? "",
    count >= 1_000 ? "1,000 or more" : toCount(count),
    element("code", {}, lastEventId),
  ]);
  const letters = toTable("Not applied", ["Event", "Code", "Time"], failed, ({ eventId, code, failedAt }) => [
    element("code", {}, eventId),
    element("code", {}, code),
    toTime(failedAt),
  ]);
  const about = "What showed when your events were applied.";
  return section(
    "When applied",
    about,
    table,
    ...(failed.length === 0
      ? []
      : [
          element(
            "p",
            { class: "notice notice-bad" },
            "We could not apply these events. We know of them: quote the code when you ask us.",
          ),
          letters,
        ]),
  );
}

function describeSecrets(secrets) {
  const columns = ["Secret", "State", "Expires", "Last used"];
  return section(
    "Secrets",
    "By their ids: nobody can read a secret again.",
    toTable("Secrets", columns, secrets, ({ id, isInUse, isValid, expiresAt, lastUsedAt }) => [
      element("span", {}, element("code", {}, id), isInUse ? " used here" : ""),
      element("span", { class: `badge ${isValid ? "badge-good" : ""}` }, isValid ? "valid" : "not valid"),
      expiresAt === null ? "never" : toTime(expiresAt),
      lastUsedAt === null ? "unknown" : toTime(lastUsedAt),
    ]),
  );
}

function describeLimits({ perSecond, burst, available, bytesPerDay, bytesToday, dayEndsAt }) {
  const rows = [
    [
      "Rate",
      `${toCount(perSecond)} a second, ${toCount(burst)} at once`,
      `${toCount(burst - available)} of ${toCount(burst)}`,
      burst - available,
      burst,
    ],
    ["Bytes today", `${toBytes(bytesPerDay)} until ${toTime(dayEndsAt)}`, toBytes(bytesToday), bytesToday, bytesPerDay],
  ];
  return section(
    "Limits",
    "Of your events. These questions have a rate limit of their own.",
    toTable("Limits", ["Limit", "You may", "Used now", "Share"], rows, ([title, limit, used, value, max]) => [
      title,
      limit,
      used,
      element("meter", { min: 0, max, value, "aria-label": `${title}: ${used}` }),
    ]),
  );
}

function section(title, about, ...content) {
  return element("section", {}, element("h2", {}, title), element("p", { class: "small soft" }, about), ...content);
}

/** @param toCells returns a text or a node for each column */
function toTable(caption, columns, rows, toCells) {
  if (rows.length === 0) return element("p", { class: "soft" }, "None.");
  const cells = (row) =>
    toCells(row).map((cell, index) =>
      index === 0 ? element("th", { scope: "row" }, cell) : element("td", { "data-label": columns[index] }, cell),
    );
  return element(
    "div",
    { class: "table" },
    element(
      "table",
      {},
      element("caption", { class: "hidden" }, caption),
      element("thead", {}, element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells(row)))),
    ),
  );
}

function lines(...parts) {
  return element("div", { class: "lines" }, ...parts.map((part) => element("div", {}, part)));
}

function link(href, text) {
  return element("a", { href }, element("code", {}, text));
}

function element(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes) {
  return fill(document.createElementNS(svgNamespace, name), attributes, []);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

/** In UTC, as everything that we count. */
function toTime(text) {
  if (text === undefined) return "";
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? String(text) : `${date.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

function toCount(count) {
  return Number(count).toLocaleString("en");
}

function toBytes(bytes) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  const unit = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1);
  return `${Number((bytes / 1_000 ** unit).toPrecision(3))} ${units[unit]}`;
}
