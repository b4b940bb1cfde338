/** The least that Node can do with a JSON body: read, parse, answer. */
import { serve } from "./serve.ts";

const answer = JSON.stringify({ success: true });

serve((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const text = Buffer.concat(chunks).toString();
    if (request.headers["content-type"] === "application/json") JSON.parse(text);
    else new URLSearchParams(text);
    response.writeHead(200, { "Content-Type": "application/json", "Content-Length": answer.length }).end(answer);
  });
});
