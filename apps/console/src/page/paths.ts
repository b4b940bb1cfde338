/** Where a thing has its page. */
export const paths = {
  booking: (partner: string, reference: string) => {
    const given = encodeURIComponent(reference.toWellFormed());
    // Browsers take these in a path for its folders.
    return [".", ".."].includes(reference)
      ? `/bookings/${encodeURIComponent(partner)}?reference=${given}`
      : `/bookings/${encodeURIComponent(partner)}/${given}`;
  },
  partner: (id: string) => `/partners/${encodeURIComponent(id)}`,
  subscription: (name: string) => `/subscriptions/${encodeURIComponent(name)}`,
  events: (filter: Record<string, string>) => `/events?${new URLSearchParams(filter)}`,
};
