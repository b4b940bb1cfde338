const tlsMismatch = new Set(["EPROTO", "ERR_SSL_WRONG_VERSION_NUMBER", "ERR_SSL_PACKET_LENGTH_TOO_LONG"]);
const unknownAuthority = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

/**
 * Says what helps if a server can't be reached, by the code of the operating system or of TLS.
 *
 * @param server such as Redis
 * @param variable where the operator said where the server is
 */
export function adviseOnConnection(code: string | null, server: string, variable: string): string {
  switch (code) {
    case "ECONNREFUSED":
      return `Nothing listens there: start ${server}, or correct the host and the port in ${variable}.`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `The name server does not know the host: correct it in ${variable}, or look for a fault of the name server.`;
    case "ECONNRESET":
    case "EPIPE":
      return `It ended the connection: check in ${variable} whether it expects TLS there, and look into its log.`;
    case "CERT_HAS_EXPIRED":
      return `Its certificate has expired: renew it, and let ${server} read it.`;
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return `Its certificate is for another name: use one of its names in ${variable}.`;
    default:
      return adviseOnOthers(code, variable);
  }
}

/** Says what helps if PostgreSQL can't be used, by its SQLSTATE or as {@link adviseOnConnection}. */
export function adviseOnDatabase(code: string | null): string {
  switch (code) {
    case "28P01":
      return "Correct the user or the password in DATABASE_URL, or in DATABASE_PASSWORD if the URL has no password.";
    case "28000":
      return "Correct the user in DATABASE_URL, or let pg_hba.conf admit it from this host, with or without TLS as the URL says.";
    case "3D000":
      return "Correct the name of the database in DATABASE_URL, or create it.";
    case "42501":
      return "Run as the owner of the tables: ops migrate --grant";
    case "53300":
      return "Find out who has so many connections (pg_stat_activity), and end them, or raise max_connections.";
    case "53100":
      return "Its disk is full: make space.";
    case "57P03":
      return "It is starting or stopping: wait, and look into its log if that lasts.";
    case "25006":
    case "NO_SUITABLE_SERVER":
      return "Only servers that take no writes answer: let DATABASE_URL name the primary, or promote a standby.";
    default:
      return adviseOnConnection(code, "PostgreSQL", "DATABASE_URL");
  }
}

function adviseOnOthers(code: string | null, variable: string): string {
  if (code !== null && unknownAuthority.has(code))
    return "Nobody whom this process trusts has signed its certificate: name the authority's file in NODE_EXTRA_CA_CERTS.";
  if (code !== null && tlsMismatch.has(code))
    return `It does not speak TLS there: use its port for TLS, or do not ask for TLS in ${variable}.`;
  return `Check that it runs, that no firewall is between, and that ${variable} is right, also about TLS.`;
}
