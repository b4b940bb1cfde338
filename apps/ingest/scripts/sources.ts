import { readFileSync } from "node:fs";
import { type Client, readClients } from "./clients.ts";
import type { OpenApi } from "./openapi.ts";
import { readSamples, type Samples } from "./samples.ts";

/** What the pages are made of. Nothing of it is written a second time for them. */
export interface Sources {
  openApi: OpenApi;
  guide: string;
  samples: Samples;
  clients: Client[];
}

export function readSources(): Sources {
  const documents = new URL("../../../docs/", import.meta.url);
  return {
    openApi: JSON.parse(readFileSync(new URL(import.meta.resolve("@booking-events/schema/openapi.json")), "utf8")),
    guide: readFileSync(new URL("partner-guide.md", documents), "utf8"),
    samples: readSamples(new URL("clients/samples/", documents)),
    clients: readClients(new URL("clients/", documents)),
  };
}
