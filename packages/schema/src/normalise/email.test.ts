import { randomRuns } from "@booking-events/harness/random-runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyCharacter } from "../testing/any-character.ts";
import { readEmail } from "./email.ts";

describe("readEmail", () => {
  test.each([
    ["ada@example.com", "ada@example.com"],
    ["Ada.Lovelace@Example.COM", "Ada.Lovelace@example.com"],
    ["sam.o'example@example.com", "sam.o'example@example.com"],
    ["sam@xn--bcher-kva.example", "sam@xn--bcher-kva.example"],
    ["sam@localhost", "sam@localhost"],
    ["1!#$%&'*+/=?^_`{|}~-@example.com", "1!#$%&'*+/=?^_`{|}~-@example.com"],
    ["double..dot.@docomo.example", "double..dot.@docomo.example"],
    [" ada@example.com\r\n", "ada@example.com"],
    ["\u00a0ada@example.com\u200b", "ada@example.com"],
    ["\u202aada@example.com\u202c", "ada@example.com"],
    ["<ada@example.com>", "ada@example.com"],
    ["Ada <ada@example.com>", "ada@example.com"],
    ["Ada Lovelace<ada@example.com>", "ada@example.com"],
    ["Ada < ada@example.com >", "ada@example.com"],
    ['"robin@example.com" <ada@example.com>', "ada@example.com"],
    ['robin"s"@example.com <ada@example.com>', "ada@example.com"],
    ['"Lovelace, Ada (ada@home.example)" <ada@example.com>', "ada@example.com"],
    ['"A \\"quoted\\" <name>" <ada@example.com>', "ada@example.com"],
    ["Lovelace, Ada <ada@example.com>", "ada@example.com"],
    ["Ada @ Example <ada@example.com>", "ada@example.com"],
    ["Ada Lövelace <ada@example.com>", "ada@example.com"],
    ["Ada@example.com <ada@example.com>", "ada@example.com"],
    ["'ada@example.com' <ada@example.com>", "ada@example.com"],
    ["ada@example.com <mailto:ada@example.com>", "ada@example.com"],
    ["mailto:ada@example.com", "ada@example.com"],
    ["mailto://ada@example.com", "ada@example.com"],
    ["Ada ada@example.com", "ada@example.com"],
    ["Ada Lovelace, PhD: ada@example.com", "ada@example.com"],
    ["爱达 ada@example.com", "ada@example.com"],
    ["E-mail:\u00a0mailto:ada@example.com;", "ada@example.com"],
    ["MAILTO:ada%2Btrip@example.com?subject=Trip", "ada+trip@example.com"],
    ["mailto:ada@example.com%20", "ada@example.com"],
    ["mailto:%E0%A4%A@example.com", "%E0%A4%A@example.com"],
    ["mailto: %E0%A4%A@example.com", "%E0%A4%A@example.com"],
    ["ada@example.com;", "ada@example.com"],
    [", ada@example.com ,", "ada@example.com"],
    [",;ada@example.com", "ada@example.com"],
    ["ada@example.com (Ada Lovelace)", "ada@example.com"],
    ['"ada@example.com"', "ada@example.com"],
    ["'ada@example.com'", "ada@example.com"],
    ["' ada@example.com '", "ada@example.com"],
    ["ada@example.com.", "ada@example.com"],
    ["ａｄａ＠ｅｘａｍｐｌｅ．ｃｏｍ", "ada@example.com"],
    ["用户@例子.广告", "用户@例子.广告"],
    ["用户@例子。广告", "用户@例子.广告"],
    ["säm@BÜCHER.example", "säm@bücher.example"],
    ["sa\u0308m@example.com", "säm@example.com"],
    ['"ada lovelace"@example.com', '"ada lovelace"@example.com'],
    ['Ada <"ada@home"@example.com>', '"ada@home"@example.com'],
    ["ada@[192.0.2.1]", "ada@[192.0.2.1]"],
    [`${"x".repeat(1_012)}@example.com`, `${"x".repeat(1_012)}@example.com`],
    [`${"x".repeat(1_006)} <ada@example.com>`, "ada@example.com"],
  ])("reads %j", (text, address) => {
    expect(readEmail(text)).toBe(address);
  });

  test.each([
    "",
    " ",
    "sam",
    "sam@",
    "@example.com",
    "sam@@example.com",
    "sam@example..com",
    "sam@.example.com",
    "sam@-example.com",
    "sam@example-.com",
    "sam @example.com",
    "sam example@example.com",
    "sam@example.com robin@example.com",
    "Sam sam@example.com robin@example.com",
    "Sam sam@exam ple.com",
    "Sam sam@example.com>",
    "Sam sam@example.com (home) or robin@example.com",
    '"Sam sam@example.com',
    "Sam sam",
    "sam@example.com, robin@example.com",
    "sam@example.com;robin@example.com",
    "<sam@example.com>, <robin@example.com>",
    "Sam <sam@example.com>, Robin <robin@example.com>",
    "robin@example.com, Sam <sam@example.com>",
    "robin@example.com <sam@example.com>",
    "sam@example.com <sam>",
    "sam@example.com (home) too",
    "xmailto://sam@example.com",
    "sam@exam ple.com",
    "sam@example.com>",
    "<sam@example.com",
    "Sam <>",
    "mailto:",
    '"sam@example.com',
    "sa\ufffdm@example.com",
    "sam@exa\0mple.com",
    "sam\ud800@example.com",
    "https://example.com",
    "n/a",
    `${"x".repeat(1_013)}@example.com`,
    `${"x".repeat(1_007)} <sam@example.com>`,
  ])("finds no single address in %j", (text) => {
    expect(readEmail(text)).toBeUndefined();
  });

  test("reads its own answer as the same address", () => {
    const pieces = fc.constantFrom(
      ..."ada@<>\"'(),;: .\\-[]@é\u0308\u200b\u3000＠。",
      "mailto:",
      "example.com",
      "@example.com",
    );
    const texts = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.array(pieces).map((all) => all.join("")),
      fc.emailAddress(),
    );
    fc.assert(
      fc.property(texts, (text) => {
        const read = readEmail(text);
        if (read === undefined) return;
        expect(read).toMatch(/^.+@[^@]+$/su);
        expect(readEmail(read)).toBe(read);
      }),
      randomRuns(300),
    );
  });

  test("reads the address of each person, whatever the name", () => {
    const name = fc.string({ unit: "grapheme" }).map((text) => text.normalize("NFKC").replace(/[@<>"]/g, ""));
    fc.assert(
      fc.property(fc.emailAddress(), name, (address, person) => {
        const expected = address.replace(/@.*/, (domain) => domain.toLowerCase());
        expect(readEmail(`${person} <${address}>`)).toBe(expected);
        expect(readEmail(`"${person.replaceAll("\\", "")}" <${address}>`)).toBe(expected);
      }),
    );
  });

  test("answers about texts that are made to be slow", () => {
    const pieces = [
      "(",
      "<",
      '"',
      '\\"',
      "a ",
      "a.",
      "a-",
      "a@",
      "(a)",
      ", ",
      "\u0301\u0323",
      "\u00a0x",
      "\uff20",
      "%20",
    ];
    for (const piece of pieces) {
      for (const [before, after] of [
        ["", ""],
        ["a", "@b.c"],
        ["a@", ""],
        ['"', ""],
        ["mailto:", "@b.c"],
        ["", "<a@b.c>"],
      ]) {
        for (const count of [100, 8_192]) readEmail(before + piece.repeat(count) + after);
        expect(readEmail(before + piece.repeat(8_192) + after)).toBeUndefined();
      }
    }
  });
});
