/** Within this time, a second signal is the same Ctrl-C: a terminal sends it to all processes, and each forwards it. */
const SAME_KEYSTROKE_MS = 1_000;

/**
 * Aborts when we are told to stop: by Ctrl-C, SIGTERM, a closed terminal, or the end of the process that started us. A
 * second, deliberate signal calls `force`.
 */
export function stopRequested({ force }: { force: () => void }): AbortSignal {
  const controller = new AbortController();
  let firstAtMs: number | undefined;
  const request = () => {
    if (firstAtMs === undefined) {
      firstAtMs = Date.now();
      controller.abort(new Error("stopped by the user"));
    } else if (Date.now() - firstAtMs >= SAME_KEYSTROKE_MS) {
      force();
    }
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, request);
  process.once("disconnect", request);
  // The channel to the process that started us must not keep this one alive.
  process.channel?.unref();
  return controller.signal;
}
