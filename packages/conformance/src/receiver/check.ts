import { type Answer, NoAnswer } from "./exchange.ts";
import type { Expectation } from "./expectations.ts";
import { hideSecret } from "./hide-secret.ts";
import type { Receiver } from "./receiver.ts";
import type { Request } from "./request.ts";

/** One demand of the contract. */
export interface Check {
  /** Stable: scripts may depend on it. */
  name: string;
  demand: string;
  /** Who demands it: the specification, or a decision that fills one of its gaps. */
  source: "spec" | "ours";
  /** True if dry runs cannot show it. */
  needsEvents?: true;
  /** True if it asks questions, which a receiver may answer elsewhere, or not at all. */
  needsLookup?: true;
  /** Returns what was seen instead; an empty list if the receiver does what is demanded. */
  run(receiver: Receiver): Promise<string[]>;
}

/** A request with what must come back. The label says what is special about it, if the check has several requests. */
export interface Trial {
  label?: string;
  request: (reference: string) => Request;
  expect: Expectation;
}

/** Creates a check that passes if each of its requests gets what it expects. */
export function check(name: string, demand: string, ...trials: readonly Trial[]): Check {
  return { source: "ours", name, demand, run: (receiver) => runTrials(trials, receiver) };
}

/** The check of a demand that the specification makes itself. */
export function specified(ours: Check): Check {
  return { ...ours, source: "spec" };
}

export async function runTrials(trials: readonly Trial[], receiver: Receiver): Promise<string[]> {
  const seen: string[] = [];
  for (const trial of trials) seen.push(...(await runTrial(trial, receiver)));
  return seen;
}

async function runTrial({ label, request, expect }: Trial, receiver: Receiver): Promise<string[]> {
  const prefix = label === undefined ? "" : `${label}: `;
  try {
    const answer = await receiver.send(request(receiver.newReference()));
    const faults = expect(answer, receiver);
    return faults.length === 0 ? [] : [`${prefix}${faults.join("; ")} (${describeAnswer(answer, receiver.secret)})`];
  } catch (error) {
    if (error instanceof NoAnswer) return [`${prefix}${error.message}`];
    throw error;
  }
}

const maxCharactersShown = 200;

export function describeAnswer({ status, body }: Answer, secret: string): string {
  const shown = hideSecret(body, secret).replace(/\p{Cc}/gu, " ");
  const start = shown.length > maxCharactersShown ? `${shown.slice(0, maxCharactersShown)}…` : shown;
  return `${status} ${start === "" ? "without a body" : start}`;
}
