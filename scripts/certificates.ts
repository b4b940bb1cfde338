import { generate } from "selfsigned";

/** As PEM. The certificate is its own authority. */
export interface Certificate {
  certificate: string;
  key: string;
}

/** For a server named `localhost`. By default, it is valid for a year from now. */
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
