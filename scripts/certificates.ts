import { generate } from "selfsigned";

/** PEM texts. The certificate is its own authority. */
export interface Certificate {
  certificate: string;
  key: string;
}

/**
 * For servers on this machine that are called `localhost`.
 *
 * @param validity from when and until when; by default, for a year from now
 */
export async function createCertificate(
  validity: { notBeforeDate?: Date; notAfterDate?: Date } = {},
): Promise<Certificate> {
  const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], {
    ...validity,
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] },
    ],
  });
  return { certificate: cert, key };
}
