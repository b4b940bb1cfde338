import {
  AuthorizationResponseError,
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  ClientSecretBasic,
  type Configuration,
  calculatePKCECodeChallenge,
  discovery,
  fetchUserInfo,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from "openid-client";
import type { Identity } from "./assign-roles.ts";
import { readName } from "./read-name.ts";

export interface OpenIdSettings {
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** Ours, as it is registered with the provider. */
  redirectUri: string;
}

/** What the visitor's browser keeps for us while the visitor is with the provider. */
export interface LoginAttempt {
  state: string;
  nonce: string;
  verifier: string;
}

/** What the provider says of somebody can't be used. Each message is a sentence for the visitor. */
export class UnusableLogin extends Error {
  override name = "UnusableLogin";
}

const scope = "openid email profile";
const timeoutSeconds = 5;
const maxGroups = 1_000;

/** Logins by OpenID Connect: the code flow with PKCE, a state and a nonce. */
export class OpenIdProvider {
  readonly #settings: OpenIdSettings;
  #found: Promise<Configuration> | undefined;

  constructor(settings: OpenIdSettings) {
    this.#settings = settings;
  }

  /** @returns where the visitor logs in */
  async begin(): Promise<{ url: URL; attempt: LoginAttempt }> {
    const provider = await this.#find();
    const attempt = { state: randomState(), nonce: randomNonce(), verifier: randomPKCECodeVerifier() };
    const url = buildAuthorizationUrl(provider, {
      redirect_uri: this.#settings.redirectUri,
      scope,
      state: attempt.state,
      nonce: attempt.nonce,
      code_challenge: await calculatePKCECodeChallenge(attempt.verifier),
      code_challenge_method: "S256",
    });
    return { url, attempt };
  }

  /**
   * @param query what the provider has sent the visitor back with
   * @throws UnusableLogin; what openid-client throws if the provider is out, or says what we did not ask for
   */
  async finish(query: URLSearchParams, { state, nonce, verifier }: LoginAttempt): Promise<Identity> {
    const provider = await this.#find();
    const url = new URL(this.#settings.redirectUri);
    url.search = query.toString();
    const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true };
    const tokens = await authorizationCodeGrant(provider, url, checks).catch(toUnusable);
    const claims = tokens.claims();
    if (claims === undefined) throw new UnusableLogin("The provider did not say who you are.");
    const { userinfo_endpoint: more } = provider.serverMetadata();
    // Many providers put into the ID token only what they must.
    const details = more === undefined ? {} : await fetchUserInfo(provider, tokens.access_token, claims.sub);
    return toIdentity({ ...claims, ...details });
  }

  /** The provider may be down when the console starts. */
  #find(): Promise<Configuration> {
    this.#found ??= this.#discover().catch((error) => {
      this.#found = undefined;
      throw error;
    });
    return this.#found;
  }

  #discover(): Promise<Configuration> {
    const { issuer, clientId, clientSecret } = this.#settings;
    const isPlain = issuer.startsWith("http://");
    return discovery(new URL(issuer), clientId, undefined, ClientSecretBasic(clientSecret), {
      timeout: timeoutSeconds,
      // Only on this machine: see the rule of CONSOLE_OIDC_ISSUER.
      execute: isPlain ? [allowInsecureRequests] : [],
    });
  }
}

function toUnusable(error: unknown): never {
  if (error instanceof AuthorizationResponseError)
    throw new UnusableLogin("The provider did not log you in.", { cause: error });
  throw error;
}

/**
 * An address that nobody has verified, and a name that somebody may choose freely, say nothing of who somebody is. `sub`
 * does.
 */
function toIdentity(claims: Record<string, unknown>): Identity {
  const { email, email_verified: isVerified, sub, groups } = claims;
  const name = readName(isVerified === true ? email : sub);
  if (name === undefined)
    throw new UnusableLogin(
      "The provider's name for you can't be recorded: it is longer than 200 characters, or has some that can't be seen.",
    );
  const listed = Array.isArray(groups) ? groups : [groups];
  return { name, groups: listed.filter((group) => typeof group === "string").slice(0, maxGroups) };
}
