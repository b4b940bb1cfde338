import { setTimeout as wait } from "node:timers/promises";
import { type Answer, exchange } from "./exchange.ts";
import { bodyOf } from "./expectations.ts";
import { containsSecret } from "./hide-secret.ts";
import { type Request, toBytes } from "./request.ts";

/** `spec`: only what the specification says. `full`: also the decisions that fill its gaps. */
export type Profile = "spec" | "full";

export interface CheckReceiverOptions {
  /** What comes before `/booking-event`, such as `https://bookings.example.com`. */
  url: URL;
  /** Where questions are answered. Default: at the same address, if anything answers there. */
  lookupUrl?: URL | undefined;
  secret: string;
  /** Default: full. */
  profile?: Profile;
  /** Sends nothing but dry runs. Default: false. */
  dryRunOnly?: boolean;
  /** Runs the checks whose names start with one of these. Default: all. */
  only?: readonly string[];
}

export interface ReceiverOptions extends Required<Omit<CheckReceiverOptions, "only" | "lookupUrl">> {
  lookupUrl: URL;
  /** Part of every reference. */
  runId: string;
}

export type Receiver = ReturnType<typeof createReceiver>;

/** How often, and after how long at most, a request is sent again because of 429 or 503. */
const maxRetries = 5;
const longestWaitMs = 10_000;
/** The answer to a list names what the list lacks: all other bookings of a partner for tests. */
const maxBytesOfList = 16 * 1_048_576;

export function createReceiver(options: ReceiverOptions) {
  const stored = new Map<string, Record<string, string>>();
  let references = 0;
  let answersWithSecret = 0;
  return {
    ...options,
    /** The bookings that the receiver has accepted, by the payload of their deletes. */
    stored,
    /** Returns how many answers so far contained the secret. */
    answersWithSecret: () => answersWithSecret,
    /** Returns a reference that no other request of this run has. */
    newReference(): string {
      references += 1;
      return `conformance-${options.runId}-${references}`;
    },
    /**
     * Sends a request. Waits and sends it again if the receiver asks for that with `Retry-After`.
     *
     * @throws NoAnswer
     */
    async send(request: Request): Promise<Answer> {
      const dryRun = options.dryRunOnly || request.dryRun === true;
      const isQuestion = request.to === "questions";
      const url = isQuestion ? options.lookupUrl : options.url;
      const bytes = toBytes({ ...request, dryRun: dryRun && !isQuestion }, { ...options, url });
      for (let retries = 0; ; retries += 1) {
        const answer = await exchange(url, bytes, isQuestion ? maxBytesOfList : undefined);
        if (containsSecret(answer, options.secret)) answersWithSecret += 1;
        const booking = findBooking(request);
        // A receiver that does not know dry runs has stored those, too.
        const isStored = answer.status === 200 && !isQuestion && bodyOf(answer)["dryRun"] !== true;
        if (isStored && booking !== undefined) stored.set(JSON.stringify(booking), booking);
        const waitMs = Number(answer.headers["retry-after"]) * 1_000;
        const isBusy = answer.status === 429 || answer.status === 503;
        if (!isBusy || !(waitMs <= longestWaitMs) || retries >= maxRetries) return answer;
        await wait(waitMs);
      }
    },
  };
}

/**
 * Returns the references in the body of a create or update, also if the body is malformed. Some receivers know only the
 * consumer's. Only references of this program are found, so that no other booking can be deleted.
 */
function findBooking({ operation, body = "" }: Request): Record<string, string> | undefined {
  if (operation === "delete") return undefined;
  // In UTF-16, every other byte of a reference is 0.
  const text = body.toString().replaceAll("\0", "");
  const found = ["consumerTripPartnerExternalReference", "consumerPartnerExternalReference"].flatMap((field) => {
    const reference = new RegExp(`\\b${field}"?\\s*[:=]\\s*"?(conformance-[a-z0-9-]+)`).exec(text)?.[1];
    return reference === undefined ? [] : [[field, reference]];
  });
  return found.length === 0 ? undefined : Object.fromEntries(found);
}
