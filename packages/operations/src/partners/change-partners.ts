import {
  type Admission,
  addPartner as add,
  changePartner,
  type NewSecret,
  type Partner,
  type PartnerChanges,
  type PartnerToAdd,
  revokeSecret as revoke,
  rotateSecret as rotate,
  setAdmission,
} from "@booking-events/partners";
import { readTestMark } from "@booking-events/queue";
import { type ActingContext, recordAction } from "../actions/record-action.ts";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { changeFile, readFile, requirePartnerId } from "../services/partners-file.ts";
import { knowsRedis, readRedisSettings } from "../services/queue.ts";
import { recordRevoked } from "./record-revoked.ts";

/** Adds a partner with a secret. The first one creates the file. */
export async function addPartner(
  context: ActingContext,
  partner: PartnerToAdd,
): Promise<{ added: NewSecret; isNewFile: boolean }> {
  const { id, name: _, ...rest } = partner;
  requirePartnerId(id);
  return recordAction(context, { command: "partners add", arguments: { partner: id, ...rest } }, async (record) => {
    await refuseOtherUse(context, id, partner.test === true);
    const { added, isNew } = await changeFile(context, (file) => add(file, partner, context.now()), true);
    record.did = { secretId: added.secretId };
    return { added, isNewFile: isNew };
  });
}

/** @throws OperationFailure if the id has been that of a test partner before, and is to be another one's, or the other way around */
async function refuseOtherUse(context: Context, id: string, isTest: boolean): Promise<void> {
  if (!knowsRedis(context.environment)) return;
  // If Redis does not tell, ingest refuses such events all the same.
  const mark = await readTestMark(readRedisSettings(context.environment), id).catch(() => null);
  if (mark === null || mark === isTest) return;
  throw new OperationFailure(
    `${id} has sent events as a ${mark ? "test" : "real"} partner before. Choose another id, such as ` +
      `${isTest ? `${id}-test` : `${id}-live`}.`,
  );
}

export async function setPartner(context: ActingContext, id: string, changes: PartnerChanges): Promise<Partner> {
  requirePartnerId(id);
  const { name, ...rest } = changes;
  const newName = name === undefined ? {} : { hasNewName: true };
  return recordAction(
    context,
    { command: "partners set", arguments: { partner: id, ...newName, ...rest } },
    async () => {
      const { partner } = await changeFile(context, (file) => changePartner(file, { id, ...changes }));
      return partner;
    },
  );
}

const admissions = {
  enable: { enabled: true },
  disable: { enabled: false },
  hold: { held: true },
  release: { held: false },
} satisfies Record<string, Admission>;

/**
 * Lets ingest take a partner's events, or not: of one that is disabled, they are refused; of one that is on hold, they get
 * 503, so that its sender keeps them.
 *
 * @returns whether it was otherwise before
 */
export async function admitPartner(
  context: ActingContext,
  id: string,
  verb: keyof typeof admissions,
): Promise<boolean> {
  requirePartnerId(id);
  return recordAction(context, { command: `partners ${verb}`, arguments: { partner: id } }, async (record) => {
    const { hasChanged } = await changeFile(context, (before) => {
      const file = setAdmission(before, id, admissions[verb]);
      return { file, hasChanged: file !== before };
    });
    record.did = { hasChanged };
    return hasChanged;
  });
}

export interface Rotated {
  partner: Partner;
  added: NewSecret;
  /** Null: it had no valid one. */
  previousSecretsExpireAt: Date | null;
}

/** Adds a secret, and lets the partner's others expire. */
export async function rotateSecret(
  context: ActingContext,
  options: { id: string; overlapMs: number; expiresAt: Date | null },
): Promise<Rotated> {
  const { id, ...rest } = options;
  requirePartnerId(id);
  return recordAction(context, { command: "partners rotate", arguments: { partner: id, ...rest } }, async (record) => {
    const { file, added, previousSecretsExpireAt } = await changeFile(context, (before) =>
      rotate(before, options, context.now()),
    );
    record.did = { secretId: added.secretId, previousSecretsExpireAt };
    // A secret that is refused from now on has probably leaked.
    if (options.overlapMs === 0) await recordRevoked(context, file, id, (one) => one !== added.secretId);
    const partner = file.partners.find((candidate) => candidate.id === id) as Partner;
    return { added, previousSecretsExpireAt, partner };
  });
}

export interface Revoked {
  wasValid: boolean;
  /** The partner has another valid secret. */
  hasValidSecret: boolean;
}

/** Tells what revoking a secret would do. */
export function planRevocation(context: Context, secret: { id: string; secretId: string }): Revoked {
  return readFile(context, (file) => revoke(file, secret, context.now()));
}

/** Refuses a secret from now on. */
export async function revokeSecret(
  context: ActingContext,
  { id, secretId }: { id: string; secretId: string },
): Promise<Revoked> {
  // What is not a secret's id may be the secret.
  planRevocation(context, { id, secretId });
  return recordAction(context, { command: "partners revoke", arguments: { partner: id, secretId } }, async (record) => {
    const { file, wasValid, hasValidSecret } = await changeFile(context, (before) =>
      revoke(before, { id, secretId }, context.now()),
    );
    record.did = { hasChanged: wasValid };
    await recordRevoked(context, file, id, (one) => one === secretId);
    return { wasValid, hasValidSecret };
  });
}
