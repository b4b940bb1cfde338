/** Where a thing has its page. */
export const paths = {
  booking: (partner: string, reference: string) =>
    `/bookings/${encodeURIComponent(partner)}/${encodeURIComponent(reference)}`,
  partner: (id: string) => `/partners/${encodeURIComponent(id)}`,
  subscription: (name: string) => `/subscriptions/${encodeURIComponent(name)}`,
  search: (text: string) => `/search?q=${encodeURIComponent(text)}`,
  events: (filter: Record<string, string>) => `/events?${new URLSearchParams(filter)}`,
};
