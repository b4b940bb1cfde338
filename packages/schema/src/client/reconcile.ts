import type { Difference, ListedReference, ReconciliationCounts } from "../answers/lookup-bodies.ts";
import { toError } from "./call-service.ts";
import { type Attempt, aborted, endAfter, type Fault, hideSecret, judgeAnswer, readText } from "./send-once.ts";

/** What is read of the list before it is passed on. */
const chunkLength = 65_536;
/** The service refuses a whole list, because of the secret or the rate limit for example, when the list begins. */
const firstPauseMs = 250;
/** A reference of 8,192 characters takes at most 48 KiB. */
const maxLineLength = 65_536;

const cutOff: Fault = {
  code: "network-error",
  retryable: true,
  message: "The answer ended before its summary.",
};

/**
 * Sends a list while it is read, and yields each difference when it arrives. It is not retried, because the list may be
 * readable only once.
 *
 * @throws BookingEventsError; what the list throws
 */
export async function* reconcileList(
  request: Omit<Attempt<unknown>, "init" | "accept">,
  list: Iterable<ListedReference> | AsyncIterable<ListedReference>,
): AsyncGenerator<Difference, ReconciliationCounts> {
  const { url, secret, signal, timeoutMs, fetch } = request;
  if (signal?.aborted) throw toError(aborted, 0);
  const ending = endAfter(timeoutMs, signal);
  const upload = createUpload(list);
  const readFault = (error: unknown) => {
    const fault = upload.fault();
    return fault === undefined ? toError(ending.explain(error), 1) : fault.error;
  };
  try {
    const init = { method: "POST", headers: { "Content-Type": "application/x-ndjson" }, body: upload.stream };
    // Node requires `duplex` for a stream, and the types of the DOM lack it.
    const options = { ...init, duplex: "half", redirect: "manual", signal: ending.signal } as RequestInit;
    const response = await orThrow(fetch(url, options), readFault);
    if (response.status !== 200) {
      const text = await orThrow(readText(response), readFault);
      throw toError(judgeAnswer(response, text, { secret, accept: () => undefined }) as Fault, 1);
    }
    const lines = readLines(response);
    for (;;) {
      const { done, value } = await orThrow(lines.next(), readFault);
      if (done) throw toError(cutOff, 1);
      const line = parseLine(value, hideSecret(secret));
      if (line === undefined) throw toError(cutOff, 1);
      if ("summary" in line) return line.summary;
      yield line;
    }
  } finally {
    // Also if the caller stops reading.
    ending.end();
    // Without waiting, because the list may be what hangs.
    upload.stop().catch(() => {});
  }
}

async function orThrow<Result>(work: Promise<Result>, toFault: (error: unknown) => unknown): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    throw toFault(error);
  }
}

/** Reads the list only as fast as it is sent. */
function createUpload(list: Iterable<ListedReference> | AsyncIterable<ListedReference>) {
  const iterator = Symbol.asyncIterator in list ? list[Symbol.asyncIterator]() : list[Symbol.iterator]();
  const encoder = new TextEncoder();
  let isStopped = false;
  let pauseMs = firstPauseMs;
  let fault: { error: unknown } | undefined;

  async function readChunk(): Promise<{ lines: string; isLast: boolean }> {
    let lines = "";
    while (lines.length < chunkLength) {
      const { done, value } = await iterator.next();
      // A list that is cut short must not look complete.
      if (isStopped) throw new Error("The call has ended.");
      if (done) return { lines, isLast: true };
      const { reference, referenceKind, digest } = value;
      lines += `${JSON.stringify({ reference, referenceKind, digest })}\n`;
    }
    return { lines, isLast: false };
  }

  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { lines, isLast } = await readChunk();
        if (lines !== "") controller.enqueue(encoder.encode(lines));
        if (isLast) return controller.close();
        // Without pauses, Node would go on writing to a connection that the service has closed, and lose its refusal.
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
        pauseMs = 0;
      } catch (error) {
        fault = { error };
        controller.error(error);
      }
    },
  });
  return {
    stream,
    /** What the list has thrown. */
    fault: () => fault,
    /** After the answer, `fetch` would go on reading the list to its end. */
    async stop() {
      isStopped = true;
      await iterator.return?.();
    },
  };
}

async function* readLines({ body }: Response): AsyncGenerator<string, undefined> {
  if (body === null) return;
  const reader = body.getReader();
  // A reference that arrives damaged would be another one. Reading then fails, as if the connection had broken.
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
    if (rest.length > maxLineLength) return;
  }
}

/** Returns undefined for what is not the service's. */
function parseLine(
  line: string,
  hide: (value: unknown) => unknown,
): Difference | { summary: ReconciliationCounts } | undefined {
  try {
    const value = JSON.parse(line, (_, member) => hide(member));
    if (typeof value.reference === "string" && typeof value.result === "string") return value;
    return typeof value.summary?.references === "number" ? value : undefined;
  } catch {
    return undefined;
  }
}
