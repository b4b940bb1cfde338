/** Never resolves if PAUSE_AT names this point. */
export async function pauseAt(point: string): Promise<void> {
  if (process.env["PAUSE_AT"] !== point) return;
  process.stdout.write(`paused ${point}\n`);
  await new Promise(() => {});
}
