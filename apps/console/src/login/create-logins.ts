import { createHmac, randomBytes } from "node:crypto";
import { type parseEnvironment, StartError, variables } from "@booking-events/runtime";
import type { RoleLists } from "./assign-roles.ts";
import { SealedCookies } from "./cookies.ts";
import { type IdentityHeaders, toProxies } from "./identity-header.ts";
import { TryLimit } from "./limit-tries.ts";
import { OpenIdProvider } from "./open-id.ts";
import { Sessions } from "./session.ts";

/** Those that say who may log in. */
export const loginVariables = {
  CONSOLE_URL: variables.CONSOLE_URL,
  CONSOLE_PASSWORD: variables.CONSOLE_PASSWORD,
  CONSOLE_OIDC_ISSUER: variables.CONSOLE_OIDC_ISSUER,
  CONSOLE_OIDC_CLIENT_ID: variables.CONSOLE_OIDC_CLIENT_ID,
  CONSOLE_OIDC_CLIENT_SECRET: variables.CONSOLE_OIDC_CLIENT_SECRET,
  CONSOLE_IDENTITY_HEADER: variables.CONSOLE_IDENTITY_HEADER,
  CONSOLE_GROUPS_HEADER: variables.CONSOLE_GROUPS_HEADER,
  CONSOLE_TRUSTED_PROXIES: variables.CONSOLE_TRUSTED_PROXIES,
  CONSOLE_VIEWERS: variables.CONSOLE_VIEWERS,
  CONSOLE_OPERATORS: variables.CONSOLE_OPERATORS,
  CONSOLE_PRIVACY: variables.CONSOLE_PRIVACY,
  CONSOLE_SESSION_KEY: variables.CONSOLE_SESSION_KEY,
};

type LoginSettings = ReturnType<typeof parseEnvironment<typeof loginVariables>>;

/** How visitors may log in, and what keeps who has. */
export interface Logins {
  cookies: SealedCookies;
  sessions: Sessions;
  tries: TryLimit;
  /** Whoever knows it may do everything. Undefined, as with the next two: there is no such login. */
  password: string | undefined;
  openId: OpenIdProvider | undefined;
  header: IdentityHeaders | undefined;
  /** For logins by the latter two. */
  lists: RoleLists;
  now: () => Date;
}

/** @throws StartError if there is no login, or half of one */
export function createLogins(settings: LoginSettings, now: () => Date): Logins {
  const cookies = new SealedCookies(toKey(settings));
  const { CONSOLE_PASSWORD: password, CONSOLE_VIEWERS, CONSOLE_OPERATORS, CONSOLE_PRIVACY } = settings;
  const lists = { viewer: CONSOLE_VIEWERS, operator: CONSOLE_OPERATORS, privacy: CONSOLE_PRIVACY };
  const [openId, header] = [toProvider(settings), toHeaders(settings)];
  if (password === undefined && openId === undefined && header === undefined)
    throw new StartError(
      "The console needs a login: set CONSOLE_PASSWORD, CONSOLE_OIDC_ISSUER or CONSOLE_IDENTITY_HEADER.",
    );
  if ((openId !== undefined || header !== undefined) && Object.values(lists).every((list) => list.length === 0))
    throw new StartError("Nobody could log in: set CONSOLE_VIEWERS, CONSOLE_OPERATORS or CONSOLE_PRIVACY.");
  return {
    cookies,
    sessions: new Sessions(cookies, now),
    tries: new TryLimit(now),
    password,
    openId,
    header,
    lists,
    now,
  };
}

function toProvider(settings: LoginSettings): OpenIdProvider | undefined {
  const { CONSOLE_OIDC_ISSUER: issuer, CONSOLE_URL: url } = settings;
  if (issuer === undefined) return undefined;
  const { CONSOLE_OIDC_CLIENT_ID: clientId, CONSOLE_OIDC_CLIENT_SECRET: clientSecret } = settings;
  if (url === undefined || clientId === undefined || clientSecret === undefined)
    throw new StartError(
      "CONSOLE_OIDC_ISSUER needs CONSOLE_OIDC_CLIENT_ID, CONSOLE_OIDC_CLIENT_SECRET and CONSOLE_URL: set all of them.",
    );
  return new OpenIdProvider({ issuer, clientId, clientSecret, redirectUri: new URL("/login/callback", url).href });
}

function toHeaders(settings: LoginSettings): IdentityHeaders | undefined {
  const { CONSOLE_IDENTITY_HEADER: name, CONSOLE_GROUPS_HEADER: groups, CONSOLE_TRUSTED_PROXIES: ranges } = settings;
  if (name === undefined) return undefined;
  if (ranges.length === 0)
    throw new StartError("CONSOLE_IDENTITY_HEADER needs CONSOLE_TRUSTED_PROXIES: set the addresses of your proxies.");
  return { name: name.toLowerCase(), groups: groups?.toLowerCase(), proxies: toProxies(ranges) };
}

/**
 * With a key of its own, a process knows no login of another one, or of before its start. A change of what logins are given
 * by ends all that were given.
 */
export function toKey({ CONSOLE_SESSION_KEY: key, ...given }: LoginSettings): Buffer {
  if (key === undefined) return randomBytes(32);
  const ofLogins = Object.entries(given).filter(([name]) => Object.hasOwn(loginVariables, name));
  return createHmac("sha256", key).update(JSON.stringify(ofLogins.toSorted())).digest();
}
