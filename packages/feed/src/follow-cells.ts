import type { Queryable } from "@booking-events/store";
import { type FollowOptions, follow } from "./follow.ts";
import type { Failure, HandlingContext, NextStep } from "./handle-changes.ts";
import { consoleLogger, type FeedLogger } from "./logger.ts";
import type { BookingChange } from "./read-changes.ts";
import type { SnapshotBooking, SnapshotContext } from "./take-snapshot.ts";

/** A part of the service with a database of its own. A booking is in one cell. */
export interface Cell extends Pick<FollowOptions, "database" | "readDatabase" | "listenUrl" | "schema"> {
  /** Of your choice. */
  name: string;
}

/** As {@link FollowOptions}. Each handler also learns the cell, and `client` is a transaction in its database. */
export interface FollowCellsOptions extends Omit<FollowOptions, keyof Cell | "onSnapshot" | "onChange" | "onError"> {
  /** The name of the cursor in each cell. */
  name: string;
  cells: readonly Cell[];
  onSnapshot?: (bookings: SnapshotBooking[], context: SnapshotContext & { cell: string }) => Promise<void>;
  onChange: (change: BookingChange, context: HandlingContext & { cell: string }) => Promise<void>;
  onError?: (failure: Failure, context: { client: Queryable; signal: AbortSignal; cell: string }) => Promise<NextStep>;
}

/**
 * Follows the feeds of several cells, each as {@link follow} does. The changes of a booking come in order, since a
 * booking is in one cell. Between cells there is no order, and their handlers run at the same time.
 *
 * @returns when the signal has aborted
 * @throws what {@link follow} throws for one of the cells. The others are ended first
 */
export async function followCells({ cells, ...options }: FollowCellsOptions): Promise<void> {
  if (cells.length === 0) throw new TypeError("cells must not be empty.");
  if (new Set(cells.map(({ name }) => name)).size < cells.length) throw new TypeError("Each cell needs its own name.");
  const ending = new AbortController();
  const signal = AbortSignal.any([options.signal, ending.signal]);
  const following = cells.map(async (cell) => {
    try {
      await followCell(cell, { ...options, signal });
    } finally {
      ending.abort();
    }
  });
  await Promise.allSettled(following);
  await Promise.all(following);
}

function followCell({ name: cell, ...where }: Cell, options: Omit<FollowCellsOptions, "cells">): Promise<void> {
  const { onSnapshot, onChange, onError, logger = consoleLogger, ...others } = options;
  return follow({
    ...others,
    ...where,
    ...(onSnapshot && { onSnapshot: (bookings, context) => onSnapshot(bookings, { ...context, cell }) }),
    onChange: (change, context) => onChange(change, { ...context, cell }),
    ...(onError && { onError: (failure, context) => onError(failure, { ...context, cell }) }),
    logger: nameCell(logger, cell),
  });
}

function nameCell(logger: FeedLogger, cell: string): FeedLogger {
  return {
    info: (details, message) => logger.info({ cell, ...details }, message),
    warn: (details, message) => logger.warn({ cell, ...details }, message),
  };
}
