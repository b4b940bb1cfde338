/** The partners file, or a change to it, is refused. The message tells an operator what happened and what to do. */
export class PartnersError extends Error {
  override name = "PartnersError";
}
