import { UnderWay } from "@booking-events/feed/deliver/under-way";
import { runWebhooks } from "@booking-events/webhooks/run-webhooks";

const { add } = UnderWay.prototype;

/** The mistake: the place in the feed moves when a change has been read, not when it has been delivered. */
UnderWay.prototype.add = function addAndMove(place) {
  const finish = add.call(this, place);
  finish();
  return finish;
};

await runWebhooks(process.env);
