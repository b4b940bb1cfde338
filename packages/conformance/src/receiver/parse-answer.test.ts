import { expect, test } from "vitest";
import { parseAnswer } from "./parse-answer.ts";

const complete = [
  "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nöö",
  "HTTP/1.1 200 OK\r\ncontent-length:4 \r\n\r\nöö and the next answer",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nö\r\n2\r\nö\r\n0\r\n\r\n",
  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nöö",
];

test.each(complete)("an answer is complete when its body is: %j", (text) => {
  expect(parseAnswer(Buffer.from(text), false)).toMatchObject({ status: 200, body: "öö" });
});

test("without a length, the body ends with the connection", () => {
  const bytes = Buffer.from("HTTP/1.1 408 Request Timeout\r\nAllow: GET\r\nallow: POST\r\n\r\nöö");

  expect(parseAnswer(bytes, false)).toBeUndefined();
  expect(parseAnswer(bytes, true)).toMatchObject({ status: 408, headers: { allow: "GET, POST" }, body: "öö" });
});

test.each([
  "",
  "HTTP/1.1 200 OK\r\n",
  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nöö",
  "HTTP/1.1 100 Continue\r\n\r\n",
])("a connection that ends too early has no answer: %j", (text) => {
  expect(parseAnswer(Buffer.from(text), true)).toBeUndefined();
});

test("a chunked answer is incomplete until its last chunk has arrived", () => {
  const bytes = Buffer.from(complete[2] as string);
  const lengths = Array.from({ length: bytes.length - 2 }, (_, length) => length);

  expect(lengths.filter((length) => parseAnswer(bytes.subarray(0, length), false) !== undefined)).toEqual([]);
});
