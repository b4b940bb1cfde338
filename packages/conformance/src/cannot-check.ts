/** Nothing can be checked at all. */
export class CannotCheck extends Error {
  override name = "CannotCheck";
}
