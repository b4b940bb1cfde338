/**
 * Waits for statements that were sent together. All of them have ended when this returns or throws, so none can reach
 * the connection after a rollback.
 *
 * @throws the error of the first statement that failed. In a transaction, the later ones failed because of it
 */
export async function settleAll<Results extends unknown[]>(
  statements: [...{ [Place in keyof Results]: Promise<Results[Place]> }],
): Promise<Results> {
  await Promise.allSettled(statements);
  return (await Promise.all(statements)) as Results;
}
