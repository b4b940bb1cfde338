import { expect, test } from "vitest";
import { adviseOnConnection } from "./connection-advice.ts";

test.each([
  ["CERT_HAS_EXPIRED", "Its certificate has expired: renew it"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "use one of its names in DATABASE_URL"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "NODE_EXTRA_CA_CERTS"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "NODE_EXTRA_CA_CERTS"],
  ["ERR_SSL_WRONG_VERSION_NUMBER", "It does not speak TLS there"],
  ["ECONNRESET", "check in DATABASE_URL whether it expects TLS there"],
  ["ETIMEDOUT", "no firewall is between"],
  [null, "Check that it runs"],
])("%s has advice that helps", (code, advice) => {
  expect(adviseOnConnection(code, "PostgreSQL", "DATABASE_URL")).toContain(advice);
});
