/** What must not be seen, by a name for the test report. */
export type Secrets = Readonly<Record<string, string>>;

/** The names of the secrets that a text contains, as they are or in a common encoding. */
export function findLeaks(text: string, secrets: Secrets): string[] {
  const inLowerCase = text.toLowerCase();
  return Object.entries(secrets)
    .filter(([, secret]) => formsOf(secret).some((form) => inLowerCase.includes(form.toLowerCase())))
    .map(([name]) => name);
}

/** Compared without case: headers, host names and hex digits lose theirs. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  return [secret, encodeURIComponent(secret), bytes.toString("hex"), ...base64FormsOf(bytes)];
}

/**
 * Base64 of a longer text that contains the secret. There are three ways, by where the secret begins. The first and
 * last characters also depend on the text around the secret, so they are left out.
 */
function base64FormsOf(bytes: Buffer): string[] {
  return [0, 1, 2].map((before) => {
    const whole = Buffer.concat([Buffer.alloc(before), bytes]);
    const usable = whole.subarray(before === 0 ? 0 : 3, whole.length - (whole.length % 3));
    return usable.toString("base64");
  });
}
