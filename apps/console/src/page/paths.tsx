import type { VNode } from "preact";
import { Text } from "./text.tsx";

/** Where a thing has its page. */
export const paths = {
  booking: (partner: string, reference: string) => {
    const given = encodeURIComponent(reference.toWellFormed());
    // Browsers take these in a path for its folders.
    return [".", ".."].includes(reference)
      ? `/bookings/${encodeURIComponent(partner)}?reference=${given}`
      : `/bookings/${encodeURIComponent(partner)}/${given}`;
  },
  event: (id: string) => `/events/${encodeURIComponent(id)}`,
  partner: (id: string) => `/partners/${encodeURIComponent(id)}`,
  subscription: (name: string) => `/subscriptions/${encodeURIComponent(name)}`,
};

export function PartnerLink({ id }: { id: string }): VNode {
  return <a href={paths.partner(id)}>{id}</a>;
}

/** Of a reader of the feed: a subscription, or a program. */
export function ReaderLink({ name }: { name: string }): VNode {
  return (
    <a href={paths.subscription(name)}>
      <Text value={name} />
    </a>
  );
}

export function SecretLink({ partner, id }: { partner: string; id: string }): VNode {
  return <a href={`${paths.partner(partner)}#secrets`}>{id}</a>;
}
