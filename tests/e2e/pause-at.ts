/** Stops here for ever, if PAUSE_AT says so. */
export async function pauseAt(point: string): Promise<void> {
  if (process.env["PAUSE_AT"] !== point) return;
  process.stdout.write(`paused ${point}\n`);
  await new Promise(() => {});
}
