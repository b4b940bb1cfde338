import type { Partner } from "@booking-events/partners";

/**
 * The fields of draft-ietf-httpapi-ratelimit-headers-11, as its syntax has them: lists of structured-field items.
 *
 * The draft knows quotas in windows of whole seconds, and we have a bucket. The window is the time in which the bucket
 * fills, and the quota what a partner may send in it, again and again. A fuller bucket allows for more once.
 */
export function describePolicy({ perSecond, burst }: Partner["rateLimit"]): string {
  const windowS = Math.ceil(burst / perSecond);
  const quota = Math.max(burst, Math.floor(perSecond * windowS));
  return `"partner";q=${quota};w=${windowS}`;
}

/**
 * @param available requests that would pass now
 * @param seconds for which to do with that many, at least; never longer than Retry-After
 */
export function describeQuota(available: number, seconds: number): string {
  return `"partner";r=${available};t=${seconds}`;
}
