import { describeQuota, type ListedPartner, type PartnerTraffic } from "@booking-events/operations";
import type { VNode } from "preact";
import { Badge } from "../page/badge.tsx";
import { Layout } from "../page/layout.tsx";
import { formatRate, formatShare } from "../page/numbers.ts";
import { PartnerLink } from "../page/paths.tsx";
import { type Column, Table } from "../page/table.tsx";
import { Text } from "../page/text.tsx";
import { Time } from "../page/time.tsx";

interface PartnersPageProps {
  partners: readonly ListedPartner[];
  /** Null: PostgreSQL does not tell. */
  traffic: readonly PartnerTraffic[] | null;
}

export function PartnersPage({ partners, traffic }: PartnersPageProps): VNode {
  return (
    <Layout title="Partners" intro="Who sends events, how much, and by which secrets.">
      <Table
        caption={`${partners.length} in the partners file`}
        rows={partners}
        columns={createColumns(traffic)}
        empty="There are no partners yet. Add one with: ops partners add"
      />
    </Layout>
  );
}

function createColumns(traffic: PartnersPageProps["traffic"]): Column<ListedPartner>[] {
  const of = new Map(traffic?.map((one) => [one.partner, one]));
  const rate = (partner: ListedPartner, which: "perMinute" | "perMinuteLastWeek") => {
    const found = of.get(partner.id);
    return found === undefined ? <span class="faint">unknown</span> : formatRate(found[which]);
  };
  return [
    {
      title: "Partner",
      isName: true,
      isWide: true,
      cell: ({ id, name }) => (
        <>
          <PartnerLink id={id} /> <small>{name !== id && <Text value={name} />}</small>
        </>
      ),
    },
    { title: "State", cell: (partner) => <PartnerState partner={partner} /> },
    { title: "A minute", isNumber: true, cell: (partner) => rate(partner, "perMinute") },
    { title: "A week before", isNumber: true, cell: (partner) => rate(partner, "perMinuteLastWeek") },
    { title: "Quota used", isNumber: true, cell: (partner) => <Quota partner={partner} /> },
    { title: "Valid secrets", isNumber: true, cell: ({ secrets }) => secrets.filter(({ valid }) => valid).length },
    { title: "Last used", cell: (partner) => <Time at={lastUseOf(partner)} /> },
  ];
}

export function PartnerState({ partner }: { partner: ListedPartner }): VNode {
  return (
    <>
      <Admission partner={partner} /> {partner.test && <Badge tone="quiet">test</Badge>}
    </>
  );
}

function Admission({ partner: { enabled, held, secrets } }: { partner: ListedPartner }): VNode {
  if (!enabled) return <Badge tone="quiet">disabled</Badge>;
  if (held) return <Badge tone="warn">on hold</Badge>;
  if (!secrets.some(({ valid }) => valid)) return <Badge tone="bad">no valid secret</Badge>;
  return <Badge tone="good">enabled</Badge>;
}

function Quota({ partner: { bytesPerDay, bytesToday } }: { partner: ListedPartner }): VNode {
  if (bytesToday === undefined) return <span>of {describeQuota(bytesPerDay)}</span>;
  return (
    <span title={`${describeQuota(bytesToday)} of ${describeQuota(bytesPerDay)} today`}>
      {formatShare(bytesToday / bytesPerDay)}
    </span>
  );
}

function lastUseOf({ secrets }: ListedPartner): Date | null {
  const uses = secrets.flatMap(({ lastUsedAt }) => lastUsedAt ?? []);
  return uses.length === 0 ? null : new Date(Math.max(...uses.map((at) => at.getTime())));
}
