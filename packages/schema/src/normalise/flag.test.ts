import { expect, test } from "vitest";
import { readFlag } from "./flag.ts";

test.each(["true", "TRUE", " True\n", "t", "yes", "Y", "on", "1", "1.0", "ja", "WAHR", "oui", "vrai", "Sí", "sim"])(
  "%j is true",
  (sent) => expect(readFlag(sent)).toBe(true),
);

test.each(["false", "FALSE", "F", "no", "n", "off", "0", "0.0", "nein", "falsch", "non", "faux", "não", "nee"])(
  "%j is false",
  (sent) => expect(readFlag(sent)).toBe(false),
);

test.each(["", " ", "maybe", "2", "-1", "null", "truefalse", "tru", "none", "n/a", "constructor", "x"])(
  "%j is neither",
  (sent) => expect(readFlag(sent)).toBeUndefined(),
);
