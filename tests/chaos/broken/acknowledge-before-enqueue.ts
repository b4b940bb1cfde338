import { runIngest } from "@booking-events/ingest/run-ingest";
import { createProducer } from "@booking-events/queue";

/** The mistake: ingest answers first, and puts the event into the queue afterwards. */
await runIngest(process.env, {
  createProducer: (options) => {
    const producer = createProducer(options);
    return {
      ...producer,
      async enqueue(event) {
        void producer.enqueue(event).catch(() => {});
        return 1;
      },
    };
  },
});
