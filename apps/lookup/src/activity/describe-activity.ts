import { isValid, type Partner } from "@booking-events/partners";
import { type AnswerCount, addUpDays, type FieldCount } from "@booking-events/queue";
import type { Activity } from "@booking-events/schema";
import { timeOfId } from "@booking-events/store";
import type { ActivityWindow } from "./activity-window.ts";
import { adviseOnViolation, adviseOnWarning } from "./advise.ts";
import type { KnownActivity } from "./read-activity.ts";

const maxRefusals = 50;

/** A partner's view of what it has sent. It has names of fields and rules, and nothing that anybody wrote. */
export function describeActivity(
  known: KnownActivity,
  { partner, secretId, window, now }: { partner: Partner; secretId: string; window: ActivityWindow; now: Date },
): Activity {
  const [from, until] = [window.hours[0]?.from ?? now, window.hours.at(-1)?.until ?? now];
  return {
    partner: partner.id,
    at: known.at.toISOString(),
    from: from.toISOString(),
    until: until.toISOString(),
    isHeld: partner.held,
    waiting: describeWaiting(known, partner),
    hours: describeHours(known, window),
    refusals: known.refusals
      .filter(({ at }) => at >= from && at < until)
      .slice(0, maxRefusals)
      .map(({ partner: _, ip: __, subject: ___, at, ...refusal }) => ({ ...refusal, at: at.toISOString() })),
    violations: totalOf(known.violations, adviseOnViolation),
    warnings: totalOf(known.warnings, adviseOnWarning),
    notices: known.notices,
    failed: known.failed.map(({ failedAt, ...failed }) => ({ ...failed, failedAt: failedAt.toISOString() })),
    secrets: partner.secrets.map((secret, index) => ({
      id: secret.id,
      isInUse: secret.id === secretId,
      isValid: isValid(secret, now),
      expiresAt: secret.expiresAt,
      lastUsedAt: known.lastUses[index]?.toISOString() ?? null,
    })),
    limits: {
      ...partner.rateLimit,
      available: known.limits.available,
      bytesPerDay: partner.bytesPerDay,
      bytesToday: known.limits.bytesToday,
      dayEndsAt: known.limits.dayEndsAt.toISOString(),
    },
  };
}

function describeWaiting({ waiting }: KnownActivity, { id }: Partner): Activity["waiting"] {
  const { isComplete } = waiting;
  const own = waiting.ofPartners.get(id);
  if (own === undefined) return { events: 0, oldestEventId: null, oldestAt: null, isComplete };
  const { events, oldestId } = own;
  return { events, oldestEventId: oldestId, oldestAt: new Date(timeOfId(oldestId)).toISOString(), isComplete };
}

function describeHours({ paces, answers }: KnownActivity, { hours }: ActivityWindow): Activity["hours"] {
  const byHour = Map.groupBy(answers, ({ hour }) => hour);
  return hours.map(({ from }, index) => {
    const at = from.toISOString();
    const { outcomes = {}, isEstimate: isSample = false } = paces[index] ?? {};
    return {
      at,
      answers: (byHour.get(at.slice(0, "2027-05-02T10".length)) ?? []).map(toTotal).sort(byCount),
      outcomes,
      isSample,
    };
  });
}

function toTotal({ status, code, count }: AnswerCount): Activity["hours"][number]["answers"][number] {
  return { status, code, count };
}

function totalOf(
  counts: readonly FieldCount[],
  advise: (field: string, code: string) => string,
): Activity["violations"] {
  return addUpDays(counts).map(({ field, code, count, firstAt, lastAt, lastEventId }) => ({
    field,
    code,
    advice: advise(field, code),
    count,
    firstAt: firstAt.toISOString(),
    lastAt: lastAt.toISOString(),
    lastRequestId: lastEventId,
  }));
}

function byCount(one: { count: number }, other: { count: number }): number {
  return other.count - one.count;
}
