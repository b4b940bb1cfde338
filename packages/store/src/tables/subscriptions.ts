import type { Queryable } from "../connect/queryable.ts";
import { allowLongStatements, defaultSchema } from "../connect/transaction-limits.ts";
import type { FeedChange } from "./booking-changes.ts";

/** Who gets the changes of bookings: by posts to `url`, or, if that is null, by asking for them with a token. */
export interface Subscription {
  name: string;
  url: string | null;
  /** `latest`: what has waited is skipped if a newer change of the booking exists. Null: the subscriber pulls. */
  mode: "latest" | "every" | null;
  payload: "thin" | "full";
  /** Each null: all. */
  partners: string[] | null;
  changes: FeedChange[] | null;
  /** Destinations, by their code in ISO 3166-1 alpha-2. */
  countries: string[] | null;
  /** The window around the day of the change; null: no matter when the guest arrives. */
  arrivalFromDays: number | null;
  arrivalToDays: number | null;
  /** Its reader begins after this change: the newest when it was added, or an earlier one if it was given that since. */
  fromId: number;
  signature: "hmac" | "ed25519" | null;
  /** Until when the key or token before the last rotation is in use. */
  previousKeyUntil: Date | null;
  pausedAt: Date | null;
  pauseReason: string | null;
  pausedBy: string | null;
  createdAt: Date;
  createdBy: string;
  updatedAt: Date;
}

/** What a subscription's posts are signed with: `whsec_…`, the secret of hmac, or `whsk_…`, the private key of ed25519. */
export interface SigningKeys {
  signingKey: string;
  /** The key before a rotation, while it is in use. */
  previousSigningKey: string | null;
}

/** An active subscription that is posted to. */
export type WebhookSubscription = Subscription &
  SigningKeys & { url: string; mode: "latest" | "every"; signature: "hmac" | "ed25519" };

/** Either the posts' or the token's are given. */
export interface SubscriptionToAdd
  extends Omit<
    Subscription,
    "fromId" | "previousKeyUntil" | "pausedAt" | "pauseReason" | "pausedBy" | "createdAt" | "updatedAt"
  > {
  signingKey: string | null;
  /** The token's SHA-256. */
  tokenSha256: Buffer | null;
}

/**
 * The channel that every write of a subscription notifies.
 *
 * @param schema where the tables are
 */
export function channelOfSubscriptions(schema: string): string {
  return schema === defaultSchema ? "subscriptions" : `${schema.slice(0, 49)}_subscriptions`;
}

/** @returns `taken`: a subscription or another reader of the feed has the name */
export async function insertSubscription(client: Queryable, added: SubscriptionToAdd): Promise<"added" | "taken"> {
  const { rowCount } = await client.query(
    `insert into subscriptions (name, url, mode, payload, partners, changes, countries, arrival_from_days,
       arrival_to_days, from_id, signature, signing_key, token_sha256, created_by)
     select $1, $2, $3, $4, $5, $6, $7, $8, $9, last_id, $10, $11, $12, $13 from feed_position
     where not exists (select from feed_readers where name = $1)
     on conflict (name) do nothing`,
    [
      added.name,
      added.url,
      added.mode,
      added.payload,
      added.partners,
      added.changes,
      added.countries,
      added.arrivalFromDays,
      added.arrivalToDays,
      added.signature,
      added.signingKey,
      added.tokenSha256,
      added.createdBy,
    ],
  );
  return rowCount === 1 ? "added" : "taken";
}

const columns = `name, url, mode, payload, partners, changes, countries, arrival_from_days as "arrivalFromDays",
  arrival_to_days as "arrivalToDays", from_id::float8 as "fromId", signature,
  case when previous_key_until > now() then previous_key_until end as "previousKeyUntil", paused_at as "pausedAt",
  pause_reason as "pauseReason", paused_by as "pausedBy", created_at as "createdAt", created_by as "createdBy",
  updated_at as "updatedAt"`;

export async function listSubscriptions(client: Queryable): Promise<Subscription[]> {
  const { rows } = await client.query<Subscription>(`select ${columns} from subscriptions order by name`);
  return rows;
}

export async function findSubscription(client: Queryable, name: string): Promise<Subscription | undefined> {
  const { rows } = await client.query<Subscription>(`select ${columns} from subscriptions where name = $1`, [name]);
  return rows[0];
}

const keys = `signing_key as "signingKey",
  case when previous_key_until > now() then previous_signing_key end as "previousSigningKey"`;

