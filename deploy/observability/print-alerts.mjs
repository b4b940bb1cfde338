// The example of a receiver: prints each alert that Alertmanager posts, until .env has the address of a real one.
import { createServer } from "node:http";
import { text } from "node:stream/consumers";

createServer(async (request, response) => {
  const { alerts = [] } = JSON.parse(await text(request));
  for (const { status, labels, annotations } of alerts)
    console.log(request.url, status, labels.alertname, "|", annotations.summary, "|", annotations.runbook_url);
  response.end();
}).listen(8080);

process.on("SIGTERM", () => process.exit(0));
