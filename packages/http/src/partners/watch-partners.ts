import type { Partner, PartnerRegistry } from "@booking-events/partners";
import type { Records } from "@booking-events/queue";
import type { Logger, Registry } from "@booking-events/runtime";
import { watchPartnersFile } from "./watch-partners-file.ts";
import { RevocationWatch } from "./watch-revocations.ts";

/** Watches the partners file, and in Redis which secrets were revoked. Resolves when both have been read, or can't be. */
export async function watchPartners(options: {
  /** The prefix of the metrics' names. */
  app: string;
  path: string;
  readRevocations: Records["readRevocations"];
  /** Undefined: this process records none. */
  writeRevocations?: Records["writeRevocations"];
  /** Called with each valid version of the file. */
  onLoaded?: (partners: readonly Partner[]) => void;
  logger: Logger;
  metrics: Registry;
}) {
  const { readRevocations: read, writeRevocations: write, onLoaded, ...common } = options;
  const revocations = new RevocationWatch({ ...common, read, write });
  await revocations.start();
  const file = await watchPartnersFile({
    ...common,
    isRevoked: (sha256) => revocations.isRevoked(sha256),
    onLoaded(partners) {
      revocations.setPartners(partners);
      onLoaded?.(partners);
    },
  });
  return {
    registry: (): PartnerRegistry => file.registry(),
    /** Why no partners are known, for an operator. Empty if some are. */
    problems: () => file.problems(),
    /** Why the file is not in use as it is, for an operator. */
    warnings: () => [...file.warnings(), ...revocations.warnings()],
    /** Until Redis has been read, a revoked secret may look valid. */
    areRevocationsKnown: () => revocations.isKnown(),
    /** Why that is so although Redis answers, for an operator. */
    revocationProblems: () => revocations.problems(),
    stop() {
      file.stop();
      revocations.stop();
    },
  };
}
