/**
 * Returns one URL for each host of a URL such as `postgres://user@a:5432,b:5432/database`, which is none itself. Its
 * parts must be encoded.
 */
export function splitHosts(url: string): string[] {
  const [, before = "", hosts = "", after = ""] = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(url) ?? [];
  return hosts.split(",").map((host) => before + host + after);
}
