/** What a page says: without its markup, and with single spaces. */
export function textOf(html: string): string {
  return html
    .replace(/<(script|style)\b.*?<\/\1>/gs, "")
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll("&lt;", "<")
    .replaceAll("&quot;", '"')
    .replaceAll("&amp;", "&")
    .replaceAll(/\s+/g, " ");
}
