import { createConsumer } from "@booking-events/queue";
import { runWorker } from "@booking-events/worker/run-worker";

/** The mistake: a worker takes events whatever database the queue feeds. */
await runWorker(process.env, {
  createConsumer(options) {
    const consumer = createConsumer(options);
    const { record } = consumer;
    return {
      ...consumer,
      record: {
        ...record,
        read: async () => ({ ...(await record.read()), database: null }),
        claim: async (database) => database,
      },
      start(database) {
        record.read().then((recorded) => consumer.start(recorded.database ?? database), options.onError);
      },
    };
  },
});
