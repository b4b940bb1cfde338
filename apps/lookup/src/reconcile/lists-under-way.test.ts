import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { Refusal } from "@booking-events/http";
import { answers, lookupAnswers } from "@booking-events/schema";
import { expect, test } from "vitest";
import { ListsUnderWay } from "./lists-under-way.ts";

function createResponse() {
  const response = Object.assign(new EventEmitter(), { closed: false });
  const close = () => {
    response.closed = true;
    response.emit("close");
  };
  return { response: response as unknown as ServerResponse, close };
}

function answerTo(work: () => unknown) {
  try {
    work();
    return undefined;
  } catch (error) {
    return error instanceof Refusal ? error.answer : error;
  }
}

test("a partner has one list at a time, and any number of partners have one", () => {
  const lists = new ListsUnderWay();
  const { response, close } = createResponse();
  lists.begin("acme", response);
  expect(answerTo(() => lists.begin("acme", createResponse().response))).toBe(lookupAnswers.alreadyReconciling);
  for (let partner = 0; partner < 100; partner += 1) lists.begin(`partner-${partner}`, createResponse().response);
  close();
  lists.begin("acme", createResponse().response);
});

test("all lists together hold a limited number of bytes; a list that ends releases its own", () => {
  const lists = new ListsUnderWay({ maxHeldBytes: 100 });
  const [first, second] = [createResponse(), createResponse()];
  const holdFirst = lists.begin("acme", first.response);
  const holdSecond = lists.begin("zenith", second.response);
  holdFirst(60);
  holdFirst(70);
  holdSecond(30);
  expect(answerTo(() => holdSecond(31))).toBe(answers.overloaded);
  first.close();
  holdFirst(80);
  holdSecond(100);
});
