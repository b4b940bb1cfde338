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
  await fc.assert(
    fc.asyncProperty(connectionsWith(options.secrets), async (sent) => {
      for (const status of readStatuses(await exchange(port, sent, answerLimitMs))) {
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
            `connections, shrunk ${run.numShrinks} times to these bytes:\n${JSON.stringify(sent?.bytes.toString("latin1"))}`,
        );
      },
    },
  );
  return { connections: options.connections, statuses };
}

/** @returns all that the server sends until it closes the connection, or has given every answer that is due */
function exchange(port: number, { bytes, requests }: Sent, answerLimitMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = "";
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    const timer = setTimeout(() => {
      reject(new Error(`No end of the answer within ${answerLimitMs} ms.`));
      socket.destroy();
    }, answerLimitMs);
    socket.setEncoding("latin1").on("data", (text) => {
      received += text;
      if (readStatuses(received).length === requests) socket.end();
    });
    // A reset is one of the ways in which a server closes a connection.
    socket.on("error", () => {});
    socket.once("close", () => {
      clearTimeout(timer);
      resolve(received);
    });
    socket.once("end", () => socket.end());
    if (requests === undefined) socket.end(bytes);
    else socket.write(bytes);
  });
}

function readStatuses(answers: string): string[] {
  return [...answers.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status = ""]) => status);
}
