import { SetupProblem } from "./setup-problem.ts";

/** As much of a URL as may be shown: never its password. */
export function hostOf(variable: string, url: string): string {
  if (URL.canParse(url)) return new URL(url).host;
  const example = variable === "REDIS_URL" ? "redis://host:6379" : "postgres://user:password@host:5432/database";
  throw new SetupProblem(
    `${variable} is set, but it is no URL.`,
    `Set it to a URL such as ${example}, or leave it out.`,
  );
}
