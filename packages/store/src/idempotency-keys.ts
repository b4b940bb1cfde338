import type { Queryable } from "./database.ts";

export interface IdempotencyClaim {
  partner: string;
  idempotencyKey: string;
  eventId: string;
  sequence: number;
}

/**
 * Claims each key for its event unless it has an owner, and locks all of them until the transaction ends.
 *
 * @param claims one for each key
 * @returns the owner of each key, which may be another event
 */
export async function claimIdempotencyKeys(client: Queryable, claims: IdempotencyClaim[]): Promise<IdempotencyClaim[]> {
  // Both statements take the keys in one order, so that two transactions never wait for each other.
  const sorted = claims.toSorted(
    (a, b) => compare(a.partner, b.partner) || compare(a.idempotencyKey, b.idempotencyKey),
  );
  const partners = sorted.map(({ partner }) => partner);
  const keys = sorted.map(({ idempotencyKey }) => idempotencyKey);
  const { rowCount } = await client.query(
    `insert into idempotency_keys (partner, idempotency_key, event_id, sequence)
     select * from unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[])
     on conflict (partner, idempotency_key) do nothing`,
    [partners, keys, sorted.map(({ eventId }) => eventId), sorted.map(({ sequence }) => sequence)],
  );
  // None had an owner, as usual; and who inserts a row has its lock.
  if (rowCount === sorted.length) return sorted;
  const { rows } = await client.query<IdempotencyClaim>(
    `select partner, idempotency_key as "idempotencyKey", event_id as "eventId", sequence
     from idempotency_keys
     where (partner, idempotency_key) in (select * from unnest($1::text[], $2::text[]))
     order by partner, idempotency_key
     for update`,
    [partners, keys],
  );
  return rows;
}

/** Gives keys to events that were received before their owners. The keys must be locked by this transaction. */
export async function updateKeyOwners(client: Queryable, owners: IdempotencyClaim[]): Promise<void> {
  await client.query(
    `update idempotency_keys set event_id = owner.event_id, sequence = owner.sequence
     from unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[])
       as owner (partner, idempotency_key, event_id, sequence)
     where idempotency_keys.partner = owner.partner and idempotency_keys.idempotency_key = owner.idempotency_key`,
    [
      owners.map(({ partner }) => partner),
      owners.map(({ idempotencyKey }) => idempotencyKey),
      owners.map(({ eventId }) => eventId),
      owners.map(({ sequence }) => sequence),
    ],
  );
}

/** By code unit, as PostgreSQL's "C" collation orders these ASCII texts. */
function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
