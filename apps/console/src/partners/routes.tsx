import {
  type ActingContext,
  countWarnings,
  exportRows,
  findRefusals,
  holdPartner,
  type ListedPartner,
  listPartners,
  OperationFailure,
  readTraffic,
  readWeek,
} from "@booking-events/operations";
import type Router from "@koa/router";
import type { ConsoleContext } from "../context.ts";
import { paths } from "../page/paths.ts";
import { acting, downloading, type PageState, showing } from "../server/page-routes.ts";
import { Refusal } from "../server/refusal.ts";
import { PartnerPage } from "./partner-page.tsx";
import { PartnersPage } from "./partners-page.tsx";

/** More would make a page that nobody reads. */
const maxCompared = 200;
const refusalsKeptMs = 7 * 86_400_000;

export function addPartnerRoutes(router: Router<PageState>, context: ConsoleContext): void {
  router.get(
    "/partners",
    showing(context, async ({ view, operations }) => {
      const partners = await listPartners(operations);
      const compared = partners.slice(0, maxCompared).map(({ id }) => id);
      const traffic = await orNull(operations, readTraffic(operations, compared));
      return <PartnersPage view={view} partners={partners} traffic={traffic} />;
    }),
  );
  router.get(
    "/partners/:partner",
    showing(context, async ({ view, operations, params }) => {
      const partner = await requirePartner(operations, params["partner"] ?? "");
      const since = new Date(operations.now().getTime() - refusalsKeptMs);
      const [week, refusals, warnings] = await Promise.all([
        orNull(operations, readWeek(operations, partner.id)),
        orNull(operations, findRefusals(operations, { partner: partner.id, since })),
        orNull(operations, countWarnings(operations, partner.id)),
      ]);
      return <PartnerPage view={view} partner={partner} week={week} refusals={refusals} warnings={warnings} />;
    }),
  );
  addHolding(router, context);
  router.post(
    "/partners/:partner/bookings.csv",
    downloading(
      context,
      { role: "operator", name: ({ params }) => `bookings-${params["partner"]}.csv` },
      ({ operations, params: { partner } }, write) =>
        exportRows(operations, { what: "bookings", format: "csv", withPayload: false, partner }, write),
    ),
  );
}

function addHolding(router: Router<PageState>, context: ConsoleContext): void {
  const to = ({ params }: { params: Record<string, string> }) => paths.partner(params["partner"] ?? "");
  router.post(
    "/partners/:partner/hold",
    acting(context, { role: "operator", to }, async ({ operations, params }) => {
      const id = params["partner"] ?? "";
      return (await holdPartner(operations, id, true))
        ? `${id} is on hold: its events get 503, and its sender keeps them.`
        : `${id} was on hold already.`;
    }),
  );
  router.post(
    "/partners/:partner/release",
    acting(context, { role: "operator", to }, async ({ operations, params }) => {
      const id = params["partner"] ?? "";
      return (await holdPartner(operations, id, false))
        ? `${id} is released: its events are accepted.`
        : `${id} was not on hold.`;
    }),
  );
}

async function requirePartner(operations: ActingContext, id: string): Promise<ListedPartner> {
  const partner = (await listPartners(operations)).find((one) => one.id === id);
  if (partner !== undefined) return partner;
  throw new Refusal(404, "No such partner", "The partners file has none with this id. The page Partners has all.");
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
