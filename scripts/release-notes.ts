/** @returns what the changelog says of a version; undefined: nothing */
export function readReleaseNotes(changelog: string, version: string): string | undefined {
  const sections = changelog.split(/^## /m);
  const section = sections.find((text) => text.startsWith(`[${version}]`)) ?? "";
  return section.slice(section.indexOf("\n")).trim() || undefined;
}
