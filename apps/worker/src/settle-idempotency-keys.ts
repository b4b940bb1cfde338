import { claimIdempotencyKeys, type IdempotencyClaim, type Queryable, updateKeyOwners } from "@booking-events/store";
import type { IncomingEvent } from "./incoming-event.ts";

export interface KeySettlement {
  /** Events of the batch that carry an earlier event's key: by their id, the earlier event's. */
  keyDuplicates: Map<string, string>;
  /** Events in the log that carry the key of an event of the batch which was received before them: likewise. */
  displaced: Map<string, string>;
}

/**
 * Of all events of a partner with one idempotency key, the one received first counts, in whatever order they are
 * applied. So an event that was applied already may lose its place to one that was held up.
 *
 * @param events in sequence order
 */
export async function settleIdempotencyKeys(client: Queryable, events: IncomingEvent[]): Promise<KeySettlement> {
  const settlement: KeySettlement = { keyDuplicates: new Map(), displaced: new Map() };
  const claims = events.flatMap(toClaim);
  if (claims.length === 0) return settlement;

  const firstClaims = new Map<string, IdempotencyClaim>();
  for (const claim of claims) {
    if (!firstClaims.has(nameOf(claim))) firstClaims.set(nameOf(claim), claim);
  }
  const owners = new Map<string, string>();
  const newOwners: IdempotencyClaim[] = [];
  for (const owner of await claimIdempotencyKeys(client, [...firstClaims.values()])) {
    const first = firstClaims.get(nameOf(owner));
    if (first !== undefined && first.sequence < owner.sequence) {
      settlement.displaced.set(owner.eventId, first.eventId);
      newOwners.push(first);
      owners.set(nameOf(owner), first.eventId);
    } else {
      owners.set(nameOf(owner), owner.eventId);
    }
  }
  if (newOwners.length > 0) await updateKeyOwners(client, newOwners);

  for (const claim of claims) {
    const ownerId = owners.get(nameOf(claim));
    if (ownerId !== undefined && ownerId !== claim.eventId) settlement.keyDuplicates.set(claim.eventId, ownerId);
  }
  return settlement;
}

function toClaim({ partner, idempotencyKey, id, sequence }: IncomingEvent): IdempotencyClaim[] {
  return idempotencyKey === null ? [] : [{ partner, idempotencyKey, eventId: id, sequence }];
}

/** Neither a partner's id nor a key holds a space. */
function nameOf({ partner, idempotencyKey }: IdempotencyClaim): string {
  return `${partner} ${idempotencyKey}`;
}
