import { createSlots, type InSlot, withDeadline } from "@booking-events/runtime";
import type { NormalisedBooking } from "@booking-events/schema/normalise";
import {
  type Comparison,
  compareBookings,
  type DigestKey,
  findPartnerBooking,
  findRecordedEvent,
  type ListedBooking,
  type ListedHere,
  listPartnerBookings,
  type PaceWindow,
  type PartnerActivity,
  type PartnerBooking,
  type PartnerReference,
  type RecordedEvent,
  readPartnerActivity,
  startOfPartnerBookings,
} from "@booking-events/store";
import type { Pool } from "pg";

/** All that lookup reads of a partner in PostgreSQL. Each method throws if the database cannot be read. */
export interface PartnerData {
  findRecorded(partner: string, eventId: string): Promise<RecordedEvent | undefined>;
  findBooking(
    partner: string,
    booking: Omit<PartnerReference, "partner"> & { readings: (keyof NormalisedBooking)[] },
  ): Promise<PartnerBooking | "erased" | undefined>;
  compare(partner: string, listed: readonly ListedBooking[]): Promise<Comparison[]>;
  /** Reads what became of the events that were received in some windows. */
  readActivity(partner: string, windows: PaceWindow[]): Promise<PartnerActivity>;
  /** Reads the bookings that were created before a time, in pages. */
  readBookings(partner: string, createdBefore: Date): AsyncIterable<ListedHere[]>;
}

const bookingsPerPage = 2_000;

/**
 * @param options.testDatabase of the bookings of test partners
 * @param options.listDatabase a pool of its own, so that other questions never wait for lists
 * @param options.maxListConnections pages of lists that are compared at once
 */
export function openPartnerData(options: {
  isTest: (partner: string) => boolean;
  database: Pool;
  testDatabase: Pool;
  databaseDeadlineMs: number;
  listDatabase: Pool;
  maxListConnections: number;
  digestKey: () => Promise<DigestKey>;
}): PartnerData {
  const { isTest, testDatabase, databaseDeadlineMs, digestKey } = options;
  const databaseOf = (partner: string) => (isTest(partner) ? testDatabase : options.database);
  const listDatabaseOf = (partner: string) => (isTest(partner) ? testDatabase : options.listDatabase);
  const inSlot = createSlots(options.maxListConnections);
  const inTime = <Result>(work: Promise<Result>) => withDeadline(work, databaseDeadlineMs);
  return {
    findRecorded: (partner, eventId) => inTime(findRecordedEvent(databaseOf(partner), partner, eventId)),
    findBooking: (partner, booking) =>
      inTime(digestKey().then((key) => findPartnerBooking(databaseOf(partner), key, { partner, ...booking }))),
    readActivity: (partner, windows) => inTime(readPartnerActivity(databaseOf(partner), partner, windows)),
    compare: (partner, listed) =>
      inSlot(async () => compareBookings(listDatabaseOf(partner), await digestKey(), listed)),
    readBookings: (partner, createdBefore) => readBookings(listDatabaseOf(partner), { partner, createdBefore, inSlot }),
  };
}

async function* readBookings(
  database: Pool,
  { partner, createdBefore, inSlot }: { partner: string; createdBefore: Date; inSlot: InSlot },
): AsyncGenerator<ListedHere[]> {
  let after = startOfPartnerBookings;
  for (;;) {
    const range = { after, createdBefore, limit: bookingsPerPage };
    const page = await inSlot(() => listPartnerBookings(database, partner, range));
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    after = last;
  }
}
