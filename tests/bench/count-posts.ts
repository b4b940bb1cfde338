import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface PostCounter {
  url: string;
  /** Posts that were answered with 200. */
  accepted: number;
  /** When the last of them came, by `performance.now()`. */
  lastAtMs: number;
  /** Called with the `webhook-id` of each. */
  onAccepted: (id: string) => void;
  stop(): Promise<void>;
}

/**
 * Starts a subscriber that reads each post and takes it.
 *
 * @param options.refuses posts with this reference are answered with 500
 */
export async function startPostCounter({ refuses }: { refuses?: string } = {}): Promise<PostCounter> {
  const server = createServer((req, res) => {
    let body = "";
    req.setEncoding("utf8");
    req.on("data", (chunk) => {
      if (refuses !== undefined) body += chunk;
    });
    req.on("end", () => {
      if (refuses !== undefined && body.includes(`"${refuses}"`)) return void res.writeHead(500).end();
      counter.accepted += 1;
      counter.lastAtMs = performance.now();
      counter.onAccepted(String(req.headers["webhook-id"]));
      res.end();
    });
  });
  server.keepAliveTimeout = 60_000;
  await once(server.listen(0, "127.0.0.1"), "listening");
  const counter: PostCounter = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    accepted: 0,
    lastAtMs: 0,
    onAccepted: () => {},
    async stop() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
  return counter;
}
