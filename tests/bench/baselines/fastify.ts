/** The same with Fastify. */
import { randomUUID } from "node:crypto";
import { validatePayload } from "@booking-events/schema";
import formbody from "@fastify/formbody";
import { Queue } from "bullmq";
import Fastify from "fastify";
import { findPartner } from "./secrets.ts";
import { redisOptions, serve } from "./serve.ts";

const queue = new Queue("events", { connection: redisOptions(), prefix: process.env["QUEUE_PREFIX"] ?? "" });
const app = Fastify();
await app.register(formbody);

for (const kind of ["create", "update", "delete"] as const) {
  app.post<{ Params: { secret: string } }>(`/booking-event/${kind}/:secret`, async (request, reply) => {
    const partner = findPartner(request.params.secret);
    if (partner === undefined) return reply.code(403).send({ message: "Invalid secret" });
    const result = validatePayload(kind, request.body);
    if (!result.success) {
      return reply.code(422).send({ message: "Invalid data", violationList: result.violationList });
    }
    const eventId = randomUUID();
    await queue.add(
      kind,
      { eventId, kind, partner, receivedAt: new Date().toISOString(), payload: result.payload },
      { jobId: eventId, attempts: 15, backoff: { type: "exponential", delay: 1_000 }, removeOnComplete: true },
    );
    return { success: true, eventId };
  });
}
await queue.waitUntilReady();
await app.ready();
serve(app.server, () => queue.close());
