import { parseEnvironment, variables } from "@booking-events/runtime";
import { readSigningKeys } from "@booking-events/store";
import type { Network, PostOutcome } from "@booking-events/subscribers";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { readDatabase } from "../../database.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { printJson, printLine } from "../../terminal/print.ts";
import { requireSubscription } from "./find.ts";
import { loadSubscribers } from "./load-subscribers.ts";

export function addTestCommand(subscriptions: Command, context: Context): void {
  subscriptions
    .command("test")
    .summary("post a test event to a subscription, from here")
    .description(
      "Post an event of the type booking.test, which is about no booking, signed as all posts are, and print the " +
        "answer. It goes from this host, which may reach other addresses than the process webhooks.",
    )
    .argument("<name>", "the subscription's name")
    .option("--json", "print one JSON object: status, failure, durationMs")
    .action(async (name, { json }) => {
      const { subscription, keys } = await readDatabase(context, async (client) => ({
        subscription: await requireSubscription(client, name),
        keys: await readSigningKeys(client, name),
      }));
      const { url, previousKeyUntil: until } = subscription;
      if (url === null || keys === undefined)
        throw new CommandFailure(`The subscriber of ${name} pulls, so there is nothing to post to.`);
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
      const outcome = await subscriber.post({ id: `${name}_${event.id}`, body: JSON.stringify(event), signal });
      subscriber.close();
      report(context, name, { outcome, durationMs: Math.round(performance.now() - startedAtMs), json });
    });
}

/** How the process that posts is set, too. */
export function readNetwork({ environment }: Context): Network {
  const { WEBHOOKS_ALLOW_PRIVATE, WEBHOOKS_PROXY_URL } = variables;
  const settings = parseEnvironment({ WEBHOOKS_ALLOW_PRIVATE, WEBHOOKS_PROXY_URL }, environment);
  return { allowPrivate: settings.WEBHOOKS_ALLOW_PRIVATE, proxyUrl: settings.WEBHOOKS_PROXY_URL };
}

function report(
  { stdout }: Context,
  name: string,
  { outcome, durationMs, json }: { outcome: PostOutcome; durationMs: number; json: true | undefined },
): void {
  const { kind, status } = outcome;
  const failure = kind === "failed" ? outcome.failure : null;
  if (json) printJson(stdout, { status, failure, durationMs });
  else if (status !== null) printLine(stdout, `${name} answered ${status} after ${durationMs} ms.`);
  if (kind !== "done") throw new CommandFailure(describeFailure(name, outcome));
}

function describeFailure(name: string, outcome: PostOutcome): string {
  if (outcome.kind === "gone") return `${name} wants no posts (410). A change that is posted would pause it.`;
  if (outcome.kind === "wait")
    return `${name} wants no posts for ${Math.ceil(outcome.pauseMs / 1_000)} s (Retry-After). They would wait.`;
  if (outcome.kind === "failed" && outcome.status === null)
    return `${name} could not be reached (${outcome.failure}). Check its URL, certificate and firewall.`;
  return `${name} did not take it: any 2xx would be success.`;
}
