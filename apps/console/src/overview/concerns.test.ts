import { renderToString } from "preact-render-to-string";
import { expect, test } from "vitest";
import { Concerns } from "./concerns.tsx";

const render = (unresolvedGuests: number) => renderToString(Concerns({ concerns: [], unresolvedGuests }));

test("it does not say that nothing needs attention while something of a guest who arrives soon is unresolved", () => {
  expect(render(0)).toContain("Nothing needs attention.");
  expect(render(1)).not.toContain("Nothing needs attention.");
  expect(render(1)).toContain('<a href="/arrivals">');
});
