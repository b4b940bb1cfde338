import type { Answer } from "./exchange.ts";

/** For reports, which are passed on: a careless receiver may repeat the secret in its answer. */
export function hideSecret(text: string, secret: string): string {
  return formsOf(secret).reduce((rest, form) => rest.replaceAll(form, "[secret]"), text);
}

export function containsSecret({ head, body }: Answer, secret: string): boolean {
  return formsOf(secret).some((form) => head.includes(form) || body.includes(form));
}

/** As given, and as it is sent in the path. */
function formsOf(secret: string): string[] {
  return [secret, encodeURIComponent(secret)];
}
