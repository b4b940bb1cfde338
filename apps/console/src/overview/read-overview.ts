import {
  type Arrivals,
  arrivalWindowMs,
  type Beat,
  type Concern,
  type Context,
  findArrivals,
  findConcerns,
  OperationFailure,
  type PartnerTraffic,
  readDay,
  readStatus,
  readTraffic,
  type Status,
} from "@booking-events/operations";

export interface Overview {
  at: Date;
  status: Status;
  concerns: Concern[];
  /** Null: PostgreSQL does not tell. The concerns say why. */
  traffic: PartnerTraffic[] | null;
  day: Beat[] | null;
  arrivals: Arrivals["counts"] | null;
}

/** More would make a page that nobody reads: the others are on the page of partners. */
export const maxPartners = 50;

/** Reads all that the overview shows. What cannot be read is null, and one of the concerns. */
export async function readOverview(context: Context): Promise<Overview> {
  const status = await readStatus(context, { measuresPace: false });
  const [traffic, day, arrivals] = await Promise.all([
    orNull(readTraffic(context, toPartners(status))),
    orNull(readDay(context)),
    orNull(findArrivals(context, { withinMs: arrivalWindowMs, limit: 1 })),
  ]);
  return { at: status.at, status, concerns: findConcerns(status), traffic, day, arrivals: arrivals?.counts ?? null };
}

/** Those who have been heard of in a week, and those of the file. */
function toPartners({ lastHeardOf, enabledPartners }: Status): string[] {
  return [...new Set([...lastHeardOf.keys(), ...(enabledPartners ?? [])])].sort().slice(0, maxPartners);
}

async function orNull<Value>(reading: Promise<Value>): Promise<Value | null> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof OperationFailure) return null;
    throw error;
  }
}
