import { build } from "./build.ts";
import { SetupProblem } from "./setup-problem.ts";

/** Tests of the built apps must never test a missing or stale build. Takes a second if there is nothing to build. */
export default async function setUp(): Promise<void> {
  try {
    await build();
  } catch (error) {
    if (!(error instanceof SetupProblem)) throw error;
    throw new Error(`${error.message}\n\n  What to do: ${error.advice}`);
  }
}
