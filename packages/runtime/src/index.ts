export { createServerCheck } from "./check-server.ts";
export { ClockLimit, describeDifference, maxClockDifferenceMs } from "./clock-limit.ts";
export { ClockComparison, type ServerTime } from "./compare-clocks.ts";
export { adviseOnConnection, adviseOnDatabase } from "./connection-advice.ts";
export { createTracing } from "./create-tracing.ts";
export { adminPort, parseEnvironment, redisVariables, servicePort, variables } from "./environment.ts";
export { exportCertificates } from "./export-certificates.ts";
export { gatherPerTurn } from "./gather-per-turn.ts";
export { type GracefulShutdown, installGracefulShutdown } from "./graceful-shutdown.ts";
export { type FindProblems, type FindWarnings, startHealthServer } from "./health-server.ts";
export { inSpan } from "./in-span.ts";
export { listen } from "./listen.ts";
export { createLogger, describeError, type Logger, safeMessage } from "./logger.ts";
export { Counter, createMetrics, createTallies, Gauge, Histogram, type Registry, type Tally } from "./metrics.ts";
export {
  formatAddress,
  listUrls,
  nameVariable,
  type RedisAddress,
  type RedisCluster,
  type RedisSentinels,
  type RedisServers,
  toRedisServers,
} from "./redis-servers.ts";
export { refuseTracingAgents } from "./refuse-tracing-agents.ts";
export { keepDoing, repeat, tryFor } from "./repeat.ts";
export { isHostClockWrong, ServerClock } from "./server-clock.ts";
export { createSlots, type InSlot } from "./slots.ts";
export { splitHosts } from "./split-hosts.ts";
export { exitOnStartError, StartError } from "./start-error.ts";
export type { Span, Tracing } from "./tracing.ts";
export { version } from "./version.ts";
export { ClockWatch } from "./watch-clocks.ts";
export { DeadlineExceeded, withDeadline } from "./with-deadline.ts";
