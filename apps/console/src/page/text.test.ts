import type { VNode } from "preact";
import { renderToString } from "preact-render-to-string";
import { expect, test } from "vitest";
import { Id, Text } from "./text.tsx";

const render = (node: VNode) => renderToString(node);

test("markup is shown, not carried out", () => {
  expect(render(Text({ value: '<img src=x onerror="1">&' }))).toBe(
    '<bdi class="text">&lt;img src=x onerror=&quot;1&quot;>&amp;</bdi>',
  );
});

test("a text cannot turn the direction of what follows, hide characters, or break lines", () => {
  expect(render(Text({ value: "a\u202eb\u200bc\nd\0e\u2028f\ud800" }))).toBe(
    '<bdi class="text">a⟨U+202E⟩b⟨U+200B⟩c␊d␀e⟨U+2028⟩f\ufffd</bdi>',
  );
});

test("a long text is clipped, with all of it behind", () => {
  const html = render(Text({ value: "x".repeat(8_192) }));
  expect(html).toContain(`<summary><bdi class="text">${"x".repeat(120)}…</bdi>`);
  expect(html).toContain("all 8,192 characters");
  expect(html).toContain(`>${"x".repeat(8_192)}</bdi>`);
});

test("a text is not clipped in the middle of a character", () => {
  expect(render(Text({ value: "😀😀😀", limit: 3 }))).toContain('<summary><bdi class="text">😀…</bdi>');
});

test("an id that is none is no markup", () => {
  expect(render(Id({ value: "<b>" }))).toBe('<bdi class="id">&lt;b></bdi>');
});
