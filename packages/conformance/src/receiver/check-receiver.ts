import { randomBytes } from "node:crypto";
import { CannotCheck } from "../cannot-check.ts";
import type { Check } from "./check.ts";
import { batchChecks } from "./checks/batches.ts";
import { bodyChecks } from "./checks/bodies.ts";
import { exampleChecks } from "./checks/examples.ts";
import { fieldChecks } from "./checks/fields.ts";
import { formChecks } from "./checks/forms.ts";
import { jsonChecks } from "./checks/json.ts";
import { keyChecks } from "./checks/keys.ts";
import { lookupChecks, unknownEvent } from "./checks/lookup.ts";
import { operationChecks } from "./checks/operations.ts";
import { orderChecks } from "./checks/order.ts";
import { secretChecks } from "./checks/secrets.ts";
import { warningChecks } from "./checks/warnings.ts";
import { type Answer, NoAnswer } from "./exchange.ts";
import { bodyOf } from "./expectations.ts";
import { hideSecret } from "./hide-secret.ts";
import { bookingJson } from "./payloads.ts";
import { type CheckReceiverOptions, createReceiver, type Profile, type Receiver } from "./receiver.ts";

export interface CheckResult extends Omit<Check, "needsEvents" | "needsLookup" | "run"> {
  outcome: "passed" | "failed" | "skipped";
  /** What was seen instead of what is demanded. Never contains the secret. */
  seen: readonly string[];
}

export interface ReceiverReport {
  runId: string;
  profile: Profile;
  dryRunOnly: boolean;
  passed: number;
  failed: number;
  skipped: number;
  /** Why questions were not checked. Null: they were, or no such check was wanted. */
  lookupProblem: string | null;
  checks: readonly CheckResult[];
}

/** Every check, in the order of reports. */
export const receiverChecks: readonly Check[] = [
  ...operationChecks,
  ...secretChecks,
  ...bodyChecks,
  ...jsonChecks,
  ...formChecks,
  ...keyChecks,
  ...fieldChecks,
  ...warningChecks,
  ...exampleChecks,
  ...batchChecks,
  ...orderChecks,
  ...lookupChecks,
];

/** Some checks wait for a time limit of the receiver. The others go on meanwhile. */
const concurrentChecks = 4;

/**
 * Checks a receiver over the network. Bookings that it stores have references that start with `conformance-`, and are
 * deleted in the end.
 *
 * @throws CannotCheck if the receiver cannot be reached, if no check has the name, or if dry runs are not supported
 */
export async function checkReceiver(options: CheckReceiverOptions): Promise<ReceiverReport> {
  const { profile = "full", dryRunOnly = false, only = [""] } = options;
  const runId = randomBytes(4).toString("hex");
  const lookupUrl = options.lookupUrl ?? options.url;
  const receiver = createReceiver({ ...options, lookupUrl, profile, dryRunOnly, runId });
  const checks = receiverChecks.filter(({ name, source }) => {
    return only.some((start) => name.startsWith(start)) && (profile === "full" || source === "spec");
  });
  if (checks.length === 0) throw new CannotCheck("No check has such a name.");
  await requireAnswer(receiver);
  const asksQuestions = checks.some(({ needsLookup }) => needsLookup);
  const isLookupKnown = options.lookupUrl !== undefined || !asksQuestions || (await answersQuestions(receiver));
  const results = await runAll(checks, receiver, isLookupKnown);
  if (!dryRunOnly) results.push(await deleteStored(receiver));
  results.push(findSecret(receiver));
  const count = (outcome: CheckResult["outcome"]) => results.filter((each) => each.outcome === outcome).length;
  return {
    runId,
    profile,
    dryRunOnly,
    passed: count("passed"),
    failed: count("failed"),
    skipped: count("skipped"),
    lookupProblem: isLookupKnown ? null : noLookup,
    checks: results,
  };
}

/** Sends one dry run. A receiver that would store it must not get the others. */
async function requireAnswer(receiver: Receiver): Promise<void> {
  let answer: Answer;
  try {
    answer = await receiver.send({ dryRun: true, body: bookingJson(receiver.newReference()) });
  } catch (error) {
    if (error instanceof NoAnswer) throw new CannotCheck(`The receiver cannot be checked: ${error.message}.`);
    throw error;
  }
  if (!receiver.dryRunOnly || bodyOf(answer)["dryRun"] === true) return;
  throw new CannotCheck(
    `The answer to a dry run has status ${answer.status} and does not say "dryRun": true, so nothing else was sent.`,
  );
}

const noLookup =
  "Questions (receipts, bookings, lists, activity) were not checked: nothing answers them at the address of the events. " +
  "Give their address with --lookup-url.";

/** Asks for an event that nobody has sent. */
async function answersQuestions(receiver: Receiver): Promise<boolean> {
  try {
    return bodyOf(await receiver.send(unknownEvent))["code"] === "no-such-event";
  } catch (error) {
    if (error instanceof NoAnswer) return false;
    throw error;
  }
}

async function runAll(checks: readonly Check[], receiver: Receiver, isLookupKnown = true): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  const waiting = checks.entries();
  async function runNext(): Promise<void> {
    for (const [index, check] of waiting) results[index] = await runCheck(check, receiver, isLookupKnown);
  }
  await Promise.all(Array.from({ length: concurrentChecks }, runNext));
  return results;
}

async function runCheck(check: Check, receiver: Receiver, isLookupKnown: boolean): Promise<CheckResult> {
  const isSkipped = (check.needsEvents && receiver.dryRunOnly) || (check.needsLookup && !isLookupKnown);
  if (isSkipped) return { ...toResult(check, []), outcome: "skipped" };
  return toResult(check, await findFaults(check, receiver));
}

function toResult({ name, demand, source }: Omit<Check, "run">, seen: string[]): CheckResult {
  return { name, demand, source, outcome: seen.length === 0 ? "passed" : "failed", seen };
}

async function findFaults(check: Check, receiver: Receiver): Promise<string[]> {
  try {
    return (await check.run(receiver)).map((seen) => hideSecret(seen, receiver.secret));
  } catch (error) {
    if (error instanceof NoAnswer) return [error.message];
    throw error;
  }
}

async function deleteStored(receiver: Receiver): Promise<CheckResult> {
  const deletions = [...receiver.stored.values()].map((payload) => ({
    name: "clean-up",
    demand: "",
    source: "spec" as const,
    async run() {
      const { status } = await receiver.send({ operation: "delete", body: JSON.stringify(payload) });
      return status === 200 ? [] : [`${Object.values(payload)[0]} is still there, because its delete got ${status}`];
    },
  }));
  const seen = (await runAll(deletions, receiver)).flatMap((each) => each.seen);
  const demand = "The bookings that the checks have created can be deleted.";
  return toResult({ name: "clean-up", demand, source: "spec" }, seen);
}

function findSecret({ answersWithSecret }: Receiver): CheckResult {
  const count = answersWithSecret();
  const demand = "No answer contains the secret.";
  const seen = count === 0 ? [] : [`the secret in ${count} answers`];
  return toResult({ name: "answers/no-secret", demand, source: "ours" }, seen);
}
