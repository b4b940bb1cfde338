/** Runs a part of the check, and says how it went. What it returns is a measurement. */
export type Step = <Result>(name: string, run: () => Promise<Result>) => Promise<Result>;

/** The first step that fails ends the check, because the next ones build on it. */
export async function step<Result>(name: string, run: () => Promise<Result>): Promise<Result> {
  const startedAt = Date.now();
  const say = (word: string, detail: unknown = "") => {
    const seconds = ((Date.now() - startedAt) / 1_000).toFixed(1).padStart(6);
    console.log(
      `${word.padEnd(6)} ${seconds} s  ${name}${typeof detail === "string" && detail !== "" ? `: ${detail}` : ""}`,
    );
  };
  try {
    const result = await run();
    say("ok", result);
    return result;
  } catch (error) {
    say("FAILED");
    throw error;
  }
}
