import { createServer, type RequestListener, type Server } from "node:http";

/** Listens on PORT, answers /readyz on ADMIN_PORT, and ends on SIGTERM. */
export function serve(listener: RequestListener | Server, close: () => Promise<unknown> = async () => {}): void {
  const server = typeof listener === "function" ? createServer(listener) : listener;
  server.keepAliveTimeout = 75_000;
  server.listen(Number(process.env["PORT"]), "127.0.0.1");
  answerReady();
  process.on("SIGTERM", () => void close().finally(() => process.exit(0)));
}

export function answerReady(): void {
  createServer((_request, response) => response.end("{}")).listen(Number(process.env["ADMIN_PORT"]), "127.0.0.1");
}

export function redisOptions(): { host: string; port: number; password: string } {
  const { hostname, port, password } = new URL(process.env["REDIS_URL"] ?? "");
  return { host: hostname, port: Number(port), password: decodeURIComponent(password) };
}
