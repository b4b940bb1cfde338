import { expect, test, vi } from "vitest";
import { ArrivingBytes, maxArrivingBytes } from "./arriving-bytes.ts";

test("what is read of a body after it was refused does not count, so the partner can send again", () => {
  const arriving = new ArrivingBytes();
  const first = arriving.begin("acme", vi.fn());
  first.add(maxArrivingBytes);
  const onRefused = vi.fn();
  const refused = arriving.begin("acme", onRefused);
  refused.add(1);
  expect(onRefused).toHaveBeenCalledOnce();
  refused.end();
  refused.add(maxArrivingBytes);
  first.end();

  const onExceeded = vi.fn();
  arriving.begin("acme", onExceeded).add(maxArrivingBytes);
  expect(onExceeded).not.toHaveBeenCalled();
});
