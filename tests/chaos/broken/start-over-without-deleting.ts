import { keepCopy, saveAsDocumented } from "../keep-copy.ts";

/** The mistake: a reader that starts over, or was behind, only adds what there is, and keeps what there is no more. */
await keepCopy(async (reader, delivery, client) => {
  const isGone = delivery.standsForEarlier && delivery.change.payload === null;
  if (!isGone) await saveAsDocumented(reader, delivery, client);
});
