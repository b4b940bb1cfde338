import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { SetupProblem } from "./setup-problem.ts";

export const DEMO_PARTNER = "demo";

/** So high that whoever tries out how much it takes meets the machine's limit, and not the partner's. */
const DEMO_LIMIT = ["--rate", "100000"] as const;

/** Runs the operator's command line and resolves to what it prints. */
export type RunOps = (...args: string[]) => Promise<string>;

/**
 * Makes sure that the partners file has the partner `demo`, and that its secret is known here: a partners file holds
 * digests only, so the secret itself is kept beside the demo's other data.
 *
 * @returns the secret, or a sentence that says why there is no demo partner
 */
export async function ensureDemoPartner(options: {
  partnersFile: string;
  /** False for a file that the user named: if it exists, it is read and never changed. */
  mayChange: boolean;
  secretFile: string;
  runOps: RunOps;
}): Promise<{ secret: string } | { absentBecause: string }> {
  const { partnersFile, mayChange, secretFile, runOps } = options;
  const demo = readPartners(partnersFile).find(({ id }) => id === DEMO_PARTNER);
  const keptSecret = existsSync(secretFile) ? readFileSync(secretFile, "utf8").trim() : "";

  if (demo && demo.enabled !== true)
    return { absentBecause: `the partner ${DEMO_PARTNER} in ${partnersFile} is disabled` };
  if (demo && isValidSecret(demo, keptSecret, Date.now())) return { secret: keptSecret };
  if (!mayChange && existsSync(partnersFile))
    return { absentBecause: `PARTNERS_FILE names ${partnersFile}, which is left as it is` };

  const printed = demo
    ? await runOps("partners", "rotate", DEMO_PARTNER, "--json")
    : await runOps("partners", "add", DEMO_PARTNER, "--name", "Demo partner", ...DEMO_LIMIT, "--json");
  const { secret } = JSON.parse(printed) as { secret?: unknown };
  if (typeof secret !== "string") throw new Error(`The partners command printed no secret for ${DEMO_PARTNER}`);
  writeFileSync(secretFile, `${secret}\n`, { mode: 0o600 });
  return { secret };
}

/** As much of a partner as matters here. The file's full rules are the service's, which says what is wrong with it. */
interface PartnerEntry {
  id?: unknown;
  enabled?: unknown;
  secrets?: { sha256?: unknown; expiresAt?: string | null }[];
}

function readPartners(partnersFile: string): PartnerEntry[] {
  if (!existsSync(partnersFile)) return [];
  try {
    const text = readFileSync(partnersFile, "utf8");
    const { partners } = JSON.parse(text.replace(/^\ufeff/, "")) as { partners: PartnerEntry[] };
    return [...partners];
  } catch (cause) {
    throw new SetupProblem(
      `The partners file ${partnersFile} can't be read as {"partners": [...]}.`,
      "Fix it; or, if it holds nothing but the demo partner, delete it: the next start makes a new one.",
      { cause },
    );
  }
}

function isValidSecret(partner: PartnerEntry, secret: string, nowMs: number): boolean {
  const digest = createHash("sha256").update(secret).digest("hex");
  return (partner.secrets ?? []).some(
    ({ sha256, expiresAt }) => sha256 === digest && (!expiresAt || Date.parse(expiresAt) > nowMs),
  );
}
