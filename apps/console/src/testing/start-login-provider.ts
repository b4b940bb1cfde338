import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type OidcProvider from "oidc-provider";
import { afterAll, beforeAll } from "vitest";

export interface LoginProvider {
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** Of whoever logs in next. */
  claims: Record<string, unknown> & { sub: string };
  /** As a visitor's browser that is sent there, and whose owner logs in. @returns where it is sent back to */
  visit(url: string): Promise<string>;
}

/**
 * A provider of OpenID Connect on this machine, for the tests of the file.
 *
 * @param redirectUri called before the first test
 */
export function useLoginProvider(redirectUri: () => string): LoginProvider {
  const server = createServer();
  const provider: LoginProvider = {
    issuer: "",
    clientId: "booking-events-console",
    clientSecret: "a-secret-of-the-console-at-its-provider",
    claims: { sub: "nobody" },
    visit: (url) => followRedirects(url, provider.issuer),
  };
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    provider.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { default: Provider } = await import("oidc-provider");
    const oidc = new Provider(provider.issuer, describe(provider, redirectUri()));
    const answer = oidc.callback();
    server.on("request", (req, res) => {
      if (req.url?.startsWith("/interaction/") !== true) return answer(req, res);
      // Whoever is asked for a password knows it.
      const login = { accountId: provider.claims.sub };
      return oidc.interactionFinished(req, res, { login }, { mergeWithLastSubmission: false });
    });
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return provider;
}

const scope = "openid email profile";
const anHour = 3_600;

function describe(provider: LoginProvider, redirectUri: string): ConstructorParameters<typeof OidcProvider>[1] {
  return {
    clients: [
      {
        client_id: provider.clientId,
        client_secret: provider.clientSecret,
        redirect_uris: [redirectUri],
        grant_types: ["authorization_code"],
        response_types: ["code"],
      },
    ],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["groups"] },
    features: { devInteractions: { enabled: false } },
    pkce: { required: () => true },
    cookies: { keys: ["a-key-of-the-provider"] },
    ttl: { AccessToken: anHour, Grant: anHour, IdToken: anHour, Interaction: anHour, Session: anHour },
    findAccount: (_ctx, accountId) => ({ accountId, claims: () => provider.claims }),
    async loadExistingGrant({ oidc }) {
      const { clientId, accountId } = { clientId: oidc.client?.clientId, accountId: oidc.session?.accountId };
      const grant = new oidc.provider.Grant({ clientId, accountId });
      grant.addOIDCScope(scope);
      await grant.save();
      return grant;
    },
  };
}

const maxRedirects = 10;

async function followRedirects(start: string, issuer: string): Promise<string> {
  const cookies = new Map<string, string>();
  let url = start;
  for (let left = maxRedirects; left > 0; left -= 1) {
    if (!url.startsWith(`${issuer}/`)) return url;
    const cookie = [...cookies].map((pair) => pair.join("=")).join("; ");
    const answer = await fetch(url, { headers: { cookie }, redirect: "manual" });
    for (const line of answer.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    const location = answer.headers.get("location");
    if (location === null) throw new Error(`The provider answers ${answer.status}: ${await answer.text()}`);
    url = new URL(location, url).href;
  }
  throw new Error(`The provider redirects more than ${maxRedirects} times.`);
}
