import { connect } from "node:net";
import * as fc from "fast-check";
import { connectionsWith, type Sent } from "./requests.ts";

export interface FuzzResult {
  connections: number;
  /** How often each status was answered. */
  statuses: Map<string, number>;
}

/** A server that answers, refuses or closes does so at once: this is many times what a busy machine needs. */
const defaultAnswerLimitMs = 8_000;

/** Of the connections after which a process was gone. */
const latestShown = 20;
const shownCharacters = 300;

/**
 * Sends random connections one after the other, and checks what comes back.
 *
 * @param options.secrets the first is valid, the others are not
 * @throws an error with the seed and the smallest bytes that bring the fault about
 */
export async function fuzzIngest(options: {
  port: number;
  secrets: readonly string[];
  connections: number;
  seed: number;
  answerLimitMs?: number;
}): Promise<FuzzResult> {
  const { port, answerLimitMs = defaultAnswerLimitMs } = options;
  const statuses = new Map<string, number>();
  /** A process may seem to take some connections more before it is gone. */
  let latest: Sent[] = [];
  let isGone = false;
  await fc.assert(
    fc.asyncProperty(connectionsWith(options.secrets), async (sent) => {
      // There is nobody left to find smaller bytes with.
      if (isGone) return;
      const answers = await exchange(port, sent, answerLimitMs).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "ECONNREFUSED") throw error;
        isGone = true;
        throw new Error(
          `It was gone after these connections:\n${latest.map((one) => show(one, shownCharacters)).join("\n")}\n`,
        );
      });
      latest = [...latest.slice(1 - latestShown), sent];
      for (const status of readStatuses(answers)) {
        if (sent.statuses !== undefined && ![...sent.statuses, "503"].includes(status))
          throw new Error(`Answered ${status}.`);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        // 500 is a mistake of ours; 503 is deliberate.
        if (status.startsWith("5") && status !== "503") throw new Error(`Answered ${status}.`);
      }
    }),
    {
      numRuns: options.connections,
      seed: options.seed,
      reporter(run) {
        if (!run.failed) return;
        const [sent] = run.counterexample ?? [];
        throw new Error(
          `${run.errorInstance instanceof Error ? run.errorInstance.message : "Failed."} Seed ${run.seed}, after ${run.numRuns} ` +
            `connections, shrunk ${run.numShrinks} times to these bytes:\n${show(sent)}`,
        );
      },
    },
  );
  return { connections: options.connections, statuses };
}

function show(sent: Sent | undefined, mostCharacters?: number): string {
  const reset = sent?.reset === undefined ? "" : `, and a reset ${sent.reset}`;
  return JSON.stringify(sent?.bytes.toString("latin1").slice(0, mostCharacters)) + reset;
}

/** @returns all that the server sends until it closes the connection, or has given every answer that is due */
function exchange(port: number, { bytes, requests, reset }: Sent, answerLimitMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = "";
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    const timer = setTimeout(() => {
      reject(new Error(`No end of the answer within ${answerLimitMs} ms.`));
      socket.destroy();
    }, answerLimitMs);
    socket.setEncoding("latin1").on("data", (text) => {
      received += text;
      if (reset !== undefined) socket.resetAndDestroy();
      else if (readStatuses(received).length === requests) socket.end();
    });
    // A reset is one of the ways in which a server closes a connection.
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNREFUSED") reject(error);
    });
    socket.once("close", () => {
      clearTimeout(timer);
      resolve(received);
    });
    socket.once("end", () => socket.end());
    if (reset === "at once") socket.write(bytes, () => socket.resetAndDestroy());
    else if (requests === undefined) socket.end(bytes);
    else socket.write(bytes);
  });
}

function readStatuses(answers: string): string[] {
  return [...answers.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status = ""]) => status);
}
