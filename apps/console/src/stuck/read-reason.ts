import { Refusal } from "../server/refusal.ts";

const maxLength = 200;

/** Why dead letters are discarded, in one line. It is kept with them. */
export function readReason(form: URLSearchParams): string {
  const reason = form.get("reason")?.trim() ?? "";
  if (reason === "") throw new Refusal(400, "No reason", "Say why they are discarded. It is kept with them.");
  if (reason.length <= maxLength && !/\p{Cc}/u.test(reason)) return reason;
  throw new Refusal(400, "No such reason", `Give a reason of at most ${maxLength} characters, in one line.`);
}
