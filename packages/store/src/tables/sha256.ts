import { hash } from "node:crypto";

/**
 * Returns the SHA-256 of a text. For a digest that is asked for as a buffer, Node allocates memory outside of V8's heap,
 * which takes as long as the digest. For a text, it uses memory from its pool.
 */
export function sha256(text: string): Buffer {
  return Buffer.from(hash("sha256", text, "binary"), "binary");
}
