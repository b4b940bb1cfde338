import { randomBytes } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { PartnersError } from "./partners-error.ts";
import { type PartnersFile, parsePartnersFile } from "./partners-file.ts";

const defaultLockTimeoutMs = 5_000;
const lockRetryMs = 20;
const newFileMode = 0o600;
const permissionBits = 0o777;
const writableByOthers = 0o022;

export function readPartnersFile(path: string): PartnersFile {
  const text = readIfPresent(path, path);
  if (text === undefined) throw missingFile(path);
  return parse(text, path);
}

/** The result of a change: the new content, and additional results for the caller. */
type Changed<Result> = Result & { file: PartnersFile };

/**
 * Changes the partners file atomically: readers see the old content or the new content, even after a crash. Changes are
 * serialized: each one sees the result of the previous one. An invalid file is refused and not modified.
 *
 * A new file is readable only by its owner. An existing file keeps its owner, group and permissions, because ingest may
 * run as another user. Symbolic links are followed and kept.
 *
 * @param change returns the same file to leave it unchanged, and throws to refuse
 * @param options.createIfMissing start without partners if there is no file
 * @returns the result of `change`, whether the file is new, and warnings for the operator
 */
export async function changePartnersFile<Result extends object>(
  path: string,
  change: (file: PartnersFile) => Changed<Result>,
  options: { createIfMissing?: boolean; lockTimeoutMs?: number } = {},
): Promise<Changed<Result> & { isNew: boolean; warnings: string[] }> {
  const target = resolveTarget(path);
  const deadlineMs = Date.now() + (options.lockTimeoutMs ?? defaultLockTimeoutMs);
  for (;;) {
    const lock = tryLock(target, path);
    if (lock !== undefined) {
      // Nothing is awaited while the lock is held, so a signal handler cannot run in between and leave the lock behind.
      try {
        return changeLocked(target, path, change, options.createIfMissing === true);
      } finally {
        rmSync(lock, { force: true });
      }
    }
    if (Date.now() >= deadlineMs) throw lockedFile(target, path);
    await wait(lockRetryMs);
  }
}

function changeLocked<Result extends object>(
  target: string,
  path: string,
  change: (file: PartnersFile) => Changed<Result>,
  createIfMissing: boolean,
): Changed<Result> & { isNew: boolean; warnings: string[] } {
  const text = readIfPresent(target, path);
  if (text === undefined && !createIfMissing) throw missingFile(path);
  const before = text === undefined ? { partners: [] } : parse(text, path);
  const changed = change(before);
  const existing = text === undefined ? undefined : statSync(target);
  if (changed.file !== before) replaceFile(target, path, serialize(changed.file), existing);
  return { ...changed, isNew: text === undefined, warnings: findWarnings(path, existing) };
}

function parse(text: string, path: string): PartnersFile {
  const result = parsePartnersFile(text);
  if (result.success) return result.file;
  throw new PartnersError(
    `The partners file ${path} is not valid and was not changed: ${result.problems.join("; ")}. Correct it first.`,
  );
}

function serialize(file: PartnersFile): string {
  const text = `${JSON.stringify(file, null, 2)}\n`;
  const result = parsePartnersFile(text);
  if (result.success) return text;
  const problems = result.problems.map((problem) => problem.replace(/^partners\.\d+\./, ""));
  throw new PartnersError(`Nothing was changed: the partner's ${problems.join("; ")}.`);
}

