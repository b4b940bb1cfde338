import type { VNode } from "preact";
import { Layout } from "../page/layout.tsx";
import { Card } from "../page/section.tsx";
import { Text } from "../page/text.tsx";
import { useRole } from "../page/view.ts";
import { TasksLink } from "../tasks/tasks-link.tsx";

/** The form of a restore. Its preview is the next page. */
export function RestorePage({ query }: { query: URLSearchParams }): VNode {
  const given = (name: string) => query.get(name) ?? "";
  const reference = query.get("reference");
  return (
    <Layout
      title="Restore bookings"
      intro="Puts bookings back to what they were at a time, by new events that are applied like any other. Wrong updates are undone, deleted bookings come back, and subscribers are told. A restore can itself be undone."
      actions={<TasksLink />}
    >
      <Card>
        {useRole("operator") ? (
          <form class="fields" method="post" action={previewPath(reference)}>
            <label>
              Partner
              <input name="partner" value={given("partner")} required maxLength={100} />
            </label>
            <label>
              Put back to <small>a time of receipt, in UTC: 2026-11-20T14:00:00Z, 02:00, or 2h ago</small>
              <input name="at" value={given("at")} required maxLength={40} placeholder="2h" />
            </label>
            <References reference={reference} given={given("references")} />
            <label>
              Secret <small>only bookings that events by it have changed since</small>
              <input name="secret" value={given("secret")} maxLength={100} placeholder="s2" />
            </label>
            <label>
              Reference is of
              <select name="kind">
                {[
                  ["", "a trip or a consumer"],
                  ["trip", "a trip"],
                  ["consumer", "a consumer"],
                ].map(([value, label]) => (
                  <option value={value} selected={value === given("kind")}>
                    {label}
                  </option>
                ))}
              </select>
            </label>
            <label class="check whole-row">
              <input type="checkbox" name="delete-new" value="yes" checked={given("delete-new") === "yes"} />
              <span>
                Also delete bookings that have come since <small>they had not been received at that time</small>
              </span>
            </label>
            <button type="submit" class="button button-primary">
              Show what would change
            </button>
          </form>
        ) : (
          <p>Only who has the role operator may restore bookings.</p>
        )}
      </Card>
    </Layout>
  );
}

/** One booking, whose page led here, or as many as are named. */
function References({ reference, given }: { reference: string | null; given: string }): VNode {
  if (reference !== null)
    return (
      <p class="whole-row">
        Only the booking <Text value={reference} />
      </p>
    );
  return (
    <label class="whole-row">
      References <small>one a line; none: all that have changed since</small>
      <textarea name="references" rows={4} maxLength={60_000}>
        {given}
      </textarea>
    </label>
  );
}

function previewPath(reference: string | null): string {
  return reference === null ? "/restore/preview" : `/restore/preview?${new URLSearchParams({ reference })}`;
}