/** For the process that posts. Those that are paused are left out. */
export async function listWebhookSubscriptions(client: Queryable): Promise<WebhookSubscription[]> {
  const { rows } = await client.query<WebhookSubscription>(
    `select ${columns}, ${keys} from subscriptions where url is not null and paused_at is null order by name`,
  );
  return rows;
}

/** @returns undefined if it is not posted to, or unknown */
export async function readSigningKeys(client: Queryable, name: string): Promise<SigningKeys | undefined> {
  const { rows } = await client.query<SigningKeys>(
    `select ${keys} from subscriptions where name = $1 and url is not null`,
    [name],
  );
  return rows[0];
}

/** A subscription whose subscriber pulls, and the SHA-256 of the token that it may use. */
export interface PullSubscription extends Subscription {
  tokenSha256: Buffer;
  /** The token before a rotation, while it is in use. */
  previousTokenSha256: Buffer | null;
  /** It is paused, and this ends by itself. */
  resumesSoon: boolean;
}

/** The reason of a pause that ends by itself, unless the process that changes the filter dies. */
export const filterChanges = "Its filter is being changed.";
/** Longer than it takes. */
const longestFilterChange = "30 minutes";

/** For the process that answers those who pull, whether they are paused or not. */
export async function listPullSubscriptions(client: Queryable): Promise<PullSubscription[]> {
  const { rows } = await client.query<PullSubscription>(
    `select ${columns}, token_sha256 as "tokenSha256",
       case when previous_key_until > now() then previous_token_sha256 end as "previousTokenSha256",
       pause_reason is not distinct from $1
         and now() - paused_at between -interval '${longestFilterChange}' and interval '${longestFilterChange}'
         as "resumesSoon"
     from subscriptions where token_sha256 is not null`,
    [filterChanges],
  );
  return rows;
}

/**
 * Pauses an active subscription. One that is paused already keeps its reason.
 *
 * @returns whether it was active
 */
export async function pauseSubscription(
  client: Queryable,
  name: string,
  { reason, by }: { reason: string | null; by: string },
): Promise<boolean> {
  const { rowCount } = await client.query(
    `update subscriptions set paused_at = now(), pause_reason = $2, paused_by = $3, updated_at = now()
     where name = $1 and paused_at is null`,
    [name, reason, by],
  );
  return rowCount === 1;
}

/**
 * Pauses the subscriptions of which every attempt has failed for so long, and that still have a booking to deliver. It has
 * been parked, or, if the subscriber only ever asks for a pause, is the first that the reader's place has not passed.
 *
 * @returns their names
 */
export async function pauseFailingSubscriptions(
  client: Queryable,
  { days, reason, by }: { days: number; reason: string; by: string },
): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `update subscriptions set paused_at = now(), pause_reason = $2, paused_by = $3, updated_at = now()
     from feed_readers as reader
     where reader.name = subscriptions.name and paused_at is null and url is not null
       and failing_since < now() - make_interval(days => $1)
       and (
         exists (select from feed_deliveries where feed_deliveries.reader = reader.name and retry_at is not null)
         or exists (
           select from booking_changes
           where id = reader.last_id + 1 and changed_at < now() - make_interval(days => $1)
         )
       )
     returning subscriptions.name`,
    [days, reason, by],
  );
  return rows.map(({ name }) => name);
}

/**
 * Run this in a transaction.
 *
 * @returns whether it was paused
 */
export async function resumeSubscription(client: Queryable, name: string): Promise<boolean> {
  // Otherwise it would be paused again for having failed for days. First, as in every transaction that locks both.
  await client.query(
    `update feed_readers set failing_since = null, breaker_opened_at = null, probe_at = null
     where name = $1 and exists (select from subscriptions where name = $1 and paused_at is not null)`,
    [name],
  );
  const { rowCount } = await client.query(
    `update subscriptions set paused_at = null, pause_reason = null, paused_by = null, updated_at = now()
     where name = $1 and paused_at is not null`,
    [name],
  );
  return rowCount === 1;
}

/** Of millions of changes. */
const rememberingTimeoutMs = 15 * 60 * 1_000;

/** What can be changed of a subscription. */
export type SubscriptionSettings = Pick<
  Subscription,
  "url" | "mode" | "payload" | "partners" | "changes" | "countries" | "arrivalFromDays" | "arrivalToDays"
>;

/**
 * Changes a subscription, which keeps its place. Run this in a transaction.
 *
 * @param options.remembers all bookings that its reader may have been given are written to feed_handed, since its filter
 * did not need that so far. Nobody may deliver meanwhile, or what was given last would be missing
 * @param options.resumes it was paused for the change only
 * @returns `busy`: it is to remember, and a process still delivers
 */
