export {
  CannotCheck,
  type CheckReceiverOptions,
  type CheckResult,
  checkReceiver,
  type ReceiverReport,
  receiverChecks,
} from "./receiver/check-receiver.ts";
export {
  type PlayedReceiver,
  type PlayReceiverOptions,
  playReceiver,
  type ScenarioResult,
  type SenderReport,
} from "./sender/play-receiver.ts";
