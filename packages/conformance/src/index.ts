export {
  CannotCheck,
  type CheckReceiverOptions,
  type CheckResult,
  checkReceiver,
  type ReceiverReport,
  receiverChecks,
} from "./receiver/check-receiver.ts";
