import { expect, test } from "vitest";
import { isTidyNumber } from "./tidy-number.ts";

const tidy = [
  ...["+442071838750", "+15550100123", "+393331234567", "+4930123456", "+2904000", "+525512345678", "+79123456789"],
  // As many digits as E.164 allows
  "+491234567890123",
];
const untidy = [
  ...["", "+", "442071838750", " +442071838750", "+44 2071838750", "+44207183875O", "+44207183875/", "+44207183875:"],
  // A calling code that no country has, or none has alone
  ...["+9991234567", "+80012345678"],
  // Another number of digits than the country has
  ...["+44207183", "+44207183875012", "+4912345678901234", "+29040000"],
  // A prefix in between
  ...[
    "+4402071838750",
    "+390612345678",
    "+78005553535",
    "+7989123456789",
    "+365201234567",
    "+3606201234567",
    "+5215512345678",
  ],
];

// What a process knows of the countries is made at the first call, so the first test tries all.
test("a number is tidy if it has its country's digits and no prefix", () => {
  expect(tidy.filter((sent) => !isTidyNumber(sent))).toEqual([]);
  expect(untidy.filter(isTidyNumber)).toEqual([]);
});
