import { createServer } from "node:http";

/** A server with one mistake, named by the first argument, which the fuzzer must find. */
const mistake = process.argv[2];

const events = createServer(async (request, response) => {
  try {
    let text = "";
    for await (const chunk of request) text += chunk;
    if (mistake === "prints" && text !== "") console.log(`received ${text}`);
    if (mistake === "hangs" && text.includes("canary")) return;
    const event = JSON.parse(text);
    if (mistake === "throws") for (const value of Object.values(event)) (value as string).trim();
    // 503 is always allowed.
    respond(mistake === "believes" || !text.includes("canary") ? 200 : 503);
  } catch (error) {
    respond(mistake === "throws" && !(error instanceof SyntaxError) ? 500 : 503);
  }

  function respond(status: number): void {
    response.writeHead(status, { Connection: "close" }).end();
  }
});
if (mistake === "dies") {
  events.on("connect", (_request, socket) =>
    socket.end("HTTP/1.1 405 Method Not Allowed\r\nConnection: close\r\n\r\n"),
  );
}
events.listen(Number(process.env["PORT"]), "127.0.0.1");

createServer((_request, response) => {
  response.end('nodejs_active_resources_total{process="careless"} 1\n');
}).listen(Number(process.env["ADMIN_PORT"]), "127.0.0.1");

process.on("SIGTERM", () => process.exit(0));
