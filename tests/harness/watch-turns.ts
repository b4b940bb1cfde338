import type { ServerResponse } from "node:http";

/** @returns the most that has been written in one turn of the event loop since now, in characters or bytes */
export function watchTurns(response: ServerResponse): () => number {
  let inThisTurn = 0;
  let mostInATurn = 0;
  const write = response.write.bind(response) as (chunk: string | Buffer) => boolean;
  response.write = (chunk: string | Buffer) => {
    inThisTurn += chunk.length;
    mostInATurn = Math.max(mostInATurn, inThisTurn);
    return write(chunk);
  };
  const countTurn = () => {
    inThisTurn = 0;
    if (!response.closed) setImmediate(countTurn);
  };
  countTurn();
  return () => mostInATurn;
}
