/** Where to go after a login: only to a page of ours. */
export function toLocalPath(wanted: string | null): string {
  // A browser reads `//host` and `/\host` as another host, and drops tabs and line breaks before.
  return wanted !== null && /^\/(?![/\\])[\x21-\x7e]*$/.test(wanted) ? wanted : "/";
}
