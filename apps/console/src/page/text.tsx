// <Text value={hostile} />: a text that somebody else has written: isolated, with invisible characters made visible, and clipped (all of it behind "all").
// <Masked />: in the place of a guest's value. It does not tell its length.
// <Id value={eventId} />: an identifier, set in a monospaced font.
import type { VNode } from "preact";

const maxLength = 120;

export function Text({ value, limit = maxLength }: { value: string; limit?: number }): VNode {
  const text = showInvisible(value);
  if (text.length <= limit) return <bdi class="text">{text}</bdi>;
  return (
    <details class="clipped">
      <summary>
        <bdi class="text">{clip(text, limit)}</bdi>{" "}
        <span class="more">all {value.length.toLocaleString("en")} characters</span>
      </summary>
      <bdi class="text whole">{text}</bdi>
    </details>
  );
}

export function Masked(): VNode {
  return <span class="masked" role="img" aria-label="masked" />;
}

export function Id({ value }: { value: string }): VNode {
  return <bdi class="id">{showInvisible(value).slice(0, 256)}</bdi>;
}

/** Not in the middle of a character. */
function clip(text: string, limit: number): string {
  return `${text
    .slice(0, limit)
    .toWellFormed()
    .replace(/\uFFFD$/, "")}…`;
}

/** Characters that show nothing, and those that turn the direction of what follows, become visible: ␀, ⟨U+202E⟩. */
export function showInvisible(text: string): string {
  return text.toWellFormed().replace(/[\p{Cf}\p{Cc}\p{Zl}\p{Zp}]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    // Unicode has pictures of the first control characters.
    return code < 0x20
      ? String.fromCodePoint(0x24_00 + code)
      : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}
