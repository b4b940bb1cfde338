import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { escapeLiteral } from "pg";
import type { Queryable } from "../connect/queryable.ts";
import { safeMessage } from "../connect/safe-message.ts";

const grantsFile = fileURLToPath(new URL("../../grants.sql", import.meta.url));
/** Of the role of any process that needs no more than its rights, and of what else reads the database. */
const users = ["worker", "lookup", "ops", "reader", "webhooks", "console"] as const;
const insufficientPrivilege = "42501";
/** PostgreSQL's default. The password is as long and random as the operator has made it. */
const scramIterations = 4_096;

type User = (typeof users)[number] | "exporter";

/** By user. One without a password keeps the one that it has. */
export type RolePasswords = Partial<Record<Exclude<User, "reader">, string | undefined>>;

export interface Granted {
  /** The roles that have got their rights. */
  roles: string[];
  /** Those of them that can't connect, since they have no password. Readers' own roles are members of theirs. */
  withoutLogin: string[];
}

/**
 * Creates the roles that are missing, sets their passwords, and gives each what its process needs, in the transaction's
 * schema. It does the same again without harm. Readers have no password: they are members of their role.
 *
 * @throws RolesRefusedError; what PostgreSQL throws
 */
export async function grant(client: Queryable, passwords: RolePasswords): Promise<Granted> {
  const wanted: User[] = passwords.exporter === undefined ? [...users] : [...users, "exporter"];
  await provideRoles(client, wanted, passwords);
  await client.query(await readFile(grantsFile, "utf8"));
  const { rows } = await client.query<{ name: string }>(
    "select rolname as name from pg_roles where rolname = any($1) and not rolcanlogin order by rolname",
    [wanted.filter((user) => user !== "reader").map(roleOf)],
  );
  return { roles: wanted.map(roleOf), withoutLogin: rows.map(({ name }) => name) };
}

async function provideRoles(
  client: Queryable,
  wanted: User[],
  passwords: RolePasswords & { reader?: undefined },
): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    "select rolname as name from pg_roles where rolname = any($1)",
    [wanted.map(roleOf)],
  );
  const missing = wanted.map(roleOf).filter((role) => !rows.some(({ name }) => name === role));
  const statements = missing.map((role) => `create role ${role}`);
  for (const user of wanted) {
    const password = passwords[user];
    if (password === undefined) continue;
    statements.push(`alter role ${roleOf(user)} login password ${escapeLiteral(toVerifier(password))}`);
  }
  try {
    for (const statement of statements) await client.query(statement);
  } catch (error) {
    if ((error as { code?: unknown }).code !== insufficientPrivilege) throw error;
    throw new RolesRefusedError(missing, { cause: error });
  }
}

function roleOf(user: User): string {
  return `booking_events_${user}`;
}

/**
 * What PostgreSQL keeps of a password, by RFC 5803. So it never gets the password itself, which it would log with a
 * statement that fails.
 */
function toVerifier(password: string): string {
  const salt = randomBytes(16);
  const salted = pbkdf2Sync(password.normalize("NFKC"), salt, scramIterations, 32, "sha256");
  const hmac = (text: string) => createHmac("sha256", salted).update(text).digest();
  const storedKey = createHash("sha256").update(hmac("Client Key")).digest("base64");
  const serverKey = hmac("Server Key").toString("base64");
  return `SCRAM-SHA-256$${scramIterations}:${salt.toString("base64")}$${storedKey}:${serverKey}`;
}

/** The user of `DATABASE_URL` may not create roles, or set their passwords. */
export class RolesRefusedError extends Error {
  override name = "RolesRefusedError";
  readonly [safeMessage] = true;

  constructor(missing: string[], options: ErrorOptions) {
    const creating = missing.map((role) => `create role ${role} login password '…'`).join("; ");
    super(
      missing.length === 0
        ? "The user of DATABASE_URL may not set the passwords of roles. Leave the variables of these passwords out."
        : "The user of DATABASE_URL may not create roles. Leave the variables of their passwords out, and run as an " +
            `administrator: ${creating}`,
      options,
    );
  }
}
