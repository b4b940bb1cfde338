/** An ingest that can pause after Redis has the event and before the partner has the answer. */
import { runIngest } from "@booking-events/ingest/run-ingest";
import { createProducer } from "@booking-events/queue";
import { pauseAt } from "./pause-at.ts";

await runIngest(process.env, {
  createProducer(options) {
    const producer = createProducer(options);
    return {
      ...producer,
      async enqueue(...args) {
        const sequence = await producer.enqueue(...args);
        await pauseAt("before-answer");
        return sequence;
      },
    };
  },
});