export async function changeSubscription(
  client: Queryable,
  name: string,
  wanted: SubscriptionSettings,
  { remembers, resumes }: { remembers: boolean; resumes: boolean },
): Promise<"changed" | "busy" | "unknown"> {
  if (remembers) {
    if (await isBusy(client, name)) return "busy";
    await rememberAllHanded(await allowLongStatements(client, rememberingTimeoutMs), name);
  }
  // It says nothing of a new URL that the old one has failed.
  await client.query(
    `update feed_readers set failing_since = null, breaker_opened_at = null, probe_at = null
     where name = $1 and exists (select from subscriptions where name = $1 and url is distinct from $2)`,
    [name, wanted.url],
  );
  const { rowCount } = await client.query(
    `update subscriptions set url = $2, mode = $3, payload = $4, partners = $5, changes = $6, countries = $7,
       arrival_from_days = $8, arrival_to_days = $9, updated_at = now(),
       paused_at = case when not $10 then paused_at end, pause_reason = case when not $10 then pause_reason end,
       paused_by = case when not $10 then paused_by end
     where name = $1`,
    [
      name,
      wanted.url,
      wanted.mode,
      wanted.payload,
      wanted.partners,
      wanted.changes,
      wanted.countries,
      wanted.arrivalFromDays,
      wanted.arrivalToDays,
      resumes,
    ],
  );
  return rowCount === 1 ? "changed" : "unknown";
}

/**
 * Takes for known whatever the reader may ever have been given: what it was told twice, or was given before a replay, and
 * what has left the feed. To be told of the end of a booking that it does not know does it no harm.
 */
async function rememberAllHanded(client: Queryable, name: string): Promise<void> {
  await client.query(
    `with reader as (
       -- A subscriber who pulls may have begun before the subscription was added.
       select name, case when url is null then 0 else from_id end as from_id, partners,
         greatest(last_id, given_id) as given_id
       from feed_readers join subscriptions using (name) where name = $1
     )
     insert into feed_handed (reader, booking_id, is_inside)
     select reader.name, change.booking_id, bool_or(change.id <= reader.given_id)
     from reader join booking_changes as change
       on change.id > reader.from_id and (reader.partners is null or change.partner = any(reader.partners))
     group by reader.name, change.booking_id
     union all
     select reader.name, booking.booking_id, true
     from reader join bookings as booking on reader.partners is null or booking.partner = any(reader.partners)
     where reader.from_id + 1 < (select kept_from from feed_position)
       and not exists (select from booking_changes as change where change.booking_id = booking.booking_id)
     on conflict (reader, booking_id) do update set is_inside = excluded.is_inside`,
    [name],
  );
}

/**
 * Gives a subscription a new key or token, as it has one or the other. The one before it stays in use for a while.
 *
 * @returns until when; undefined: there is no such subscription
 */
export async function rotateKeys(
  client: Queryable,
  rotated: Pick<SubscriptionToAdd, "name" | "signingKey" | "tokenSha256"> & { keepHours: number },
): Promise<Date | undefined> {
  const { rows } = await client.query<{ until: Date }>(
    `update subscriptions set previous_signing_key = signing_key, signing_key = $2,
       previous_token_sha256 = token_sha256, token_sha256 = $3,
       previous_key_until = now() + make_interval(secs => $4::float8 * 3600), updated_at = now()
     where name = $1
     returning previous_key_until as until`,
    [rotated.name, rotated.signingKey, rotated.tokenSha256, rotated.keepHours],
  );
  return rows[0]?.until;
}

/**
 * Removes a paused subscription and its reader. Run this in a transaction.
 *
 * @returns `busy`: a process has not noticed yet that it is paused, and would create the reader again
 */
export async function removeSubscription(client: Queryable, name: string): Promise<"removed" | "busy" | "unknown"> {
  if (await isBusy(client, name)) return "busy";
  const { rowCount } = await client.query("delete from subscriptions where name = $1", [name]);
  if (rowCount === 0) return "unknown";
  await client.query("delete from feed_readers where name = $1", [name]);
  return "removed";
}

/**
 * Whether a process has renewed its lease within the 10 s for which nobody else takes it. A time in the future is from a clock
 * that was ahead. Locks the reader, so that it stays as it is.
 */
async function isBusy(client: Queryable, name: string): Promise<boolean> {
  const { rows } = await client.query<{ isBusy: boolean }>(
    `select active_id is not null and abs(extract(epoch from now() - seen_at)) < 10 as "isBusy"
     from feed_readers where name = $1 for update`,
    [name],
  );
  return rows[0]?.isBusy ?? false;
}
