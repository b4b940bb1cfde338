import { requirePartner } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";

export function addRenameCommand(partners: Command, context: Context): void {
  partners
    .command("rename")
    .description(
      "Say what to do instead of changing a partner's id: it can't be changed, since it is part of what identifies its bookings, here and in what readers and " +
        "subscribers keep.",
    )
    .argument("<id>", "the partner's id")
    .argument("<newId>", "the id that it should have")
    .action((id, newId) => {
      const { name } = requirePartner(context, id);
      throw new CommandFailure(
        `The id ${id} is part of the keys of its bookings and of their events, and of what readers of the feed and ` +
          "subscribers keep, so it stays. For another name: " +
          `ops partners set ${id} --name TEXT (it is ${name} now). For another id: ops partners add ${newId}, let the ` +
          `partner send all its bookings again with the new secret, or import them, and then: ops partners disable ${id}. ` +
          `The bookings of ${id} stay until they are deleted.`,
      );
    });
}
