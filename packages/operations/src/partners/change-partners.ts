import {
  addPartner as add,
  changePartner,
  type NewSecret,
  type Partner,
  type PartnerChanges,
  type PartnerToAdd,
  revokeSecret as revoke,
  rotateSecret as rotate,
  setEnabled,
} from "@booking-events/partners";
import type { Context } from "../context.ts";
import { changeFile, readFile } from "../services/partners-file.ts";
import { recordRevoked } from "./record-revoked.ts";

/** Adds a partner with a secret. The first one creates the file. */
export async function addPartner(
  context: Context,
  partner: PartnerToAdd,
): Promise<{ added: NewSecret; isNewFile: boolean }> {
  const { added, isNew } = await changeFile(context, (file) => add(file, partner, context.now()), true);
  return { added, isNewFile: isNew };
}

export async function setPartner(context: Context, id: string, changes: PartnerChanges): Promise<Partner> {
  const { partner } = await changeFile(context, (file) => changePartner(file, { id, ...changes }));
  return partner;
}

/** @returns whether it was otherwise before */
export async function enablePartner(context: Context, id: string, enabled: boolean): Promise<boolean> {
  const { hasChanged } = await changeFile(context, (before) => {
    const file = setEnabled(before, { id, enabled });
    return { file, hasChanged: file !== before };
  });
  return hasChanged;
}

export interface Rotated {
  partner: Partner;
  added: NewSecret;
  /** Null: it had no valid one. */
  previousSecretsExpireAt: Date | null;
}

/** Adds a secret, and lets the partner's others expire. */
export async function rotateSecret(
  context: Context,
  options: { id: string; overlapMs: number; expiresAt: Date | null },
): Promise<Rotated> {
  const { file, ...rotated } = await changeFile(context, (before) => rotate(before, options, context.now()));
  // A secret that is refused from now on has probably leaked.
  if (options.overlapMs === 0) await recordRevoked(context, file, options.id, (one) => one !== rotated.added.secretId);
  const partner = file.partners.find(({ id }) => id === options.id) as Partner;
  return { ...rotated, partner };
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
export async function revokeSecret(context: Context, secret: { id: string; secretId: string }): Promise<Revoked> {
  const { file, ...revoked } = await changeFile(context, (before) => revoke(before, secret, context.now()));
  await recordRevoked(context, file, secret.id, (one) => one === secret.secretId);
  return revoked;
}
