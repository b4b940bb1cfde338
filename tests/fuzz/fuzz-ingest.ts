import { connect } from "node:net";
import * as fc from "fast-check";
import { connection, type Sent } from "./requests.ts";

/** Many times as long as a working server needs on a busy machine. */
const answerLimitMs = 8_000;

/** How many connections are shown if the server no longer listens after them. */
const latestShown = 20;
const shownCharacters = 300;

/**
 * Opens random connections one after the other, and checks the answers.
 *
 * @returns how often each status was answered
 * @throws an error with the seed and the smallest bytes that cause the fault
 */
export async function fuzzIngest(options: {
  port: number;
  connections: number;
  seed: number;
}): Promise<Map<string, number>> {
  const { port } = options;
  const statuses = new Map<string, number>();
  /** The operating system may accept more connections for a process that has just ended. */
  let latest: Sent[] = [];
  let isGone = false;
  await fc.assert(
    fc.asyncProperty(connection, async (sent) => {
      // Without the server, no smaller bytes can be found.
      if (isGone) return;
      const answers = await exchange(port, sent).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "ECONNREFUSED") throw error;
        isGone = true;
        throw new Error(
          `It was gone after these connections:\n${latest.map((one) => show(one, shownCharacters)).join("\n")}\n`,
        );
      });
      latest = [...latest.slice(1 - latestShown), sent];
      const answered = readStatuses(answers);
      for (const status of answered) {
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        // Ingest may answer 503 to anything, and no other 5xx.
        const isExpected = sent.statuses?.includes(status) ?? !status.startsWith("5");
        if (!isExpected && status !== "503") throw new Error(`Answered ${status}.`);
      }
      const expected = sent.statuses === undefined ? 0 : (sent.requests ?? 0);
      if (answered.length < expected) throw new Error(`${answered.length} of ${expected} answers.`);
    }),
    { numRuns: options.connections, seed: options.seed, reporter: throwFailure },
  );
  return statuses;
}

function throwFailure({ failed, counterexample, errorInstance, seed, numRuns, numShrinks }: fc.RunDetails<[Sent]>) {
  if (!failed) return;
  const message = errorInstance instanceof Error ? errorInstance.message : "Failed.";
  throw new Error(
    `${message} Seed ${seed}, after ${numRuns} connections, shrunk ${numShrinks} times to these bytes:\n` +
      show(counterexample?.[0]),
  );
}

function show(sent: Sent | undefined, mostCharacters?: number): string {
  const reset = sent?.reset === undefined ? "" : `, and a reset ${sent.reset}`;
  return JSON.stringify(sent?.bytes.toString("latin1").slice(0, mostCharacters)) + reset;
}

/** @returns everything that the server sends until it closes the connection, or has sent all answers */
function exchange(port: number, { bytes, requests, reset }: Sent): Promise<string> {
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
    // The server may close a connection by a reset.
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
