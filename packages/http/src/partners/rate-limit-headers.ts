import type { Partner } from "@booking-events/partners";

/**
 * Formats the fields of draft-ietf-httpapi-ratelimit-headers-11, whose syntax is lists of structured-field items.
 *
 * The draft defines quotas in windows of whole seconds, and we have a token bucket. The window is the time in which the
 * bucket fills, and the quota is what a partner may send in each window. A full bucket allows more once.
 */
export function describePolicy({ perSecond, burst }: Partner["rateLimit"]): string {
  const windowS = Math.ceil(burst / perSecond);
  const quota = Math.max(burst, Math.floor(perSecond * windowS));
  return `"partner";q=${quota};w=${windowS}`;
}

/**
 * @param available the number of requests that would be accepted now
 * @param seconds how long this number applies at least; never longer than Retry-After
 */
export function describeQuota(available: number, seconds: number): string {
  return `"partner";r=${available};t=${seconds}`;
}
