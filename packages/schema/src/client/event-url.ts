/**
 * Returns the function that builds the URL of each kind of event or question.
 *
 * The messages of its errors repeat neither argument, because either may be, or contain, the secret.
 *
 * @param name of the option that has the address
 * @throws TypeError
 */
export function createEventUrl(baseUrl: string | URL, secret: string, name = "baseUrl"): (kind: string) => string {
  const base = parseBaseUrl(baseUrl, name);
  // A URL loses a segment of dots only. White space comes from a line break at the end of a file or variable.
  if (typeof secret !== "string" || secret === "" || /\s|^\.\.?$/.test(secret) || !secret.isWellFormed()) {
    throw new TypeError("secret must be the secret that we gave you, without white space.");
  }
  return (kind) => `${base}/booking-event/${kind}/${encodeURIComponent(secret)}`;
}

function parseBaseUrl(baseUrl: string | URL, name: string): string {
  const url = URL.canParse(String(baseUrl)) ? new URL(String(baseUrl)) : undefined;
  if (url === undefined || !isProtected(url)) {
    throw new TypeError(`${name} must be an https URL, such as https://bookings.example.com. http is for localhost.`);
  }
  const hasMore = url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "";
  if (hasMore || /\/booking-event(\/|$)/.test(url.pathname)) {
    throw new TypeError(`${name} must end before /booking-event, without credentials, query and fragment.`);
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

/** Over plain HTTP, everyone on the way could read the secret. */
function isProtected({ protocol, hostname }: URL): boolean {
  const isLocal = /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
  return protocol === "https:" || (protocol === "http:" && isLocal);
}
