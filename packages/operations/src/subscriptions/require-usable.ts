import { existsSync } from "node:fs";
import type { Subscription } from "@booking-events/store";
import type { UrlFault } from "@booking-events/subscribers";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { partnersPath, requirePartner } from "../services/partners-file.ts";
import { loadSubscribers } from "./load-subscribers.ts";
import { readNetwork } from "./post-test-event.ts";

/** @throws OperationFailure if the process that posts would refuse the URL, or the partners file lacks a partner */
export async function requireUsable(
  context: Context,
  { url, partners }: { [Setting in "url" | "partners"]: Subscription[Setting] | undefined },
): Promise<void> {
  if (url) {
    const { findUrlFault } = await loadSubscribers();
    const fault = findUrlFault(url, readNetwork(context));
    if (fault !== undefined) throw new OperationFailure(explain[fault]);
  }
  if (existsSync(partnersPath(context))) for (const id of partners ?? []) requirePartner(context, id);
}

const explain: Record<UrlFault, string> = {
  "no-url": "--url must be a URL that begins with https://.",
  "not-https": "--url must begin with https://. For tests, set WEBHOOKS_ALLOW_PRIVATE=true here and for webhooks.",
  "private-address":
    "--url has an address that is not public. For tests, set WEBHOOKS_ALLOW_PRIVATE=true here and for webhooks.",
};
