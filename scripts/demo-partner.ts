import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { SetupProblem } from "./setup-problem.ts";

export const DEMO_PARTNER = "demo";

/** So high that a load test reaches the machine's limit first. */
const DEMO_RATE = "100000";

/** Runs the operator's command line and resolves to what it prints. */
export type RunOps = (...args: string[]) => Promise<string>;

/**
 * Makes sure that the partners file has the partner `demo`, and that its secret is known. The file has only digests of
 * secrets, so the secret itself is kept in a file of its own.
 *
 * @param options.mayChange false for a file that the user named: if it exists, it is read and never changed
 * @returns the secret, or why there is no demo partner
 */
export async function ensureDemoPartner(options: {
  partnersFile: string;
  mayChange: boolean;
  secretFile: string;
  runOps: RunOps;
}): Promise<{ secret: string } | { absentBecause: string }> {
  const { partnersFile, mayChange, secretFile, runOps } = options;
  const demo = readPartners(partnersFile).find(({ id }) => id === DEMO_PARTNER);
  const keptSecret = existsSync(secretFile) ? readFileSync(secretFile, "utf8").trim() : "";

  if (demo?.enabled === false) return { absentBecause: `the partner ${DEMO_PARTNER} is disabled in ${partnersFile}` };
  if (demo && isValidSecret(demo, keptSecret)) return { secret: keptSecret };
  if (!mayChange && existsSync(partnersFile)) return { absentBecause: "npm start does not change your PARTNERS_FILE" };

  const change = demo ? ["rotate", DEMO_PARTNER] : ["add", DEMO_PARTNER, "--name", "Demo partner", "--rate", DEMO_RATE];
  const { secret } = JSON.parse(await runOps("partners", ...change, "--json")) as { secret: string };
  writeFileSync(secretFile, `${secret}\n`, { mode: 0o600 });
  return { secret };
}

/** The parts of a partner that are needed here. The service checks the whole file, and says what is wrong with it. */
interface PartnerEntry {
  id: string;
  enabled: boolean;
  secrets?: { sha256: string; expiresAt: string | null }[];
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
      "Fix it; or, if it contains only the demo partner, delete it: the next start creates a new one.",
      { cause },
    );
  }
}

function isValidSecret({ secrets = [] }: PartnerEntry, secret: string): boolean {
  const digest = createHash("sha256").update(secret).digest("hex");
  return secrets.some(
    ({ sha256, expiresAt }) => sha256 === digest && (!expiresAt || Date.parse(expiresAt) > Date.now()),
  );
}
