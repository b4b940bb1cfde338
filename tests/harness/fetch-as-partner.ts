import { waitFor } from "./wait-for.ts";

/**
 * Sends a request as a partner does: again while the answer is 503. On a busy machine, an app refuses what had to wait
 * for too long.
 */
export function fetchAsPartner(url: string, request?: RequestInit): Promise<Response> {
  return waitFor(async () => {
    const answer = await fetch(url, request);
    if (answer.status === 503) throw new Error(await answer.text());
    return answer;
  });
}
