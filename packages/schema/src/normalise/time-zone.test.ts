import { expect, test } from "vitest";
import { readTimeZone } from "./time-zone.ts";

test.each([
  ["Europe/London", "Europe/London"],
  ["europe/london", "Europe/London"],
  [" Europe/London\n", "Europe/London"],
  ["America/New York", "America/New_York"],
  ["AMERICA/NEW_YORK", "America/New_York"],
  ["America/Argentina/Buenos_Aires", "America/Argentina/Buenos_Aires"],
  // Links
  ["US/Eastern", "America/New_York"],
  ["Asia/Calcutta", "Asia/Kolkata"],
  ["Asia/Kolkata", "Asia/Kolkata"],
  ["Europe/Kiev", "Europe/Kyiv"],
  ["Europe/Kyiv", "Europe/Kyiv"],
  ["America/Buenos_Aires", "America/Argentina/Buenos_Aires"],
  ["Asia/Saigon", "Asia/Ho_Chi_Minh"],
  ["Europe/Belfast", "Europe/London"],
  ["Japan", "Asia/Tokyo"],
  ["America/Fort Wayne", "America/Indiana/Indianapolis"],
  ["GB", "Europe/London"],
  // Windows
  ["W. Europe Standard Time", "Europe/Berlin"],
  ["romance standard time", "Europe/Paris"],
  ["GMT Standard Time", "Europe/London"],
  ["Pacific Standard Time", "America/Los_Angeles"],
  ["India Standard Time", "Asia/Kolkata"],
  ["FLE Standard Time", "Europe/Kyiv"],
  ["Coordinated Universal Time", "UTC"],
  // UTC and offsets
  ["UTC", "UTC"],
  ["Z", "UTC"],
  ["gmt", "UTC"],
  ["Etc/UTC", "UTC"],
  ["Etc/Greenwich", "UTC"],
  ["+00:00", "UTC"],
  ["+02:00", "Etc/GMT-2"],
  ["UTC+2", "Etc/GMT-2"],
  ["GMT-0500", "Etc/GMT+5"],
  ["Etc/GMT-2", "Etc/GMT-2"],
  ["etc/gmt+5", "Etc/GMT+5"],
  ["Etc/GMT-10", "Etc/GMT-10"],
  ["+14:00", "Etc/GMT-14"],
  ["-12", "Etc/GMT+12"],
  // Zones of a region
  ["CET", "CET"],
  ["cet", "CET"],
  ["EST5EDT", "EST5EDT"],
  // Long values
  [`Europe/${" ".repeat(37)}London`, "Europe/London"],
  [`${" ".repeat(50)}Europe/London`, "Europe/London"],
])("%j is %s", (sent, zone) => {
  expect(readTimeZone(sent)).toBe(zone);
});

test.each([
  ...[
    "",
    " ",
    "BST",
    "EST",
    "IST",
    "PST",
    "CEST",
    "Paris",
    "Mars/Phobos",
    "London, England",
    "+05:30",
    "+15:00",
    "-13",
  ],
  ...["UTC+2:15", "Etc/GMT+13", "SystemV/EST5", "posix/Europe/London", "localtime", "constructor", "__proto__", "+2+2"],
  ...[`Europe/${"x".repeat(60)}`, `Europe/${" ".repeat(38)}London`, "x etc/gmt-2", "Etc/GMT-2x", "Etc/GMT-100"],
])("%j is no time zone", (sent) => {
  expect(readTimeZone(sent)).toBeUndefined();
});

test("every zone that the runtime knows is one, and is one again", () => {
  for (const name of Intl.supportedValuesOf("timeZone")) {
    const zone = readTimeZone(name);
    expect(zone).toBeDefined();
    expect(readTimeZone(zone ?? "")).toBe(zone);
    expect(() => new Intl.DateTimeFormat("en", { timeZone: zone })).not.toThrow();
  }
});
