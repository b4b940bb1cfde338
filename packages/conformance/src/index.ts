export { CannotCheck } from "./cannot-check.ts";
export {
  type CheckResult,
  checkReceiver,
  type ReceiverReport,
  receiverChecks,
} from "./receiver/check-receiver.ts";
export type { CheckReceiverOptions } from "./receiver/receiver.ts";
export { type PlayedReceiver, type PlayReceiverOptions, playReceiver } from "./sender/play-receiver.ts";
export type { HabitResult, Remark, ScenarioResult, SenderReport } from "./sender/sender-run.ts";
