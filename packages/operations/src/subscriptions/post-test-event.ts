import { parseEnvironment, variables } from "@booking-events/runtime";
import { readSigningKeys } from "@booking-events/store";
import type { Network, PostOutcome } from "@booking-events/subscribers";
import { type ActingContext, recordAction } from "../actions/record-action.ts";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { readDatabase } from "../services/database.ts";
import { requireSubscription } from "./find-subscription.ts";
import { loadSubscribers } from "./load-subscribers.ts";

/** Posts an event that is about no booking, from here. */
export function postTestEvent(
  context: ActingContext,
  name: string,
): Promise<{ outcome: PostOutcome; durationMs: number }> {
  return recordAction(context, { command: "subscriptions test", arguments: { subscription: name } }, async (record) => {
    const { subscription, keys } = await readDatabase(context, async (client) => ({
      subscription: await requireSubscription(client, name),
      keys: await readSigningKeys(client, name),
    }));
    const { url, previousKeyUntil: until } = subscription;
    if (url === null || keys === undefined)
      throw new OperationFailure(`The subscriber of ${name} pulls, so there is nothing to post to.`);
    const { signingKey, previousSigningKey: key } = keys;
    const { Subscriber, testEvent } = await loadSubscribers();
    const subscriber = new Subscriber({
      url,
      signingKey,
      previousKey: key === null || until === null ? undefined : { key, until },
      maxConnections: 1,
      network: readNetwork(context),
    });
    const event = testEvent(context.now());
    const startedAtMs = performance.now();
    const { signal } = new AbortController();
    const outcome = await subscriber.post({ id: `${name}-${event.id}`, body: JSON.stringify(event), signal });
    subscriber.close();
    record.did = { outcome: outcome.kind, status: outcome.status };
    return { outcome, durationMs: Math.round(performance.now() - startedAtMs) };
  });
}

/** How the process that posts is set, too. */
export function readNetwork({ environment }: Context): Network {
  const { WEBHOOKS_ALLOW_PRIVATE, WEBHOOKS_PROXY_URL } = variables;
  const settings = parseEnvironment({ WEBHOOKS_ALLOW_PRIVATE, WEBHOOKS_PROXY_URL }, environment);
  return { allowPrivate: settings.WEBHOOKS_ALLOW_PRIVATE, proxyUrl: settings.WEBHOOKS_PROXY_URL };
}
