import { insertCopy, keepCopy } from "../keep-copy.ts";

/** The mistake: a reader finds its copy by the booking's reference, which an erased booking no longer has. */
await keepCopy((reader, { change }, client) => {
  if (change.payload !== null) return insertCopy(reader, change, client);
  const { partner, referenceKind, reference } = change;
  return client.query(
    "delete from copies where reader = $1 and partner = $2 and reference_kind = $3 and reference = $4",
    [reader, partner, referenceKind, reference],
  );
});
