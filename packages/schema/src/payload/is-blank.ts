import { cleanReference } from "./clean-reference.ts";

/** Whether the text has nothing that anybody could see, so that it counts as no value. */
export function isBlank(text: string): boolean {
  return cleanReference(text) === "";
}
