export { adminPort, parseEnvironment, variables } from "./environment.ts";
export { type GracefulShutdown, installGracefulShutdown, type ShutdownPhase } from "./graceful-shutdown.ts";
export { type FindProblems, startHealthServer } from "./health-server.ts";
export { listen } from "./listen.ts";
export { createLogger, describeError, type Logger, safeMessage } from "./logger.ts";
export { Counter, createMetrics, Gauge, Histogram, type Registry } from "./metrics.ts";
export { repeat } from "./repeat.ts";
export { exitOnStartError, StartError } from "./start-error.ts";
export { DeadlineExceeded, withDeadline } from "./with-deadline.ts";
