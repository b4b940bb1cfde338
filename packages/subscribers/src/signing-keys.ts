import { createHmac, createPrivateKey, createPublicKey, type KeyObject, randomBytes, sign } from "node:crypto";

/** How posts are signed: with a secret that the subscriber knows too, or with a private key of which it has the public one. */
export type SignatureKind = "hmac" | "ed25519";

/** Signs a text, and returns the signature as it stands in `webhook-signature`: `v1,…` or `v1a,…`, in base64. */
export type Signer = (text: string) => string;

const keyBytes = 32;
const secretPrefix = "whsec_";
const privatePrefix = "whsk_";
const publicPrefix = "whpk_";
/** PKCS #8 of an Ed25519 key (RFC 8410): what stands before the 32 bytes of the key itself. */
const pkcs8OfEd25519 = Buffer.from("302e020100300506032b657004220420", "hex");

/** @returns for `hmac`, the secret that the subscriber gets; for `ed25519`, a private key that nobody gets */
export function createSigningKey(kind: SignatureKind): string {
  return `${kind === "hmac" ? secretPrefix : privatePrefix}${randomBytes(keyBytes).toString("base64")}`;
}

/** @returns the public key of a private one, as a subscriber gets it: `whpk_…` */
export function publicKeyOf(privateKey: string): string {
  const { x = "" } = createPublicKey(readPrivateKey(privateKey)).export({ format: "jwk" });
  return `${publicPrefix}${Buffer.from(x, "base64url").toString("base64")}`;
}

/** @param key one of {@link createSigningKey} */
export function createSigner(key: string): Signer {
  if (key.startsWith(secretPrefix)) {
    const secret = Buffer.from(key.slice(secretPrefix.length), "base64");
    return (text) => `v1,${createHmac("sha256", secret).update(text).digest("base64")}`;
  }
  const privateKey = readPrivateKey(key);
  return (text) => `v1a,${sign(null, Buffer.from(text), privateKey).toString("base64")}`;
}

function readPrivateKey(key: string): KeyObject {
  const seed = Buffer.from(key.slice(privatePrefix.length), "base64");
  if (!key.startsWith(privatePrefix) || seed.length !== keyBytes)
    throw new TypeError(
      `A signing key must be ${secretPrefix}… or ${privatePrefix}… with ${keyBytes} bytes in base64.`,
    );
  return createPrivateKey({ key: Buffer.concat([pkcs8OfEd25519, seed]), format: "der", type: "pkcs8" });
}
