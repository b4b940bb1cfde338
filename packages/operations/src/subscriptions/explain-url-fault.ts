import type { UrlFault } from "@booking-events/subscribers";

export function explainUrlFault(fault: UrlFault): string {
  switch (fault) {
    case "no-url":
      return "--url must be a URL that begins with https://.";
    case "not-https":
      return "--url must begin with https://. For tests, set WEBHOOKS_ALLOW_PRIVATE=true here and for webhooks.";
    case "private-address":
      return "--url has an address that is not public. For tests, set WEBHOOKS_ALLOW_PRIVATE=true here and for webhooks.";
  }
}