/** Writes the text to a temporary file in the same folder, and then renames it over the old file. */
function replaceFile(target: string, path: string, text: string, existing: Stats | undefined): void {
  const temporary = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString("hex")}.tmp`);
  try {
    const descriptor = openSync(temporary, "wx", newFileMode);
    try {
      writeFileSync(descriptor, text);
      if (existing !== undefined) keepOwnerAndMode(descriptor, existing, path);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, target);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw describeFileError(error, path);
  }
  syncFolder(dirname(target));
}

function keepOwnerAndMode(descriptor: number, existing: Stats, path: string): void {
  const own = fstatSync(descriptor);
  if (own.uid !== existing.uid || own.gid !== existing.gid) {
    try {
      fchownSync(descriptor, existing.uid, existing.gid);
    } catch (error) {
      throw new PartnersError(
        `The partners file ${path} belongs to user ${existing.uid} and group ${existing.gid}, and this user cannot ` +
          "preserve that. Run the command as that user, or as root.",
        { cause: error },
      );
    }
  }
  // After the change of owner, which clears some of the permission bits.
  fchmodSync(descriptor, existing.mode & permissionBits);
}

/** Makes the rename survive a power loss, if the file system supports it. The change has already been made. */
function syncFolder(folder: string): void {
  try {
    const descriptor = openSync(folder, "r");
    try {
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    // An error now would hide a new secret that is already valid.
  }
}

/** Resolves symbolic links, because they must be kept and a rename must happen in the file's own folder. */
function resolveTarget(path: string): string {
  try {
    const target = realpathSync(path);
    accessSync(target, constants.W_OK);
    return target;
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw describeFileError(error, path);
  }
  // Another command may have created the file in the meantime.
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) {
    throw new PartnersError(`The partners file ${path} is a symbolic link to a file that does not exist.`);
  }
  try {
    return join(realpathSync(dirname(path)), basename(path));
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw describeFileError(error, path);
    throw new PartnersError(
      `The folder of the partners file ${path} does not exist. Create it, or set PARTNERS_FILE.`,
      { cause: error },
    );
  }
}

/** @returns the lock's path, or undefined if another process holds the lock */
function tryLock(target: string, path: string): string | undefined {
  const lock = lockPath(target);
  try {
    closeSync(openSync(lock, "wx", newFileMode));
  } catch (error) {
    if (codeOf(error) === "EEXIST") return undefined;
    throw describeFileError(error, path);
  }
  return lock;
}

function lockPath(target: string): string {
  return `${target}.lock`;
}

/**
 * An old lock is never removed automatically: if two processes removed it at the same time, they would overwrite each
 * other's change.
 */
function lockedFile(target: string, path: string): PartnersError {
  return new PartnersError(
    `Another command is changing the partners file ${path}. If none is running, one was killed: delete ` +
      `${lockPath(target)} and try again.`,
  );
}

function readIfPresent(target: string, path: string): string | undefined {
  try {
    return readFileSync(target, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw describeFileError(error, path);
  }
}

function missingFile(path: string): PartnersError {
  return new PartnersError(
    `There is no partners file ${path}. Set PARTNERS_FILE to its path, or create it by adding a partner: ` +
      "ops partners add <id>",
  );
}

function findWarnings(path: string, existing: Stats | undefined): string[] {
  if (existing === undefined || (existing.mode & writableByOthers) === 0) return [];
  return [`Other users can write to ${path}, and so add partners and secrets. To prevent this: chmod go-w ${path}`];
}

function describeFileError(error: unknown, path: string): unknown {
  const code = codeOf(error);
  if (error instanceof PartnersError || code === undefined) return error;
  return new PartnersError(describeFault(code, path), { cause: error });
}

function describeFault(code: string, path: string): string {
  switch (code) {
    case "EACCES":
    case "EPERM":
      return (
        `This user may not read or write the partners file ${path} or its folder (${code}). Run the command as the ` +
        "file's owner."
      );
    case "EROFS":
      return (
        `The partners file ${path} is mounted read-only (${code}), for example as a Kubernetes secret. Change it at ` +
        "its source: run the command on a copy (PARTNERS_FILE=<copy>) and mount that."
      );
    case "EBUSY":
      return (
        `The partners file ${path} is a mount point, so it cannot be replaced atomically (${code}). Mount its ` +
        "folder instead, or run the command where the file comes from."
      );
    case "EISDIR":
    case "ENOTDIR":
    case "ELOOP":
      return `PARTNERS_FILE is ${path}, which is not the path of a file (${code}).`;
    default:
      return `The partners file ${path} could not be read or written (${code}).`;
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}
