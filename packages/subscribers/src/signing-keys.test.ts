import { createPublicKey, verify } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import { createSigner, createSigningKey, publicKeyOf } from "./signing-keys.ts";

const id = "hotel_12";
const body = `{"id":"12","subject":"Ünïcode"}`;

test("Standard Webhooks' own library accepts a signature by a secret", () => {
  const secret = createSigningKey("hmac");
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const headersFor = (signature: string) => ({
    ...{ "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature },
  });
  const signature = createSigner(secret)(`${id}.${timestamp}.${body}`);
  expect(new Webhook(secret).verify(body, headersFor(signature))).toEqual(JSON.parse(body));
  // Both of two, while a subscriber changes its secret.
  const other = createSigner(createSigningKey("hmac"))(`${id}.${timestamp}.${body}`);
  expect(new Webhook(secret).verify(body, headersFor(`${other} ${signature}`))).toEqual(JSON.parse(body));
  expect(() => new Webhook(secret).verify(body, headersFor(other))).toThrow("No matching signature found");
});

test("the public key verifies a signature by the private one", () => {
  const key = createSigningKey("ed25519");
  const published = publicKeyOf(key);
  expect(published).toMatch(/^whpk_[A-Za-z0-9+/]{43}=$/);
  const x = Buffer.from(published.slice("whpk_".length), "base64").toString("base64url");
  const publicKey = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  const [version, signature = ""] = createSigner(key)(body).split(",");
  expect(version).toBe("v1a");
  expect(verify(null, Buffer.from(body), publicKey, Buffer.from(signature, "base64"))).toBe(true);
  expect(verify(null, Buffer.from(`${body} `), publicKey, Buffer.from(signature, "base64"))).toBe(false);
});

test("a private key signs as RFC 8032 says", () => {
  // Its first test vector.
  const seed = Buffer.from("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "hex");
  const key = `whsk_${seed.toString("base64")}`;
  expect(Buffer.from(publicKeyOf(key).slice("whpk_".length), "base64").toString("hex")).toBe(
    "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
  );
  const [, signature = ""] = createSigner(key)("").split(",");
  expect(Buffer.from(signature, "base64").toString("hex")).toMatch(
    /^e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155/,
  );
});

test("every key is another one", () => {
  expect(createSigningKey("hmac")).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(createSigningKey("hmac")).not.toBe(createSigningKey("hmac"));
  expect(createSigningKey("ed25519")).not.toBe(createSigningKey("ed25519"));
});

test.each(["", "secret", "whsk_AAAA", "whpk_x"])("%j is no signing key", (key) => {
  expect(() => createSigner(key)).toThrow("A signing key must be");
});
