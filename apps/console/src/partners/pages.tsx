import {
  type ActingContext,
  admitPartner,
  countWarnings,
  exportRows,
  findRefusals,
  listPartners,
  OperationFailure,
  readTraffic,
  readWeek,
} from "@booking-events/operations";
import { paths } from "../page/paths.tsx";
import type { PageRequest } from "../server/page-request.ts";
import type { Pages } from "../server/pages.ts";
import { Refusal } from "../server/refusal.ts";
import { PartnerPage } from "./partner-page.tsx";
import { PartnersPage } from "./partners-page.tsx";

/** More would make a page that nobody reads. */
const maxCompared = 200;
const refusalsKeptMs = 7 * 86_400_000;

export function addPartnerPages(pages: Pages): void {
  pages.show("/partners", async ({ operations }) => {
    const partners = await listPartners(operations);
    const compared = partners.slice(0, maxCompared).map(({ id }) => id);
    const traffic = await orNull(operations, readTraffic(operations, compared));
    return <PartnersPage partners={partners} traffic={traffic} />;
  });
  pages.show("/partners/:partner", async ({ operations, param }) => {
    const partner = (await listPartners(operations)).find(({ id }) => id === param("partner"));
    if (partner === undefined)
      throw new Refusal(404, "No such partner", "The partners file has none with this id. The page Partners has all.");
    const since = new Date(operations.now().getTime() - refusalsKeptMs);
    const [week, refusals, warnings] = await Promise.all([
      orNull(operations, readWeek(operations, partner.id)),
      orNull(operations, findRefusals(operations, { partner: partner.id, since })),
      orNull(operations, countWarnings(operations, partner.id)),
    ]);
    return <PartnerPage partner={partner} week={week} refusals={refusals} warnings={warnings} />;
  });
  const to = ({ param }: PageRequest) => paths.partner(param("partner"));
  for (const [verb, done, already] of [
    ["hold", "is on hold: its events get 503, and its sender keeps them.", "was on hold already."],
    ["release", "is released: its events are accepted.", "was not on hold."],
  ] as const)
    pages.act(`/partners/:partner/${verb}`, to, async ({ operations, param }) => {
      const hasChanged = await admitPartner(operations, param("partner"), verb);
      return `${param("partner")} ${hasChanged ? done : already}`;
    });
  pages.download(
    "/partners/:partner/bookings.csv",
    ({ param }) => `bookings-${param("partner")}.csv`,
    ({ operations, param }, write) => {
      const request = { what: "bookings", format: "csv", withPayload: false, partner: param("partner") } as const;
      return exportRows(operations, request, write);
    },
  );
}

/** The rest of the page is worth showing without it. The page says what is missing, and why. */
async function orNull<Value>(operations: ActingContext, reading: Promise<Value>): Promise<Value | null> {
  try {
    return await reading;
  } catch (error) {
    if (!(error instanceof OperationFailure)) throw error;
    operations.notify(error.message);
    return null;
  }
}
