import { inject, type ProvidedContext } from "vitest";
import type {} from "./shared-services.ts"; // It declares what is provided.

export function provided<Key extends keyof ProvidedContext>(key: Key): ProvidedContext[Key] {
  const value = inject(key) as ProvidedContext[Key] | undefined;
  if (value === undefined) throw new Error("No services here: a test that needs them is named *.services.test.ts");
  return value;
}
