import { build } from "./build.ts";
import { SetupProblem } from "./setup-problem.ts";

/** For tests that run the built apps: so that what they test is the code that is here. Takes a second if it is built. */
export default async function setUp(): Promise<void> {
  try {
    await build();
  } catch (error) {
    if (!(error instanceof SetupProblem)) throw error;
    throw new Error(`${error.message}\n\n  What to do: ${error.advice}`);
  }
}
