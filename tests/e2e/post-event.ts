import { fetchAsPartner } from "@booking-events/harness/fetch-as-partner";
import { expect } from "vitest";

interface Sent {
  secret: string;
  /** By default, create. */
  kind?: string;
  /** Of the trip. */
  reference?: string;
  fields?: object;
  headers?: Record<string, string>;
}

/** Posts an event, whatever the answer is. */
export function postOnce(ingest: { url: string }, sent: Sent): Promise<Response> {
  return fetch(urlOf(ingest, sent), toRequest(sent));
}

/** Posts an event as a partner does: again while the answer is 503. */
export function postEvent(ingest: { url: string }, sent: Sent): Promise<Response> {
  return fetchAsPartner(urlOf(ingest, sent), toRequest(sent));
}

/**
 * Posts an event as a partner does, and expects that it is accepted.
 *
 * @returns its id
 */
export async function postAccepted(ingest: { url: string }, sent: Sent): Promise<string> {
  const response = await postEvent(ingest, sent);
  expect(response.status).toBe(200);
  return ((await response.json()) as { eventId: string }).eventId;
}

function urlOf({ url }: { url: string }, { secret, kind = "create" }: Sent): string {
  return `${url}/booking-event/${kind}/${secret}`;
}

function toRequest({ reference, fields, headers }: Sent): RequestInit {
  return {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify({ consumerTripPartnerExternalReference: reference, ...fields }),
  };
}
