import { keepCopy } from "../keep-copy.ts";

/** The mistake: a reader that starts over keeps what it has, and only adds the snapshot to it. */
await keepCopy({ deleteAll: async () => {} });
