import { waitFor } from "@booking-events/harness/wait-for";
import { type FuzzResult, fuzzIngest } from "./fuzz-ingest.ts";
import { type IngestUnderTest, secrets, startIngestUnderTest } from "./ingest-under-test.ts";
import { canary } from "./requests.ts";

/** Connections that are closed and not yet cleaned up. */
const spareHandles = 10;

/**
 * Fuzzes an ingest of its own, and checks that it is as well afterwards as before.
 *
 * @throws an error that says what went wrong, with the seed and the bytes if it was an answer
 */
export async function checkIngest(options: {
  redisUrl: string;
  queuePrefix: string;
  connections: number;
  seed: number;
  entry?: readonly string[];
  answerLimitMs?: number;
}): Promise<FuzzResult> {
  const ingest = await startIngestUnderTest(options);
  try {
    if (!(await ingest.isWell())) throw new Error("Ingest does not accept an event before the first wrong one.");
    const handlesBefore = await ingest.countHandles();
    const result = await fuzzIngest({ ...options, port: ingest.port, secrets });
    await checkAfterwards(ingest, handlesBefore);
    return result;
  } finally {
    await ingest.stop();
  }
}

async function checkAfterwards(ingest: IngestUnderTest, handlesBefore: number): Promise<void> {
  // It may be shedding load still.
  await waitFor(() => ingest.isWell(), { timeoutMs: 15_000 }).catch((cause) => {
    throw new Error("Ingest does not accept an event any more.", { cause });
  });
  await waitFor(
    async () => {
      const handles = await ingest.countHandles();
      if (handles > handlesBefore + spareHandles)
        throw new Error(`It holds ${handles} handles, ${handlesBefore} before.`);
      return true;
    },
    { timeoutMs: 30_000 },
  );
  if ((await ingest.stop()) !== 0)
    throw new Error(`Ingest did not end in good order:\n${ingest.output().slice(-2_000)}`);
  const bad = ingest
    .output()
    .split("\n")
    .find((line) => mustNotSay.some((pattern) => line.includes(pattern)));
  if (bad !== undefined) throw new Error(`The log has a line that it must not have: ${bad.slice(0, 500)}`);
}

/** What was sent, the valid secret, and what Node or the app says of errors that nobody caught. */
const mustNotSay = [canary, secrets[0], '"level":"fatal"', '"level":"error"', "Warning:"];
