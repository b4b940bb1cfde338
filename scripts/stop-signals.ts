/** A repeated signal within this time is the same Ctrl-C: a terminal sends it to every process, and each passes it on. */
const SAME_KEYSTROKE_MS = 1_000;

/**
 * Turns the ways in which we are told to stop into one signal: Ctrl-C, SIGTERM, a closed terminal, and the end of the
 * process that started us. A second, deliberate one calls `force`.
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
  // The channel to the process that started us carries nothing, and is no reason to live.
  process.channel?.unref();
  return controller.signal;
}
